"""The judge on real functions: few trials, and no figure that depends on how busy the machine is."""

import ast
import contextlib
import json
import math
import os
import runpy
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import softmax

import gauntlet
from gauntlet import _program

CASES = [{"rows": 64, "cols": 256}]
BUDGET = "20s"
KERNELS = Path(softmax.__file__)


def compare(baseline, candidate, **arguments):
    arguments = {"inputs": softmax.inputs, "cases": CASES, "budget": BUDGET, "progress": False, **arguments}
    return gauntlet.compare(baseline, candidate, **arguments)


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


def another(z):
    return z


def test_wrong_arguments_are_told_in_words():
    for arguments, kind, said in [
        ({"budget": 5}, TypeError, "budget: 5 is an int; give a time with its unit, such as '30s'"),
        ({"budget": "5"}, ValueError, "budget: '5' is no time with its unit"),
        ({"cases": {"rows": 64}}, TypeError, "cases: .* is no list of dicts"),
        ({"cases": None}, ValueError, "cases: they are left out, and inputs takes rows, cols"),
        ({"tolerance": 0.1}, TypeError, "tolerance: it is 0.1; give a dict"),
        ({"regime": "hot"}, ValueError, "regime: it is 'hot'; give 'isolated' or 'sustained'"),
        ({"scope": "host"}, ValueError, "scope: it is 'host'; give 'device' or 'call'"),
        ({"device": 3}, TypeError, "device: it is an int; give a GPU's name"),
    ]:
        with pytest.raises(kind, match=said):
            compare(softmax.plain, softmax.slow, **arguments)
    with pytest.raises(TypeError, match="task: it is an int; give a Task"):
        gauntlet.judge(softmax.plain, 5)


def test_messages_name_the_caller_s_own_places():
    missing = "nothing/kernels.py"
    with pytest.raises(gauntlet.BadInput, match=f"there is no file .*{missing}") as told:
        compare(f"{missing}:f", softmax.plain)
    assert "correct the task" not in str(told.value)
    with pytest.raises(gauntlet.BadInput, match="`constant` names `q`, which is no input") as told:
        compare(softmax.plain, softmax.slow, constant=["q"])
    # A message of one piece, without the frame of a terminal and the files in which functions are handed over.
    assert "gauntlet-" not in str(told.value) and "│" not in str(told.value)
    verdict = compare(softmax.plain, another)
    assert verdict.verdict == "does-not-compile"
    assert f"`another` in {__file__}:" in verdict.reason and "gauntlet-" not in verdict.reason


def test_options_of_the_command_are_said_as_arguments():
    told = _program.in_python("give more time with --budget\n/tmp/g/inputs/task.py:3: wrong\n", Path("/tmp/g"))
    assert told == "give more time with `budget`\nthe task: wrong"


def test_progress_is_told_to_a_function():
    told = []
    compare(softmax.plain, softmax.wrong, reference=softmax.plain, progress=told.append)
    assert any("right" in line for line in told), told


def test_cases_and_pairs_are_chosen():
    with pytest.raises(gauntlet.BadInput, match="no benchmark case `huge`"):
        compare(softmax.plain, softmax.slow, case="huge")
    with pytest.raises(gauntlet.BadInput, match="pairs: it is `3`; give a whole number from 6 to 1000"):
        compare(softmax.plain, softmax.slow, pairs=3)


def children():
    """The processes of this one."""
    files = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {child for file in files for child in file.read_text().split()}


@pytest.fixture
def interrupts():
    """Interrupts raise KeyboardInterrupt, also where the tests were started in the background of a shell, which ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_ends_the_workers():
    before = children()

    def interrupt(text):
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        compare(softmax.plain, softmax.slow, budget="10m", progress=interrupt)
    assert children() <= before
    # Nothing of the interrupt is left over for the next comparison.
    assert compare(softmax.plain, softmax.wrong, reference=softmax.plain).verdict == "incorrect"


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_is_no_verdict_on_the_kernels_of_another_thread():
    outcome = []

    def interrupt(text):
        os.kill(os.getpid(), signal.SIGINT)

    def other():
        try:
            outcome.append(compare(softmax.plain, softmax.slow, budget="10m", progress=interrupt))
        except gauntlet.Broken as error:
            outcome.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    # An interrupt may come between two comparisons of this thread, and then ends nothing.
    while thread.is_alive():
        with contextlib.suppress(KeyboardInterrupt):
            compare(softmax.plain, softmax.wrong, reference=softmax.plain)
    assert isinstance(outcome[0], gauntlet.Broken), outcome


def test_pairs_are_added_to_a_result_of_the_command_only(tmp_path):
    with pytest.raises(gauntlet.BadInput, match="nothing.json"):
        gauntlet.add_pairs(tmp_path / "nothing.json", 6)


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
    assert found["right"] is True, found
    wrong = gauntlet.evaluate(KERNELS, task, function="wrong", budget=BUDGET)
    assert wrong["score"] is None and wrong["verdict"] == "incorrect" and wrong["right"] is False
    broken = tmp_path / "broken.py"
    broken.write_text("def softmax(x:\n")
    assert gauntlet.evaluate(broken, task) == {
        "right": False,
        "score": None,
        "verdict": "does-not-compile",
        "reasons": [f"'(' was never closed ({broken.name}, line 1)"],
        "cases": [],
    }
    unnamed = gauntlet.evaluate(KERNELS, task)
    assert "name the kernel with `function`" in unnamed["reasons"][0] and unnamed["right"] is None
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


def test_an_inconclusive_comparison_passes_with_a_warning_unless_the_test_asks(pytester):
    pytester.makepyfile(
        """
        import pytest
        from gauntlet import Interval, Verdict, pytest_plugin

        OPEN = Verdict("inconclusive", "", "a", "b", "b", Interval(0.01, -0.03, 0.05), (), 4, (), {})

        @pytest.fixture(autouse=True)
        def undecided(monkeypatch):
            monkeypatch.setattr(pytest_plugin, "compare", lambda *kernels, **arguments: OPEN)

        def test_passes(gauntlet):
            gauntlet(None, None)

        @pytest.mark.gauntlet(allow_inconclusive=False)
        def test_fails(gauntlet):
            gauntlet(None, None)
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1, failed=1, warnings=1)
    result.stdout.fnmatch_lines(["*NotShown: b is neither shown to be faster nor slower*", "*Undecided: b is neither shown*"])
    # The lines shown are the test's own.
    result.stdout.no_fnmatch_line("*def assert_no_regression*")


def test_a_forked_copy_of_a_process_that_has_judged_is_told_so(tmp_path):
    # In a process of its own: this one has threads.
    script = tmp_path / "forks.py"
    script.write_text(f"""
import os, signal, sys
sys.path.insert(0, {str(KERNELS.parent)!r})
import gauntlet, softmax

def judged():
    return gauntlet.compare(softmax.plain, lambda x: 0 * x, inputs=softmax.inputs, cases={CASES!r}, progress=False).verdict

assert judged() == "incorrect"
if os.fork() == 0:
    signal.alarm(60)
    try:
        judged()
    except gauntlet.Broken as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
""")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert "forked copy of one that has judged" in done.stdout, (done.stdout, done.stderr)


def test_the_example_for_agents_runs_as_its_page_says():
    folder = Path(__file__).parents[2] / "examples" / "agents"
    page = (folder / "README.md").read_text()
    command = page.split("```sh\ncd examples/agents\n")[1].split("\n```")[0]
    python = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    environment = {**os.environ, **python, "GAUNTLET_BUDGET": "1s"}
    words = ["sh", "-c", command]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, env=environment, timeout=600, check=False)
    found = ast.literal_eval(done.stdout.strip() or "{}")
    # A second is never enough to decide, and the program is right all the same.
    assert found.get("is_right") == 1.0 and found["combined_score"] > 0, (found, done.stderr)


def test_a_wrong_program_scores_nothing_and_an_undecided_one_little():
    shim = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "agents" / "evaluator.py"))
    found = {"verdict": "inconclusive", "reasons": ["a", "b"], "cases": []}
    of = lambda right, score: shim["metrics"]({**found, "right": right, "score": score})  # noqa: E731
    assert of(True, 0.0) == {"combined_score": 1.0, "is_right": 1.0, "verdict": "inconclusive", "feedback": "a\nb"}
    assert of(False, None)["combined_score"] == 0.0 and of(False, None)["is_right"] == 0.0
    assert 0 < of(True, None)["combined_score"] < 0.1 and of(True, None)["is_right"] == 1.0
    assert of(None, None)["combined_score"] == 0.0 and "is_right" not in of(None, None)
