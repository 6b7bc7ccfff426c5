"""Evidence: trusts what was measured, and asks the boldest of those who have measured nothing."""

import math

from panellist import MEASURED, record, run, strength, vote


def is_measured(pitch):
    return any(evidence["kind"] in MEASURED for evidence in pitch["evidence"])


def ask(question):
    guesses = [pitch for pitch in question["pitches"] if not is_measured(pitch)]
    if not guesses:
        return {}
    boldest = max(guesses, key=lambda pitch: pitch["claim"]["speedup"]["q50"])
    text = f"You claim {boldest['claim']['speedup']['q50']:g}× for {boldest['name']}. Which measurement says so?"
    return {"question": {"to": boldest["author"], "text": text}}


def score(question, pitch):
    adopted, settled = record(question, pitch["author"])
    points = strength(pitch)
    # A share of the claim is believed: by the evidence, and by what became of the author's earlier claims.
    believed = points / 10 * (1 + adopted) / (1 + settled)
    claimed = math.log2(max(1.0, pitch["claim"]["speedup"]["q50"]))
    answers = [answer["text"] for answer in question.get("answers", []) if answer["from"] == pitch["author"]]
    reason = f"the strongest evidence is worth {points} of 10; {adopted} of {settled} earlier pitches were adopted"
    if answers:
        reason += f'; asked, the author says "{answers[0][:80]}"'
    return vote(pitch, reason, speedup=5 * believed * claimed, quality=points)


if __name__ == "__main__":
    run(score, ask)
