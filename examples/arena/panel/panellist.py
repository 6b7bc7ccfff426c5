"""What the panellists of this folder share. The conversation is that of the contestants."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "agents"))

import contestant  # noqa: E402

MEASURED = ("measurement", "profile")
"""Kinds of evidence that somebody has looked at."""
STRENGTH = {"intuition": 1, "precedent": 3, "reference": 5, "calculation": 6, "profile": 9, "measurement": 10}
"""Points for the strongest evidence of a pitch."""
SAFETY = {"none": 9, "low": 8, "medium": 5, "high": 3, "very-high": 1}
"""Points for the risk that a pitch declares."""


def strength(pitch):
    """Points for the strongest evidence of a pitch."""
    return max((STRENGTH.get(evidence["kind"], 0) for evidence in pitch["evidence"]), default=0)


def flagged(question, pitch):
    """What the mechanical checks say of a pitch."""
    return [flag for flag in question.get("flags", []) if pitch["name"] in str(flag)]


def record(question, author):
    """How many pitches of an author were adopted, and how many had a verdict."""
    earlier = [past["verdict"] for past in question["situation"].get("verdicts", []) if past["author"] == author]
    return earlier.count("adopt"), len(earlier)


def between(least, value, most):
    return max(least, min(value, most))


def vote(pitch, reason, terms=(), conditional=False, **scores):
    """A vote in the form of the protocol; scores that are left out follow from the written rules."""
    points = {of: between(0.0, float(score), 10.0) for of, score in scores.items()}
    return {"pitch": pitch["name"], "scores": points, "reason": reason, "terms": list(terms), "conditional": conditional}


def run(score, ask=lambda question: {}):
    """Runs a panellist that scores each pitch by `score(question, pitch)` and asks by `ask(question)`."""
    votes = lambda question: {"votes": [score(question, pitch) for pitch in question["pitches"]]}  # noqa: E731
    contestant.run(question=ask, vote=votes)
