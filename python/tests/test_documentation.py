"""The Python that README.md and the guide show is valid, and the task of the README does what the README says."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md")), *sorted(ROOT.glob("examples/*/README.md"))]


def blocks(page):
    """The fenced blocks of Python in a page."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


SHOWN = [(page, number, block) for page in PAGES for number, block in enumerate(blocks(page), start=1)]


@pytest.mark.parametrize(
    ("page", "block"), [(page, block) for page, _, block in SHOWN],
    ids=[f"{page.relative_to(ROOT)}:{number}" for page, number, _ in SHOWN],
)
def test_blocks_of_python_are_valid(page, block):
    compile(block.replace("…", "..."), str(page), "exec")


def check(folder, kernel):
    command = [sys.executable, "-m", "gauntlet", "check", kernel, "--task", "task.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_the_readme_s_task_tells_right_from_wrong(tmp_path):
    task = next(block for block in blocks(ROOT / "README.md") if block.startswith("# task.py"))
    (tmp_path / "task.py").write_text(task, encoding="utf-8")
    kernels = """
        import numpy as np

        def right(x):
            e = np.exp(x - x.max(axis=1, keepdims=True))
            return {"y": e / e.sum(axis=1, keepdims=True)}

        def wrong(x):
            return {"y": np.zeros_like(x)}
    """
    (tmp_path / "kernels.py").write_text(textwrap.dedent(kernels), encoding="utf-8")
    right, wrong = check(tmp_path, "kernels.py:right"), check(tmp_path, "kernels.py:wrong")
    assert right.returncode == 0, right.stdout + right.stderr
    assert wrong.returncode == 1, wrong.stdout + wrong.stderr
    assert "0 of 1 comparisons right" in wrong.stdout


def test_the_readme_s_first_comparison_runs_as_printed(tmp_path):
    for block in blocks(ROOT / "README.md"):
        name = block.split("\n")[0].removeprefix("# ")
        (tmp_path / name).write_text(block, encoding="utf-8")
    printed = re.search(r"^gauntlet (compare .*\.py:.*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    # The first pair is measured whatever the time.
    words = [*printed[1].split(), "--budget", "1ms"]
    ran = subprocess.run([sys.executable, "-m", "gauntlet", *words], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode in (0, 4), ran.stdout + ran.stderr
    assert "once" in ran.stdout and "rows=512,cols=1024" in ran.stdout, ran.stdout + ran.stderr
