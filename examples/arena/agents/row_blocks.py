"""Row Blocks: softmax by blocks of rows that stay in the first-level cache, in single precision.

Its first version leaves out the rows that fill no block, which no benchmark case has. Told so, it mends that, checks the
mended kernel, and pitches again with that as new evidence.
"""

from author import Move, files, run, verdicts
from contestant import use

FIRST = '''"""Softmax over the rows of a matrix, by blocks of rows."""
import numpy as np

BLOCK = 32


def softmax(x):
    y = np.empty_like(x)
    for first in range(0, len(x) - BLOCK + 1, BLOCK):
        rows = y[first : first + BLOCK]
        np.subtract(x[first : first + BLOCK], x[first : first + BLOCK].max(axis=1, keepdims=True), out=rows)
        np.exp(rows, out=rows)
        rows /= rows.sum(axis=1, keepdims=True)
    return y
'''
# A slice ends with the matrix, so the last block may be shorter.
MENDED = FIRST.replace("range(0, len(x) - BLOCK + 1, BLOCK)", "range(0, len(x), BLOCK)")

MOVE = Move(
    name="row-blocks",
    problem="Arrays of the whole matrix in double precision go through the caches once for each step.",
    change="Do all steps on 32 rows at a time, in single precision, in place.",
    replaced={},
    speedup=(1.5, 2.5, 5.0),
    odds={"adopt": 0.6, "valid-negative": 0.2, "regression": 0.1, "incorrect": 0.1},
    evidence=[("calculation", "32 rows of 512 values take 64 KiB, the whole matrix in double precision 512 KiB.")],
    risk=("medium", "the function is written anew"),
    plan="keep the arrays, and convert them to single precision",
)


def pitch(question):
    text = files(question).get("kernel.py", "")
    if "def softmax" not in text or "BLOCK" in text:
        return {"pass": "there are no rows to be blocked"}
    past = verdicts(question, MOVE.name)
    if not past:
        return {"pitch": MOVE.pitch()}
    if past[-1]["verdict"] == "incorrect":
        news = "The rows that fill no block are computed now; the mended kernel passes the gates of correctness."
        return {"pitch": MOVE.pitch(**{"new-evidence": news})}
    return {"pass": f"it was found to be {past[-1]['verdict']}"}


def build(question):
    was_wrong = any(past["verdict"] == "incorrect" for past in verdicts(question, MOVE.name))
    return {"files": {"kernel.py": MENDED if was_wrong else FIRST}}


def mend(question):
    if "def softmax" not in files(question).get("kernel.py", ""):
        return {"withdraw": "this is another kernel"}
    use("write", path="kernel.py", text=MENDED)
    return {"workspace": True} if use("check")["right"] else {"withdraw": "it is still wrong"}


def answer(question):
    return {"text": "A block of 64 KiB fits in the second-level cache with room to spare; nothing is measured yet."}


if __name__ == "__main__":
    run(pitch=pitch, build=build, mend=mend, answer=answer)
