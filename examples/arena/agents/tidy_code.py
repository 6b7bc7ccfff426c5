"""Tidy Code: gives the same work other names, and believes that it is faster. Hands in a patch."""

from author import Move, files, move_of, patch, run, verdicts

MOVES = [
    Move(
        name="tidy",
        problem="The code is hard to read, so it cannot be fast.",
        change="Name each step, and write the greatest value of a row in a line of its own.",
        replaced={
            "shifted = wide - wide.max(axis=1, keepdims=True)":
                "greatest = wide.max(axis=1, keepdims=True)\n    shifted = wide - greatest",
            "return (powers / sums).astype(np.float32)": "quotients = powers / sums\n    return quotients.astype(np.float32)",
        },
        speedup=(1.0, 1.15, 1.3),
        odds={"adopt": 0.5, "marginal": 0.3, "valid-negative": 0.2},
        evidence=[("intuition", "Clear code is fast code.")],
        risk=("none", "only names change"),
    ),
]


def pitch(question):
    for move in MOVES:
        past = verdicts(question, move.name)
        if past:
            return {"pass": f"{move.name} was found to be {past[-1]['verdict']}, and I have no other evidence"}
        if move.apply(files(question)):
            return {"pitch": move.pitch()}
    return {"pass": "the code is tidy"}


def build(question):
    before = files(question)
    return {"patch": patch(before, move_of(question, MOVES).apply(before))}


if __name__ == "__main__":
    run(pitch=pitch, build=build)
