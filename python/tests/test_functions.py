"""Functions are found again in fresh processes, and tasks are written for the command."""

import importlib.util
import subprocess
import sys

import pytest
import softmax

from gauntlet import Task, _functions
from gauntlet._task import named, parameters_of


def printed_by(file, *arguments):
    """What a fresh interpreter prints that imports a file and calls its function."""
    text, name = file.rpartition(":")[0], file.rpartition(":")[2]
    code = (
        "import importlib.util, sys; spec = importlib.util.spec_from_file_location('shim', sys.argv[1]); "
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module); "
        f"print(module.{name}({', '.join(map(repr, arguments))}))"
    )
    return subprocess.run([sys.executable, "-c", code, text], check=True, capture_output=True, text=True).stdout.strip()


def test_a_function_of_a_module_is_found_by_its_name(tmp_path):
    text = _functions.shim(tmp_path, "candidate", softmax.plain)
    assert text == f"{tmp_path}/candidate.py:plain"
    assert _functions.place(softmax.Kernels.nested)["name"] == "Kernels.nested"
    assert "pickle" not in (tmp_path / "candidate.py").read_text()


def test_a_file_that_is_on_no_path_is_found(tmp_path):
    file = tmp_path / "alone.py"
    file.write_text("def double(x):\n    return 2 * x\n")
    spec = importlib.util.spec_from_file_location("alone", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules["alone"] = module
    spec.loader.exec_module(module)
    assert printed_by(_functions.shim(tmp_path, "candidate", module.double), 4) == "8"


def test_a_script_is_imported_without_its_main_part(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom gauntlet import _functions\n\n"
        "def triple(x):\n    return 3 * x\n\n"
        "if __name__ == '__main__':\n    print(_functions.shim(Path(sys.argv[1]), 'candidate', triple))\n"
    )
    text = subprocess.run([sys.executable, script, tmp_path], check=True, capture_output=True, text=True).stdout.strip()
    assert printed_by(text, 5) == "15"


def test_closures_travel_by_cloudpickle(tmp_path):
    pytest.importorskip("cloudpickle")
    factor = 7
    assert printed_by(_functions.shim(tmp_path, "candidate", lambda x: factor * x), 6) == "42"


def test_closures_without_cloudpickle_are_refused_with_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(TypeError, match="candidate: function is defined in a notebook.*install the package cloudpickle"):
        _functions.shim(tmp_path, "candidate", lambda x: x)
    with pytest.raises(TypeError, match="baseline: it is an int; give a function"):
        _functions.shim(tmp_path, "baseline", 3)


def test_a_task_is_written_as_a_file(tmp_path):
    task = Task(softmax.inputs, softmax.plain, [{"rows": 2, "cols": 3}], {"rtol": 1e-3}, constant=["x"], name="soft max")
    file = task.write(tmp_path)
    assert file == tmp_path / "soft-max" / "task.py"
    spec = importlib.util.spec_from_file_location("written", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (module.cases, module.tolerance, module.constant) == ([{"rows": 2, "cols": 3}], {"rtol": 1e-3}, ["x"])
    assert module.generate is softmax.inputs and module.reference is softmax.plain
    assert Task(path="softmax.toml").write(tmp_path).is_absolute()


@Task.define(cases=[{"count": 8}])
class Doubling:
    """A task as a class."""

    def generate(count, seed):
        return {"x": list(range(count))}

    def reference(x):
        return [2 * value for value in x]


def test_a_class_becomes_a_task(tmp_path):
    assert Doubling.name == "Doubling" and Doubling.reference([3]) == [6]
    assert "'name': 'Doubling.generate'" in Doubling.write(tmp_path).read_text()


def test_a_task_says_what_is_wrong_with_it(tmp_path):
    with pytest.raises(ValueError, match="generate: it is left out"):
        Task()
    with pytest.raises(ValueError, match="cases: there are none"):
        Task(softmax.inputs)
    with pytest.raises(TypeError, match="reference: it is an int"):
        Task(softmax.inputs, 3, [{}])
    with pytest.raises(ValueError, match="path: it stands beside other arguments"):
        Task(softmax.inputs, path="task.py")
    with pytest.raises(TypeError, match="cases: Object of type set is not JSON serializable"):
        Task(softmax.inputs, None, [{"rows": {1}}])
    for cases in ({"rows": 4}, [3], {"benchmark": {"rows": 4}}, "rows"):
        with pytest.raises(TypeError, match="cases: .* is no list of dicts; give a dict for each case"):
            Task(softmax.inputs, None, cases)
    with pytest.raises(TypeError, match='tolerance: it is 0.1; give a dict such as {"rtol"'):
        Task(softmax.inputs, None, [{}], 0.1)


def test_inputs_without_names_get_those_of_the_baseline():
    assert parameters_of(softmax.plain) == ["x"]
    assert named(lambda seed: seed, ["x"])(seed=3) == {"x": 3}
    assert named(lambda seed: (1, 2), ["x", "y"])(seed=3) == {"x": 1, "y": 2}
    assert named(lambda seed: {"z": 1}, ["x"])(seed=3) == {"z": 1}
    with pytest.raises(ValueError, match="inputs returned 2 values, and the baseline takes 1: x"):
        named(lambda seed: (1, 2), ["x"])(seed=3)
