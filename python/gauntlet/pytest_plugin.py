"""The pytest plugin: the fixture `gauntlet` compares two kernels, and a regression fails the test.

    def test_softmax(gauntlet):
        gauntlet(torch_softmax, triton_softmax, inputs=make_inputs, cases=[{"rows": 4096}])

    @pytest.mark.gauntlet(budget="5m", allow_inconclusive=False)
    def test_that_has_to_decide(gauntlet): ...

An inconclusive comparison passes with a warning, because on a shared machine most harmless changes end so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from gauntlet import Verdict, compare

VERDICTS = pytest.StashKey[list[tuple[str, Verdict]]]()
MARKER = "gauntlet(budget=None, allow_inconclusive=True, **arguments): how the fixture `gauntlet` compares in this test"


class Undecided(UserWarning):
    """A comparison passed although its evidence does not decide whether the candidate is slower."""


class Comparison:
    """What the fixture gives: call it like `gauntlet.compare`; a regression fails the test."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        marker = request.node.get_closest_marker("gauntlet")
        self._arguments: dict[str, Any] = dict(marker.kwargs) if marker else {}
        budget = request.config.getoption("--gauntlet-budget")
        if budget is not None:
            self._arguments["budget"] = budget

    def __call__(self, baseline: Any, candidate: Any, **arguments: Any) -> Verdict:
        """Compares, and raises if the candidate is wrong or shown to be slower. If the evidence does not decide, it warns.

        Raises:
            Regression: It is slower, or wrong; the message has the interval.
            NotShown: It could not be judged; or the evidence does not decide, and `allow_inconclusive` is false.
        """
        __tracebackhide__ = True
        arguments = {**self._arguments, **arguments}
        allow_inconclusive = bool(arguments.pop("allow_inconclusive", True))
        verdict = self.compare(baseline, candidate, **arguments)
        verdict.assert_no_regression(allow_inconclusive=allow_inconclusive)
        if verdict.verdict == "inconclusive":
            warnings.warn(f"{verdict}; give more time with `budget`", Undecided, stacklevel=2)
        return verdict

    def compare(self, baseline: Any, candidate: Any, **arguments: Any) -> Verdict:
        """Compares, and leaves it to the test what to require."""
        verdict = compare(baseline, candidate, **arguments)
        node = self._request.node
        node.user_properties.append(("gauntlet", str(verdict)))
        node.config.stash[VERDICTS].append((node.nodeid, verdict))
        return verdict


@pytest.fixture
def gauntlet(request: pytest.FixtureRequest) -> Callable[..., Verdict]:
    """Compares two kernels like `gauntlet.compare`; a regression fails the test with the interval in its message, and an
    inconclusive comparison passes with a warning."""
    if request.config.getoption("--gauntlet-skip"):
        pytest.skip("comparisons are left out by --gauntlet-skip")
    return Comparison(request)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    group = parser.getgroup("gauntlet", "comparisons of kernels")
    group.addoption("--gauntlet-budget", metavar="TIME", help="time for each comparison, such as 20s")
    group.addoption("--gauntlet-skip", action="store_true", help="skip tests that compare")


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    config.addinivalue_line("markers", MARKER)
    config.stash[VERDICTS] = []


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Lists the verdicts."""
    verdicts = config.stash.get(VERDICTS, [])
    if verdicts:
        terminalreporter.section("gauntlet")
        for test, verdict in verdicts:
            terminalreporter.write_line(f"{test}: {verdict}")
            for note in verdict.notes:
                terminalreporter.write_line(f"  note: {note}")
