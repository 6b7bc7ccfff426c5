"""Compiler Flags: asks the compiler for more. On loops that it cannot vectorise that is no help, and the pitch is refuted;
when another contestant has exchanged the loops, that is new evidence, and quick pairs are taken before anything is handed in."""

from author import Move, files, patch, run, verdicts
from contestant import NotPossible, use

MOVE = Move(
    name="flags",
    problem="The library is built with -O2, for any processor.",
    change="Build it with -O3 -march=native.",
    replaced={"cc -O2": "cc -O3 -march=native"},
    speedup=(1.0, 1.3, 3.0),
    odds={"adopt": 0.5, "marginal": 0.1, "valid-negative": 0.25, "regression": 0.15},
    evidence=[("precedent", "Many libraries are built so.")],
    risk=("low", "the compiler may order sums otherwise"),
)


def runs_along_rows(source):
    """Whether the inner loop reads and writes along rows, so that a compiler can vectorise it."""
    return any("+= scale * b[p * n + j]" in text for text in source.values())


def pitch(question):
    source, past = files(question), verdicts(question, MOVE.name)
    if not MOVE.apply(source):
        return {"pass": "there are no flags to change"}
    if not past:
        return {"pitch": MOVE.pitch()}
    if len(past) > 1 or not runs_along_rows(source):
        return {"pass": f"flags were found to be {past[-1]['verdict']}, and the loops are still the same"}
    news = "The inner loop runs along rows now, which a compiler can vectorise: eight or more values at a time."
    return {"pitch": MOVE.pitch(**{"new-evidence": news, "claim": {"speedup": {"q10": 1.5, "q50": 4.0, "q90": 8.0}}})}


def build(question):
    before = files(question)
    after = MOVE.apply(before)
    if not verdicts(question, MOVE.name):
        return {"patch": patch(before, after)}
    for path, text in after.items():
        use("write", path=path, text=text)
    try:
        quick = use("quick")
    except NotPossible:
        return {"workspace": True}
    if quick["verdict"] in ("regression", "valid-negative"):
        return {"withdraw": f"quick pairs say {quick['verdict']} once more"}
    return {"workspace": True}


if __name__ == "__main__":
    run(pitch=pitch, build=build)
