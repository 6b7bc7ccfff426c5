"""An evaluator for agents that evolve programs (OpenEvolve and its kin): ``evaluate(program_path)`` returns metrics.

Set GAUNTLET_TASK to a task, such as examples/softmax/task.py, and GAUNTLET_BUDGET to the time of one evaluation. Such
agents maximise `combined_score`: here the speed-up that the evidence shows, 1 for as fast as the baseline, and 0 for a
program that is wrong. An uncertain measurement scores lower than a certain one, so a search gains nothing by noise.
"""

from __future__ import annotations

import math
import os
from typing import Any

import gauntlet

TASK = os.environ.get("GAUNTLET_TASK", "examples/softmax/task.py")
BUDGET = os.environ.get("GAUNTLET_BUDGET", "30s")


def evaluate(program_path: str) -> dict[str, Any]:
    """The metrics of a program."""
    found = gauntlet.evaluate(program_path, TASK, budget=BUDGET)
    score = found["score"]
    return {
        "combined_score": 0.0 if score is None else math.exp(score),
        "is_right": float(score is not None),
        "verdict": found["verdict"],
        "feedback": "\n".join(found["reasons"]),
    }
