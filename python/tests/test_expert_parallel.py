"""The example of experts on several devices, with two processes on the CPU."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

EXAMPLE = Path(__file__).parents[2] / "examples" / "expert_parallel.py"


def test_two_processes_give_the_result_of_one():
    done = subprocess.run([sys.executable, EXAMPLE, "--device", "cpu"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 processes on cpu, 32 of 64 experts each, 256 tokens:")
    assert done.stdout.rstrip().endswith("as expected")


def test_experts_that_cannot_be_split_are_refused():
    done = subprocess.run([sys.executable, EXAMPLE, "--processes", "3"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--processes 3: 64 experts are not divided by it" in done.stderr
