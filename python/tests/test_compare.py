"""The judge on real functions: few trials, and no figure that depends on how busy the machine is."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import softmax

import gauntlet

CASES = [{"rows": 64, "cols": 256}]
BUDGET = "20s"
KERNELS = Path(softmax.__file__)


def compare(baseline, candidate, **arguments):
    arguments = {"inputs": softmax.inputs, "cases": CASES, "budget": BUDGET, **arguments}
    return gauntlet.compare(baseline, candidate, progress=False, **arguments)


def test_functions_are_compared_in_fresh_processes():
    # A few trials show a difference of this size; the budget is what a busy machine may need for them.
    verdict = compare(softmax.slow, softmax.plain, budget="5m")
    assert not verdict.is_wrong, verdict
    assert (verdict.baseline, verdict.candidate) == ("slow", "plain")
    assert verdict.trials >= 1
    assert {sample.side for sample in verdict.samples} == {"baseline", "candidate"}
    assert verdict.cases[0].baseline.median > 0
    json.dumps(verdict.to_dict())


def test_a_wrong_function_is_found():
    verdict = compare(softmax.plain, softmax.wrong, reference=softmax.plain)
    assert verdict.verdict == "incorrect" and verdict.about == "wrong"
    with pytest.raises(gauntlet.Regression, match="wrong is incorrect"):
        verdict.assert_no_regression()


def test_a_closure_is_compared():
    pytest.importorskip("cloudpickle")
    power = 1
    verdict = compare(softmax.plain, lambda x: softmax.plain(x) ** power)
    assert not verdict.is_wrong, verdict


def test_a_script_without_a_guard_starts_no_comparison_inside_a_comparison(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import gauntlet\n"
        "import softmax\n"
        "def inputs(rows, cols, seed): return softmax.inputs(rows, cols, seed)\n"
        "def slow(x): return softmax.slow(x)\n"
        "def fast(x): return softmax.plain(x)\n"
        f"print(gauntlet.compare(slow, fast, inputs=inputs, cases={CASES}, budget={BUDGET!r}, progress=False))\n"
    )
    path = os.pathsep.join([str(KERNELS.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, timeout=600, check=False)
    # The command breaks its messages into lines, with a bar before each.
    told = " ".join(done.stderr.replace("│", " ").split())
    assert done.returncode != 0 and 'put the call under `if __name__ == "__main__":`' in told, told


def test_a_task_may_be_an_object_or_a_file(tmp_path):
    task = gauntlet.Task(softmax.inputs, softmax.plain, CASES, name="softmax")
    file = task.write(tmp_path)
    for given in (task, file):
        verdict = gauntlet.judge(softmax.wrong, given, budget=BUDGET, progress=False)
        assert verdict.verdict == "incorrect", verdict


def test_bad_input_says_where_and_what_to_do():
    with pytest.raises(ValueError, match="inputs: it is left out"):
        gauntlet.compare(softmax.plain, softmax.slow)
    with pytest.raises(ValueError, match="cases: it stands beside `task`"):
        gauntlet.compare(softmax.plain, softmax.slow, task="softmax.toml", cases=CASES)
    with pytest.raises(gauntlet.BadInput, match="no-such-task"):
        gauntlet.compare(softmax.plain, softmax.slow, task="no-such-task", progress=False)
    with pytest.raises(gauntlet.BadInput, match="missing"):
        compare(softmax.plain, f"{KERNELS}:missing")


def test_a_program_of_an_agent_gets_a_score(tmp_path):
    task = gauntlet.Task(softmax.inputs, softmax.plain, CASES, name="softmax")
    right = tmp_path / "right.py"
    right.write_text(
        "import numpy as np\n\n\ndef softmax(x):\n    e = np.exp(x - x.max(axis=1, keepdims=True))\n"
        "    return e / e.sum(axis=1, keepdims=True)\n"
    )
    found = gauntlet.evaluate(right, task, budget=BUDGET)
    json.dumps(found, allow_nan=False)
    assert found["verdict"] not in ("incorrect", "does-not-compile"), found
    # On a busy machine the comparison may be undecided or void, and then there may be no score.
    undecided = found["verdict"] in ("inconclusive", "blocked")
    assert undecided if found["score"] is None else math.isfinite(found["score"]), found
    wrong = gauntlet.evaluate(KERNELS, task, function="wrong", budget=BUDGET)
    assert wrong["score"] is None and wrong["verdict"] == "incorrect"
    broken = tmp_path / "broken.py"
    broken.write_text("def softmax(x:\n")
    assert gauntlet.evaluate(broken, task)["verdict"] == "blocked"
    assert "name the kernel with `function`" in gauntlet.evaluate(KERNELS, task)["reasons"][0]
    with pytest.raises(FileNotFoundError, match="program_path"):
        gauntlet.evaluate(tmp_path / "nothing.py", task)


def test_the_plugin_fails_a_test_by_its_verdict(pytester):
    pytester.makepyfile(
        f"""
        import sys
        import pytest
        sys.path.insert(0, {str(KERNELS.parent)!r})
        import softmax

        ARGUMENTS = dict(inputs=softmax.inputs, cases={CASES!r}, progress=False)

        @pytest.mark.gauntlet(allow_inconclusive=True)
        def test_right(gauntlet):
            verdict = gauntlet.compare(softmax.slow, softmax.plain, **ARGUMENTS)
            assert not verdict.is_wrong

        def test_wrong(gauntlet):
            gauntlet(softmax.plain, softmax.wrong, reference=softmax.plain, **ARGUMENTS)
        """
    )
    result = pytester.runpytest_subprocess("--gauntlet-budget", BUDGET, "--strict-markers")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*Regression: wrong is incorrect*", "*= gauntlet =*", "*test_wrong: wrong is incorrect*"])
    assert pytester.runpytest_subprocess("--gauntlet-skip").parseoutcomes() == {"skipped": 2}


def test_the_shim_for_evaluators_of_programs(tmp_path):
    shim = Path(__file__).parents[2] / "examples" / "agents" / "evaluator.py"
    code = f"import runpy; print(callable(runpy.run_path({str(shim)!r})['evaluate']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "True", done.stderr
