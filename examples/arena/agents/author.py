"""What the contestants of this folder share: moves on the text of a source, and plain answers to most phases.

A move is a change that applies wherever its text is found, so it follows from the source as it is now and from nothing that
a program would have to remember between two questions.
"""

import difflib
from dataclasses import dataclass, field

import contestant


@dataclass
class Move:
    """A change to a source, and the pitch for it."""

    name: str
    problem: str
    change: str
    replaced: dict[str, str]
    """Texts that must all be in one file, and what takes their places."""
    speedup: tuple[float, float, float]
    odds: dict[str, float]
    evidence: list[tuple[str, str]]
    risk: tuple[str, str] = ("low", "a few lines of one function")
    hours: float = 0.1
    abort: list[dict[str, str]] = field(default_factory=list)
    plan: str = "keep the baseline"

    def apply(self, files):
        """The file that it changes, with its new text; none if the source is another."""
        for path, text in files.items():
            if all(old in text for old in self.replaced):
                for old, new in self.replaced.items():
                    text = text.replace(old, new)
                return {path: text}
        return {}

    def pitch(self, **more):
        """The pitch in the form of the protocol."""
        q10, q50, q90 = self.speedup
        level, why = self.risk
        return {
            "name": self.name,
            "problem": self.problem,
            "change": self.change,
            "claim": {"speedup": {"q10": q10, "q50": q50, "q90": q90}},
            "odds": self.odds,
            "cost": {"hours": self.hours},
            "risk": {"level": level, "why": why},
            "evidence": [{"kind": kind, "text": text} for kind, text in self.evidence],
            "abort": self.abort,
            "fallback": {"plan": self.plan},
            **more,
        }


def files(question):
    """The source as it is now: path → text of the files that may be changed."""
    source = question["situation"].get("source") or {}
    return {path: text for path, text in source.get("files", {}).items() if path not in source["protected"]}


def verdicts(question, name):
    """The verdicts that this contestant's pitch of that name got in earlier rounds, oldest first."""
    earlier = question["situation"].get("verdicts", [])
    return [past for past in earlier if past["author"] == question["you"] and past["pitch"] == name]


def move_of(question, moves):
    """The move whose pitch the question is about."""
    return next((move for move in moves if move.name == question["pitch"]["name"]), None)


def patch(before, after):
    """The unified diff from the files `before` to those in `after`."""
    lines = []
    for path, text in after.items():
        old, new = before.get(path, "").splitlines(True), text.splitlines(True)
        lines += difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")
    return "".join(lines)


def research(question):
    """Names what bounds the baseline: its longest case, and the work that the source does more often than needed."""
    times = question["situation"]["baseline"].get("times") or {"the only case": 0.0}
    longest = max(times, key=times.get)
    text = f"{longest} takes {times[longest] * 1e6:.0f} µs a call"
    return {"bound-by": "work that the source does more than once", "evidence": [{"kind": "measurement", "text": text}]}


def answer(question):
    """Says what a pitch rests on."""
    return {"text": "My evidence is what I wrote in the pitch; I have measured nothing beyond it."}


def deal(question):
    """Accepts terms: who believes in a change loses nothing by a rule that ends a bad one."""
    return {"accept": True}


def mend(question):
    """Gives up a kernel that was not right."""
    return {"withdraw": f"I do not know how to mend it: {question['mend']['reason']}"}


def lesson(question):
    """Compares the forecast with what was found."""
    name, found = question["pitch"]["name"], question.get("found")
    claimed = question["pitch"]["claim"]["speedup"]["q50"]
    if found is None:
        wrong = f"I claimed {claimed:g}×, and nothing could be measured: {question['reason']}"
        follows = f"{name} must get through the gates before its speed is worth a word"
    elif question["verdict"] == "inconclusive":
        wrong = f"that is open: I claimed {claimed:g}×, {found['middle']:.2f}× was found, and too little was measured"
        follows = f"{name} deserves a longer measurement"
    elif question["verdict"] == "adopt":
        wrong = f"little: I claimed {claimed:g}×, and {found['middle']:.2f}× was found"
        follows = "the same kind of waste is worth looking for elsewhere"
    else:
        wrong = f"I claimed {claimed:g}×, and {found['middle']:.2f}× was found"
        follows = f"{name} is not where the time goes"
    return {"wrong": wrong, "follows": follows}


PHASES = {"research": research, "answer": answer, "deal": deal, "mend": mend, "lesson": lesson}
"""The phases beside `pitch` and `build`, as most contestants here answer them."""


def run(**phases):
    """Runs a contestant that answers the other phases as `PHASES` do."""
    contestant.run(**{**PHASES, **phases})
