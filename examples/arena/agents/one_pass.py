"""One Pass: finds work that a kernel does twice, and does it once. It checks and times its change before it hands it in."""

from author import Move, files, move_of, run, verdicts
from contestant import NotPossible, use

SURE = {"adopt": 0.85, "marginal": 0.05, "valid-negative": 0.05, "incorrect": 0.05}

MOVES = [
    Move(
        name="one-exponential",
        problem="e is raised to every element twice, for the quotient and for the sum, and by a general power.",
        change="Call np.exp once, and sum what it returns.",
        replaced={
            "powers = np.e**shifted": "powers = np.exp(shifted)",
            "sums = (np.e**shifted).sum(": "sums = powers.sum(",
        },
        speedup=(1.5, 2.5, 4.0),
        odds=SURE,
        evidence=[
            ("calculation", "A power costs more than all other steps, and one of two is left out."),
            ("reference", "numpy has vector code for exp; a power needs a logarithm first."),
        ],
    ),
    Move(
        name="in-place",
        problem="The mean and the differences from it are computed twice, and each step makes a new array.",
        change="Keep the differences, and scale and shift them in place.",
        replaced={
            "    mean = np.mean(x, axis=1, keepdims=True)\n": "    y = x - np.mean(x, axis=1, keepdims=True)\n",
            "np.mean((x - np.mean(x, axis=1, keepdims=True)) ** 2, axis=1, keepdims=True)":
                "np.mean(y * y, axis=1, keepdims=True)",
            "    normalised = (x - mean) / np.sqrt(variance + EPSILON)\n": "    y *= 1 / np.sqrt(variance + EPSILON)\n",
            "    return normalised * gamma + beta\n": "    y *= gamma\n    y += beta\n    return y\n",
        },
        speedup=(1.2, 1.5, 2.0),
        odds=SURE,
        evidence=[("calculation", "Of eight arrays of the size of the matrix two are left.")],
    ),
    Move(
        name="loop-order",
        problem="The inner loop walks down the columns of a and c: each value comes from another cache line.",
        change="Turn the loops round, so that rows of b and c are read along.",
        replaced={
            "    for (int64_t j = 0; j < n; j++) {\n        for (int64_t p":
                "    for (int64_t i = 0; i < m; i++) {\n        for (int64_t p",
            "            for (int64_t i = 0; i < m; i++) c[i * n + j] += a[i * k + p] * b[p * n + j];\n":
                "            const float scale = a[i * k + p];\n"
                "            for (int64_t j = 0; j < n; j++) c[i * n + j] += scale * b[p * n + j];\n",
        },
        speedup=(1.3, 2.0, 4.0),
        odds=SURE,
        evidence=[("reference", "Memory is read in lines of 64 bytes: 16 values along a row, one down a column.")],
    ),
]


OPEN = ("inconclusive", "blocked")
"""Verdicts that say nothing against a change: it is worth another measurement."""


def pitch(question):
    for move in MOVES:
        past = verdicts(question, move.name)
        if move.apply(files(question)) and (not past or past[-1]["verdict"] in OPEN):
            return {"pitch": move.pitch()}
    return {"pass": "I see no work that is done twice"}


def build(question):
    """Writes the change by the tools, and withdraws it if it is not right or not worth having by quick pairs."""
    for path, text in move_of(question, MOVES).apply(files(question)).items():
        use("write", path=path, text=text)
    try:
        checked = use("check")
        if not checked["right"]:
            return {"withdraw": f"it does not pass the check: {checked['findings']}"}
        quick = use("quick")
    except NotPossible:
        return {"workspace": True}  # no more checks are left: what counts is measured anyway
    if quick["verdict"] in ("regression", "valid-negative"):
        return {"withdraw": f"quick pairs say {quick['verdict']}: {quick['reason']}"}
    return {"workspace": True}


if __name__ == "__main__":
    run(pitch=pitch, build=build)
