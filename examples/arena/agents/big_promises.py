"""Big Promises: claims much with no evidence, refuses all terms, and pitches its refuted change again.

Without new evidence the second pitch is refused; then it names some, which is thin but new. Refuted twice, it passes.
"""

import re

from author import Move, files, run, verdicts

SUM = re.compile(r"sums = (.+)\.sum\(axis=1, keepdims=True\)")

MOVE = Move(
    name="running-totals",
    problem="Sums of rows are slow.",
    change="Take the last of the running totals of a row as its sum.",
    replaced={},
    speedup=(2.5, 3.0, 4.0),
    odds={"adopt": 0.97, "marginal": 0.03},
    evidence=[("intuition", "Running totals are known to be fast.")],
    risk=("none", "nothing can go wrong"),
)


def pitch(question):
    past = verdicts(question, MOVE.name)
    if len(past) > 1:
        return {"pass": f"I was told twice: {past[-1]['verdict']}"}
    if not SUM.search(files(question).get("kernel.py", "")):
        return {"pass": "no rows are summed"}
    if "refused" not in question:
        return {"pitch": MOVE.pitch()}
    if not past:
        return {"pass": question["refused"]}
    news = "The source has changed since: less is computed besides the sums, so they are a larger share of a call."
    return {"pitch": MOVE.pitch(**{"new-evidence": news})}


def build(question):
    return {"files": {"kernel.py": SUM.sub(r"sums = np.cumsum(\1, axis=1)[:, -1:]", files(question)["kernel.py"])}}


def answer(question):
    return {"text": "Everybody knows that running totals are fast. 3× is a careful estimate."}


def deal(question):
    return {"accept": False}


if __name__ == "__main__":
    run(pitch=pitch, build=build, answer=answer, deal=deal)
