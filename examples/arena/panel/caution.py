"""Caution: fears what may go wrong, and votes for a risky pitch on terms only."""

from panellist import SAFETY, flagged, run, vote

TERMS = [
    {"when": "resources.workspace-bytes > 8000000", "why": "scratch memory that no second-level cache holds"},
    {"when": "predicted.speedup < 1.02", "why": "the model sees no gain"},
]


def score(question, pitch):
    safety = SAFETY.get(pitch["risk"]["level"], 5)
    failures = sum(pitch["odds"].get(verdict, 0.0) for verdict in ("regression", "incorrect", "racy", "does-not-compile"))
    flags = flagged(question, pitch)
    if flags:
        return vote(pitch, f"flagged: {flags[0]}", TERMS, True, risk=1, feasibility=4)
    if failures == 0.0:
        return vote(pitch, "whoever sees no way to fail has not looked", TERMS, True, risk=2, feasibility=5)
    if safety <= SAFETY["medium"]:
        return vote(pitch, f"risky by its own words: {pitch['risk']['why']}", TERMS, True, risk=safety)
    return vote(pitch, f"{failures:.0%} of failure is admitted", TERMS[:1], risk=safety)


if __name__ == "__main__":
    run(score)
