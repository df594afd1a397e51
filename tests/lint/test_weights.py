"""The script that counts right and wrong for each row of evidence runs, and has something to count."""

import subprocess
import sys
from pathlib import Path

from flake8_jitcache.facts.frequency import EVIDENCE


def test_each_row_is_counted() -> None:
    script = Path(__file__).parent / "weigh_evidence.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    *rows, total = done.stdout.splitlines()[1:]
    assert [row[25:].strip() for row in rows] == [e.what for e in EVIDENCE]
    judged, agreed = (int(word) for word in total.split() if word.isdigit())
    assert judged > 300
    assert agreed >= 0.9 * judged
