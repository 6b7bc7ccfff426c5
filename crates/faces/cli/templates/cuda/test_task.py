"""The task notices kernels that leave work out, and the kernels are right, in an interpreter if need be: `python -m pytest`, or `python test_task.py`."""

import os
import subprocess

FOLDER = os.path.dirname(os.path.abspath(__file__))


def gauntlet(*arguments):
    return subprocess.run(["gauntlet", *arguments], cwd=FOLDER).returncode


def test_the_task_is_not_blind():
    assert gauntlet("audit", "task.py") == 0


def test_the_kernels_are_right():
    for kernel in ("plain", "several"):
        assert gauntlet("check", f"kernels.cu:{kernel}", "--task", "task.py") == 0


if __name__ == "__main__":
    test_the_task_is_not_blind()
    test_the_kernels_are_right()
