"""Verdicts: the outcome of a comparison."""

from __future__ import annotations

import html
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from gauntlet._errors import NotShown, Regression

if TYPE_CHECKING:
    import pandas

FASTER = ("adopt", "marginal")
NOT_SLOWER = (*FASTER, "valid-negative")
VOID = ("blocked", "aborted")
UNDECIDED = ("inconclusive", *VOID)
WRONG = ("incorrect", "racy", "does-not-compile")


@dataclass(frozen=True)
class Interval:
    """A log speed-up with its bounds: positive where the candidate is faster."""

    estimate: float
    lower: float
    upper: float

    @classmethod
    def of(cls, found: Mapping[str, Any] | None) -> Interval | None:
        """The interval of a record; none without evidence."""
        return cls(found["estimate"], found["lower"], found["upper"]) if found else None

    # The extension writes percentages as the command does. It is imported when a figure is shown.

    def __str__(self) -> str:
        from gauntlet import _native

        return _native.percent_interval((self.estimate, self.lower, self.upper))

    @property
    def percent(self) -> str:
        """The estimate as a percentage: `+12.3 %`."""
        from gauntlet import _native

        return _native.percent(self.estimate)

    @property
    def span(self) -> str:
        """An interval on one side of zero without a sign: `12.3 % [10.9 … 13.8]`."""
        from gauntlet import _native

        return _native.percent_span((self.estimate, self.lower, self.upper))


@dataclass(frozen=True)
class Stats:
    """Times of one side in seconds, by the names of pytest-benchmark."""

    min: float
    max: float
    mean: float
    stddev: float
    median: float
    iqr: float
    rounds: int

    @classmethod
    def of(cls, times: Sequence[float]) -> Stats | None:
        """The statistics of times; none of no times."""
        if not times:
            return None
        several = len(times) > 1
        quarters = statistics.quantiles(times, n=4, method="inclusive") if several else [0.0, 0.0, 0.0]
        return cls(
            min(times),
            max(times),
            statistics.fmean(times),
            statistics.stdev(times) if several else 0.0,
            statistics.median(times),
            quarters[2] - quarters[0],
            len(times),
        )


@dataclass(frozen=True)
class Sample:
    """One measured time: the median call of a slot."""

    case: str
    trial: int
    side: str
    seconds: float


@dataclass(frozen=True)
class CaseResult:
    """One case of a comparison: its log speed-up, and the times of both sides."""

    case: str
    speedup: Interval | None
    baseline: Stats | None
    candidate: Stats | None


@dataclass(frozen=True)
class Verdict:
    """The outcome of a comparison.

    `speedup` is the geometric mean over the cases, as a log speed-up of the candidate over the baseline; none if a
    kernel was stopped before it was timed.
    """

    verdict: str
    """adopt, marginal, valid-negative, regression, inconclusive, incorrect, does-not-compile, racy, blocked, …"""
    reason: str
    baseline: str
    candidate: str
    about: str
    """The name of the side that the verdict is about."""
    speedup: Interval | None
    cases: tuple[CaseResult, ...]
    trials: int
    samples: tuple[Sample, ...] = field(repr=False)
    record: Mapping[str, Any] = field(repr=False)
    """The whole result of the command."""

    @property
    def score(self) -> float | None:
        """The lower bound of the log speed-up: what a search maximises; none if the candidate was stopped,
        or could not be judged."""
        return self.speedup.lower if self.speedup and not self.is_wrong and not self.is_void else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What is special about the task, was not honoured of it, or makes the verdict weaker."""
        return tuple(self.record.get("notes", ()))

    @property
    def regime(self) -> str | None:
        """In which state of the device calls were timed: isolated or sustained; none if nothing was timed."""
        return (self.record.get("comparison") or {}).get("regime")

    @property
    def scope(self) -> str | None:
        """How calls on a GPU were clocked: on the device alone, or as a whole (call) with what the host does; none on a CPU."""
        return (self.record.get("comparison") or {}).get("scope")

    @property
    def is_right(self) -> bool | None:
        """Whether the candidate's results are right: False if they are wrong, change from call to call, or do not come; None
        if that is not known, for example because the baseline failed or the machine could not run it."""
        if self.about != self.candidate:
            return None
        if self.verdict in WRONG:
            return False
        passed = any(found["gate"] == "right" and found["outcome"] == "pass" for found in self.record.get("findings", ()))
        return True if passed or self.record.get("comparison") else None

    @property
    def is_void(self) -> bool:
        """Whether it could not be judged, so that its times mean nothing; `reason` says why."""
        return self.verdict in VOID

    @property
    def is_wrong(self) -> bool:
        """Whether a side is wrong, does not compile, or cannot run, so that its speed does not matter."""
        return self.verdict not in (*NOT_SLOWER, "regression", *UNDECIDED)

    def __str__(self) -> str:
        # Names and reasons have words of others.
        from gauntlet._native import visible

        return visible(self._sentence())

    def _sentence(self) -> str:
        verdict = self.verdict.replace("-", " ")
        if self.speedup is None or self.is_wrong or self.is_void:
            does = verdict if self.verdict == "does-not-compile" else f"is {verdict}"
            return f"{self.about} {does}: {self.reason}"
        right = f"right on {len(self.cases)} case{'s' * (len(self.cases) != 1)}"
        regime = f", {self.regime} calls" if self.regime else ""
        return f"{self._direction(self.speedup)}: {verdict}; {right}, {self.trials} trials{regime}"

    def _direction(self, speedup: Interval) -> str:
        if speedup.lower > 0:
            return f"{self.candidate} is faster by {speedup.span}"
        if speedup.upper < 0:
            return f"{self.candidate} is slower by {speedup.span}"
        return f"{self.candidate} is neither shown to be faster nor slower, {speedup}"

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain data, without the samples and the record."""
        own = {
            name: getattr(self, name)
            for name in ("verdict", "reason", "notes", "baseline", "candidate", "about", "trials", "score", "regime", "scope")
        }
        own["right"] = self.is_right
        speedup = asdict(self.speedup) if self.speedup else None
        return {**own, "text": str(self), "speedup": speedup, "cases": [asdict(case) for case in self.cases]}

    def to_frame(self) -> pandas.DataFrame:
        """The samples as a pandas frame with the columns case, trial, side and seconds.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("a frame needs the package pandas; install it, or read `samples`") from None
        columns = ["case", "trial", "side", "seconds"]
        return pandas.DataFrame([asdict(sample) for sample in self.samples], columns=columns)

    def to_html(self) -> str:
        """The verdict as a fragment of HTML with a picture of the intervals."""
        from gauntlet._picture import picture

        notes = "".join(f"<p>note: {html.escape(note)}</p>" for note in self.notes)
        return f"<div><p><strong>{html.escape(str(self))}</strong></p>{notes}{picture(self)}</div>"

    def _repr_html_(self) -> str:
        return self.to_html()

    def assert_no_regression(self, *, allow_inconclusive: bool = False) -> None:
        """Passes if the candidate is right and shown not to be slower.

        Args:
            allow_inconclusive: Whether evidence that allows more than one answer passes too.

        Raises:
            Regression: It is slower, or wrong; the message has the interval.
            NotShown: The evidence does not decide.
        """
        # pytest shows the test's line and not this one.
        __tracebackhide__ = True
        if self.verdict in NOT_SLOWER or (allow_inconclusive and self.verdict == "inconclusive"):
            return
        if self.verdict in UNDECIDED:
            raise NotShown(f"{self}; give more time with `budget`, or pass allow_inconclusive=True")
        raise Regression(str(self))

    def assert_faster(self) -> None:
        """Passes if the candidate is right and shown to be faster.

        Raises:
            Regression: It is slower, or wrong; the message has the interval.
            NotShown: The evidence does not show that it is faster.
        """
        __tracebackhide__ = True
        if self.verdict in FASTER:
            return
        raise (Regression if self.verdict == "regression" or self.is_wrong else NotShown)(str(self))


def read(record: Mapping[str, Any], baseline: str, candidate: str) -> Verdict:
    """The verdict of the command's result."""
    comparison = record.get("comparison")
    if not comparison:
        about = baseline if record["side"] == "baseline" else candidate
        return Verdict(record["verdict"], record["reason"], baseline, candidate, about, None, (), 0, (), dict(record))
    assessment = comparison["assessment"]
    speedups = {problem["name"]: Interval.of(problem.get("interval")) for problem in assessment["problems"]}
    cases: list[CaseResult] = []
    samples: list[Sample] = []
    trials: set[int] = set()
    for times in comparison["cases"]:
        sides: dict[str, list[float]] = {"baseline": [], "candidate": []}
        for block in times["blocks"]:
            trials.add(block["process"])
            for side, own in sides.items():
                own.extend(block[side])
                samples.extend(Sample(times["case"], block["process"], side, seconds) for seconds in block[side])
        cases.append(
            CaseResult(
                times["case"], speedups.get(times["case"]), Stats.of(sides["baseline"]), Stats.of(sides["candidate"])
            )
        )
    return Verdict(
        record["verdict"],
        record["reason"],
        baseline,
        candidate,
        candidate,
        Interval.of(assessment.get("suite")),
        tuple(cases),
        len(trials),
        tuple(samples),
        dict(record),
    )
