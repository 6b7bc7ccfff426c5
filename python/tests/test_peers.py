"""The tasks of examples/peers on their small cases, without processes: each kernel that runs on a CPU, beside the reference."""

import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "peers"
MODULES = {file.stem for file in FOLDER.glob("*.py")}
PAIRS = [
    (task, kernel)
    for task, kernels in {
        "products": ("ours:sizes", "ours:routed", "by_torch:loop", "by_torch:routed"),
        "routed_products": ("ours:routed", "by_torch:routed"),
        "dense_products": ("ours:sizes", "by_torch:loop"),
        "nvfp4_products": ("ours:nvfp4_sizes", "by_torch:loop"),
        "attention": ("ours:attention", "by_torch:cudnn"),
        "experts": ("ours:moe", "by_torch:moe"),
    }.items()
    for kernel in kernels
]


@pytest.fixture
def peers(monkeypatch):
    """Imports a module of the folder; its names are given back afterwards."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    yield importlib.import_module
    for name in MODULES:
        sys.modules.pop(name, None)


def small(task):
    cases = task.cases
    return cases if isinstance(cases, list) else cases["correctness"] + cases["benchmark"]


@pytest.mark.parametrize(("task", "kernel"), PAIRS)
def test_kernels_are_right_on_small_cases(peers, task, kernel):
    task, (file, function) = peers(task), kernel.split(":")
    function = getattr(peers(file), function)
    for case in small(task):
        inputs = task.generate(**{key: value for key, value in case.items() if key != "name"}, seed=5)
        expected = task.reference(**{name: inputs[name] for name in inspect.signature(task.reference).parameters})["y"]
        found = function(**{name: inputs[name] for name in inspect.signature(function).parameters})
        assert found.dtype == expected.dtype and found.shape == expected.shape
        error = (found.double() - expected.double()).norm() / expected.double().norm()
        assert error < task.tolerance["nrmse"], case["name"]


def test_sizes_are_dealt_by_the_seed(peers):
    task = peers("routed_products")
    drawn = {tuple(task.generate([1, 2, 3, 4], 256, 512, seed)["offs"].tolist()) for seed in range(8)}
    assert len(drawn) > 1 and {ends[-1] for ends in drawn} == {10}


def test_drawn_cases_follow_from_their_seed():
    kept = (FOLDER / "drawn.json").read_text(encoding="utf-8")
    again = subprocess.run([sys.executable, FOLDER / "draw.py", str(json.loads(kept)["seed"])], capture_output=True, text=True, check=True)
    assert again.stdout == kept


def test_every_comparison_names_a_task_and_functions(peers):
    names = [comparison[0] for comparison in peers("run").COMPARISONS]
    assert len(set(names)) == len(names)
    for _, task, *kernels, _ in peers("run").COMPARISONS:
        assert (FOLDER / f"{task}.py").exists()
        for file, function in (kernel.split(":") for kernel in kernels):
            assert f"\ndef {function}(" in (FOLDER / file).read_text(encoding="utf-8")


def test_a_comparison_without_an_interval_is_kept_with_its_reason(peers):
    comparison = {
        "assessment": {"suite": None, "problems": [{"name": "a", "interval": None}]},
        "cases": [{"case": "a", "baseline": 2.0, "candidate": 1.0}],
    }
    record = {"verdict": "inconclusive", "reason": "the time was up", "comparison": comparison}
    kept = peers("run").collected(record)
    assert kept["verdict"] == "inconclusive" and kept["reason"] == "the time was up" and kept["suite"] is None
    assert kept["cases"] == [{"case": "a", "baseline": 2.0, "candidate": 1.0, "interval": None}]
