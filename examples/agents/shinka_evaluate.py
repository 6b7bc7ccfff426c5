"""The evaluator of a search by ShinkaEvolve: judges a program, and writes `metrics.json` and `correct.json`.

    python3 shinka_evaluate.py --program_path program.py --results_dir results

ShinkaEvolve calls it so if `LocalJobConfig(eval_program_path="shinka_evaluate.py")` names it; see its own examples for the rest.
With `use_text_feedback=True` the model is told why a program was refused or not faster.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from evaluator import judged, metrics


def reports(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The content of each file, from what `gauntlet.evaluate` returns."""
    told = metrics(found)
    is_right = found["right"] is True
    return {
        "metrics.json": {
            "combined_score": told["combined_score"],
            "public": {"verdict": told["verdict"]},
            "private": {"log_speedup_lower_bound": found["score"]},
            "text_feedback": told["feedback"],
        },
        "correct.json": {"correct": is_right, "error": None if is_right else told["feedback"]},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program_path", required=True)
    parser.add_argument("--results_dir", required=True, type=Path)
    given = parser.parse_args()
    given.results_dir.mkdir(parents=True, exist_ok=True)
    for name, content in reports(judged(given.program_path)).items():
        (given.results_dir / name).write_text(json.dumps(content, indent=4), encoding="utf-8")


if __name__ == "__main__":
    main()
