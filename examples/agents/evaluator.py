"""An evaluator for agents that evolve programs (OpenEvolve and its kin): ``evaluate(program_path)`` returns metrics.

Set GAUNTLET_TASK to a task (examples/softmax/task.py by default) and GAUNTLET_BUDGET to the time of one evaluation. Such
agents maximise `combined_score`: here the speed-up that the evidence shows, 1 for as fast as the baseline, and 0 for a
program that is wrong. An uncertain measurement scores lower than a certain one, so a search gains nothing by noise. A right
program of which too little was measured keeps a small score, so that a search does not take it for a wrong one.

    python3 evaluator.py PROGRAM        # what `gauntlet.evaluate` returns, as a line of JSON
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TASK = os.environ.get("GAUNTLET_TASK") or Path(__file__).resolve().parent.parent / "softmax" / "task.py"
BUDGET = os.environ.get("GAUNTLET_BUDGET", "30s")
RIGHT_BUT_NOT_TIMED = 0.01
"""The score of a right program whose speed is not known: less than any speed that is worth keeping."""


def evaluate(program_path: str) -> Any:
    """The metrics of a program; for OpenEvolve, whose metrics are numbers, with what is said in words as artifacts."""
    found = metrics(judged(program_path))
    if "openevolve" not in sys.modules:
        return found
    from openevolve.evaluation_result import EvaluationResult

    numbers = {name: value for name, value in found.items() if isinstance(value, float)}
    words = {name: value for name, value in found.items() if isinstance(value, str)}
    return EvaluationResult(metrics=numbers, artifacts=words)


def judged(program_path: str) -> dict[str, Any]:
    """What `gauntlet.evaluate` returns, asked in a process of its own.

    OpenEvolve evaluates in forked copies of its process, and a copy of a process that has judged before cannot judge.
    """
    command = [sys.executable, __file__, program_path]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def metrics(found: dict[str, Any]) -> dict[str, Any]:
    """What `gauntlet.evaluate` returns, as metrics. `is_right` is left out where it is not known."""
    right, score = found["right"], found["score"]
    if not right:
        combined = 0.0
    elif score is None:
        combined = RIGHT_BUT_NOT_TIMED
    else:
        combined = math.exp(score)
    return {
        "combined_score": combined,
        **({} if right is None else {"is_right": float(right)}),
        "verdict": found["verdict"],
        "feedback": "\n".join(found["reasons"]),
    }


def main(program_path: str) -> None:
    import gauntlet

    print(json.dumps(gauntlet.evaluate(program_path, TASK, budget=BUDGET)))


if __name__ == "__main__":
    main(*sys.argv[1:])
