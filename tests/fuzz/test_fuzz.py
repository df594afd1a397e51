"""Random programs: the guard says what a count of the executions of their bodies says."""

import subprocess
import sys

import pytest
from run import HERE, judge_all


@pytest.mark.parametrize("first", [0, 75])
def test_programs_in_one_process(first):
    command = [sys.executable, str(HERE / "run.py"), str(first), str(first + 75)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""


def test_programs_as_tests_of_pytest():
    assert judge_all(range(3000, 3010)) == {}
