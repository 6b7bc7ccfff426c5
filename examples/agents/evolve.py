"""A search in the manner of ShinkaEvolve, in one file: an archive, parents drawn by score, a model that rewrites them, a
refusal of what is not new, and Gauntlet as the judge.

    MODEL_COMMAND='my-model --temperature 1' python3 evolve.py program.py --generations 20

MODEL_COMMAND is any command that reads a prompt from standard input and writes a program in a block of ```python.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import evaluator

PROMPT = """Make this kernel faster. It must stay right for all sizes and inputs, and keep the name of its function.
Answer with the whole program in one block of ```python, and nothing else.

The program, whose score is {score:.3f} (the speed-up that is shown over the baseline; 0 if it is wrong):
```python
{code}
```
The judge says of it: {feedback}
{others}"""
OTHER = """
Another program, whose score is {score:.3f}:
```python
{code}
```"""
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@dataclass
class Program:
    """A program of the archive."""

    code: str
    score: float
    feedback: str
    generation: int


def search(
    start: str,
    propose: Callable[[str], str],
    evaluate: Callable[[str], dict[str, Any]],
    generations: int,
    draw: random.Random,
) -> list[Program]:
    """Evolves a program, and returns the archive, the best first. `propose` answers a prompt; `evaluate` judges code."""
    archive = [judged(start, evaluate, 0)]
    known = {form(start)}
    for generation in range(1, generations + 1):
        # Among equally often chosen parents better ones come first: the chance falls with the rank.
        ranked = sorted(archive, key=lambda program: -program.score)
        parent = draw.choices(ranked, [0.5**rank for rank in range(len(ranked))])[0]
        others = "".join(OTHER.format(**vars(other)) for other in ranked[:2] if other is not parent)
        block = BLOCK.search(propose(PROMPT.format(**vars(parent), others=others)))
        # A program that differs in comments or spaces only was judged already: a measurement of it would only add luck.
        if block and (new := form(block[1])) and new not in known:
            known.add(new)
            archive.append(judged(block[1], evaluate, generation))
    return sorted(archive, key=lambda program: -program.score)


def form(code: str) -> str | None:
    """What a program is without comments and layout; none if it is no Python."""
    try:
        return ast.dump(ast.parse(code))
    except SyntaxError:
        return None


def judged(code: str, evaluate: Callable[[str], dict[str, Any]], generation: int) -> Program:
    found = evaluate(code)
    return Program(code, found["combined_score"], found["feedback"], generation)


def by_gauntlet(code: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(code, encoding="utf-8")
        return evaluator.evaluate(str(path))


def by_command(prompt: str) -> str:
    command = shlex.split(os.environ["MODEL_COMMAND"])
    return subprocess.run(command, input=prompt, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--generations", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    start = given.program.read_text(encoding="utf-8")
    archive = search(start, by_command, by_gauntlet, given.generations, random.Random(given.seed))
    for program in archive:
        print(f"generation {program.generation}: {program.score:.3f}  {program.feedback.splitlines()[0]}")
    print(archive[0].code, end="")


if __name__ == "__main__":
    main()
