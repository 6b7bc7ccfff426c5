"""Verdicts read from the command's results."""

import json
import math
import subprocess
import sys

import pytest

from gauntlet import NotShown, Regression, _picture, _program, _verdict


def interval(low, estimate, high):
    return {"estimate": math.log(estimate), "lower": math.log(low), "upper": math.log(high)}


def record(verdict, suite, cases=("4096x1024", "4096x8192")):
    blocks = [{"process": trial, "baseline": [2.0, 3.0], "candidate": [1.0, 2.0]} for trial in range(4)]
    return {
        "verdict": verdict,
        "reason": "by the suite's interval",
        "comparison": {
            "assessment": {"suite": suite, "problems": [{"name": case, "interval": suite} for case in cases]},
            "cases": [{"case": case, "blocks": blocks} for case in cases],
        },
    }


FASTER = record("adopt", interval(1.109, 1.123, 1.138))
SLOWER = record("regression", interval(1 / 1.2, 1 / 1.1, 1 / 1.05))
FASTER_COLOUR = _picture.FASTER
OPEN = record("inconclusive", interval(0.97, 1.01, 1.05))
WRONG = {"comparison": None, "side": "candidate", "verdict": "incorrect", "reason": "4 of 9 elements differ"}


def read(found):
    return _verdict.read(found, "torch_softmax", "triton_softmax")


def test_a_verdict_says_which_kernel_is_faster_and_by_how_much():
    assert str(read(FASTER)) == "triton_softmax is faster by 12.3 % [10.9 … 13.8]: adopt; right on 2 cases, 4 trials"
    # As in the command's reports: a fraction of the baseline's speed.
    assert str(read(SLOWER)) == "triton_softmax is slower by 9.1 % [4.8 … 16.7]: regression; right on 2 cases, 4 trials"
    assert str(read(OPEN)) == (
        "triton_softmax is neither shown to be faster nor slower, +1.0 % [−3.0 … +5.0]: inconclusive; right on 2 cases, "
        "4 trials"
    )
    assert str(read(WRONG)) == "triton_softmax is incorrect: 4 of 9 elements differ"
    stopped = {"comparison": None, "side": "baseline", "verdict": "does-not-compile", "reason": "a syntax error"}
    assert str(read(stopped)) == "torch_softmax does not compile: a syntax error"


def test_words_of_others_are_shown_with_escapes():
    found = read({**WRONG, "reason": "a\x1b[31mb\x07\u202e\nc"})
    assert str(found) == "triton_softmax is incorrect: a\\u{1b}[31mb\\u{7}\\u{202e}\nc"
    assert found.reason.startswith("a\x1b"), "as data they stay as they are"


def test_times_of_a_void_comparison_say_nothing():
    found = record("blocked", interval(1.1, 1.2, 1.3))
    found["reason"] = "the machine is too busy"
    assert str(read(found)) == "triton_softmax is blocked: the machine is too busy"
    assert read(found).score is None
    with pytest.raises(NotShown, match="is blocked: the machine is too busy"):
        read(found).assert_no_regression(allow_inconclusive=True)


@pytest.mark.parametrize("verdict", ["blocked", "inconclusive"])
def test_times_that_decide_nothing_are_drawn_without_the_colour_of_a_verdict(verdict):
    assert FASTER_COLOUR not in read(record(verdict, interval(1.1, 1.2, 1.3))).to_html()


def test_requirements_pass_on_evidence_only():
    read(FASTER).assert_no_regression()
    read(FASTER).assert_faster()
    read(record("valid-negative", interval(0.999, 1.0, 1.001))).assert_no_regression()
    with pytest.raises(Regression, match=r"slower by 9.1 % \[4.8 … 16.7\]"):
        read(SLOWER).assert_no_regression()
    with pytest.raises(Regression, match="is incorrect"):
        read(WRONG).assert_no_regression(allow_inconclusive=True)
    with pytest.raises(NotShown, match="give more time with `budget`"):
        read(OPEN).assert_no_regression()
    read(OPEN).assert_no_regression(allow_inconclusive=True)
    with pytest.raises(NotShown):
        read(OPEN).assert_faster()
    with pytest.raises(Regression):
        read(SLOWER).assert_faster()


def test_whether_results_are_right_does_not_depend_on_times():
    assert read(FASTER).is_right and read(SLOWER).is_right and read(OPEN).is_right
    for verdict in ("incorrect", "racy", "does-not-compile"):
        assert read({**WRONG, "verdict": verdict}).is_right is False
    # The baseline was stopped, so that nothing is known about the candidate.
    assert read({**WRONG, "side": "baseline"}).is_right is None
    blocked = {**WRONG, "verdict": "blocked", "findings": []}
    assert read(blocked).is_right is None
    passed = {"gate": "right", "outcome": "pass"}
    assert read({**blocked, "findings": [passed]}).is_right is True
    # Times that mean nothing, of kernels that were shown to be right before.
    assert read({**OPEN, "verdict": "blocked"}).is_right is True
    assert read(OPEN).to_dict()["right"] is True and read(WRONG).to_dict()["right"] is False


@pytest.mark.parametrize("ratio, said", [(0.5, "50.0 % [49.0 … 51.0]"), (0.9, "10.0 % [9.1 … 10.9]"), (2.0, "100 % [98.0 … 102]")])
def test_every_face_of_a_result_has_the_same_percentages(ratio, said, tmp_path):
    """A result of the command, in every form that it writes, and as the package reads it."""
    times = [1 + 0.01 * math.sin(1.7 * number) for number in range(40)]
    for name, factor in (("before", 1), ("after", 1 / ratio)):
        rows = [f"{process},{factor * times[process]!r}" for process in range(40)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["process,seconds", *rows]) + "\n")
    forms = [word for form in ("json", "html", "markdown", "junit") for word in (f"--{form}", str(tmp_path / form))]
    words = [*_program.command(), "compare", "--samples", "before.csv", "after.csv", *forms]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    record = json.loads((tmp_path / "json").read_text())
    verdict = _verdict.read(record, "before", "after")
    estimate, bounds = verdict.speedup.span.split(" %")[0], verdict.speedup.span.split("[")[1].rstrip("]")
    faces = {form: (tmp_path / form).read_text() for form in ("html", "markdown", "junit")}
    faces |= {"terminal": done.stdout, "Python": str(verdict), "dict": verdict.to_dict()["text"], "notebook": verdict.to_html()}
    faces["pytest"] = str(verdict)
    for face, text in faces.items():
        assert f"{estimate} %" in text, (face, text)
        assert face == "notebook" or bounds in text or str(verdict.speedup) in text, (face, text)
    assert verdict.speedup.percent in verdict.to_html()


def test_the_score_is_the_lower_bound():
    assert read(FASTER).score == pytest.approx(math.log(1.109))
    assert read(WRONG).score is None


def test_a_verdict_says_its_regime_and_scope_where_they_are_known():
    loaded = {**FASTER, "comparison": {**FASTER["comparison"], "regime": "sustained", "scope": "call"}}
    assert read(loaded).scope == "call" and read(FASTER).scope is None
    assert str(read(loaded)) == f"{read(FASTER)}, sustained calls"
    assert read(loaded).to_dict()["regime"] == "sustained"
    assert read(FASTER).regime is None and read(WRONG).regime is None


def test_what_is_noted_of_the_task_is_in_every_form():
    noted = read({**FASTER, "notes": ["<the> result was the same"]})
    assert noted.notes == ("<the> result was the same",) and read(WRONG).notes == ()
    assert json.loads(json.dumps(noted.to_dict()))["notes"] == ["<the> result was the same"]
    assert "note: &lt;the&gt; result was the same" in noted.to_html()


def test_a_verdict_is_plain_data_and_a_page():
    verdict = read(FASTER)
    plain = json.loads(json.dumps(verdict.to_dict()))
    assert plain["verdict"] == "adopt" and plain["cases"][0]["baseline"]["median"] == 2.5
    assert len(verdict.samples) == 2 * 4 * 4
    page = verdict._repr_html_()
    assert page.count("<circle") == 3 and "12.3 %" in page and FASTER_COLOUR in page
    assert "<svg" not in read(WRONG).to_html()


def test_samples_are_a_frame_if_pandas_is_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="install it, or read `samples`"):
        read(FASTER).to_frame()


def test_samples_as_a_frame():
    pytest.importorskip("pandas")
    frame = read(FASTER).to_frame()
    assert list(frame.columns) == ["case", "trial", "side", "seconds"] and len(frame) == 32
