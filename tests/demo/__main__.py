"""Run both checks on a faulty twin of the example, then on the example: `python tests/demo`.

Exit status 0 where the checks found exactly the faults that are there, 1 otherwise.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EXAMPLE = ROOT / "example"
FAULTY = HERE / "faulty"


@dataclass(frozen=True)
class Step:
    """One command in one folder, and what its output has to hold."""

    title: str
    folder: Path
    command: tuple[str, ...]
    status: int
    finds: tuple[str, ...]
    """Every match of `pattern` in the output, sorted."""
    pattern: str
    conclusion: str

    def run(self) -> bool:
        """Show the command, its output and what it means; return whether all was as expected."""
        folder = os.path.relpath(self.folder, ROOT)
        print(f"\n=== {self.title}\n\n$ cd {folder} && {' '.join(self.command)}", flush=True)
        done = subprocess.run(
            [sys.executable, "-m", *self.command],
            cwd=self.folder,
            env={"JAX_PLATFORMS": "cpu", "COLUMNS": str(shutil.get_terminal_size((120, 24)).columns), **os.environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        print(done.stdout.strip() or "(no output: nothing was found)")
        found = tuple(sorted(re.findall(self.pattern, done.stdout, re.MULTILINE)))
        as_expected = (done.returncode, found) == (self.status, self.finds)
        if as_expected:
            print(f"\n--> As expected: {self.conclusion}")
        else:
            print(f"\n--> NOT AS EXPECTED: exit status {done.returncode}, expected {self.status};")
            print(f"    found {', '.join(found) or 'nothing'}; expected {', '.join(self.finds) or 'nothing'}")
        return as_expected


STEPS = (
    Step(
        title="1 of 4: flake8 reads the faulty twin. Nothing runs.",
        folder=FAULTY,
        command=("flake8", "."),
        status=1,
        finds=("JIT101", "JIT103", "JIT106", "JIT201"),
        pattern=r"\bJIT\d+\b",
        conclusion="three jitted functions are made and dropped on each call, and one reads a value that changes.",
    ),
    Step(
        title="2 of 4: pytest runs the faulty twin.",
        folder=FAULTY,
        command=("pytest",),
        status=1,
        finds=(
            "test_factory_called_on_each_call",
            "test_lambda_made_on_each_call",
            "test_nested_function_made_on_each_call",
            "test_python_float_then_array",
            "test_value_that_went_stale",
        ),
        pattern=r"^FAILED .*::(\w+)",
        conclusion="the same three are traced on each call, and a fourth is traced twice, which only a run can show.\n"
        "    The fifth is traced once and gives a wrong number, which no count of traces can show: flake8 does.",
    ),
    Step(
        title="3 of 4: flake8 reads the example.",
        folder=EXAMPLE,
        command=("flake8", "."),
        status=0,
        finds=(),
        pattern=r"\bJIT\d+\b",
        conclusion="the jitted functions are made once and kept.",
    ),
    Step(
        title="4 of 4: pytest runs the example.",
        folder=EXAMPLE,
        command=("pytest",),
        status=0,
        finds=(),
        pattern=r"^(?:FAILED|ERROR) .*::(\w+)",
        conclusion="each is traced once for each shape.",
    ),
)


def main() -> int:
    """Run all four steps, also after one that was not as expected."""
    print(
        "jax-jitcache: two checks for functions that JAX traces and compiles again and again, or with a value gone stale."
    )
    print("They look at tests/demo/faulty, where five functions have a fault, and at example, where none has.")
    wrong = [step.title for step in STEPS if not step.run()]
    print()
    if wrong:
        print("Not as expected: " + "; ".join(wrong))
        return 1
    print("All as expected: both checks found each fault that is there, and none that is not.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
