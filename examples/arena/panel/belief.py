"""Belief: takes every claim as it stands. After a tournament its forecasts show what that is worth."""

import math

from panellist import run, vote


def score(question, pitch):
    claimed = pitch["claim"]["speedup"]["q50"]
    points = 5 * math.log2(max(1.0, claimed))
    return vote(pitch, f"{claimed:g}× is what we need", speedup=points, feasibility=9, risk=9, quality=7)


if __name__ == "__main__":
    run(score)
