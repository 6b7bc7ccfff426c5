"""Runs the command in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gauntlet._errors import BadInput, Broken

BAD_INPUT, BROKEN, INTERRUPTED = 2, 3, 130
TAIL = 4000
"""Characters of the command's messages that an exception holds at most."""


# Options of the command that are arguments of the functions.
_OPTION = re.compile(r"--(activity|budget|device|executor|regime|scope|task|warm)\b")
# The mark before a message, and the bar before its further lines.
_FRAME = re.compile(r"^ *[×│] ?", re.MULTILINE)


def in_python(text: str, folder: Path) -> str:
    """A message of the command as a caller of the functions understands it.

    Args:
        text: The message.
        folder: Where the caller's functions were written for the command; its files mean nothing to the caller.
    """
    text = _OPTION.sub(r"`\1`", _FRAME.sub("", text)).strip()
    place = re.escape(str(folder)) + "/"
    text = re.sub(place + r"[^/\s]+/task\.py(:\d+)?", "the task", text)
    return re.sub(place + r"(baseline|candidate)\.py(:\d+)?", r"the \1", text)


def command() -> list[str]:
    """The words that start the command."""
    start = str(Path(__file__).with_name("_start.py"))
    return [sys.executable, "-I", "-S", start]


def run(arguments: Sequence[str], result: Path, *, progress: bool) -> dict[str, Any]:
    """Runs the command, which writes its result to a file, and returns the result.

    Args:
        arguments: The command's arguments, without ``--json``.
        result: Where the result is written.
        progress: Whether the command's progress is shown on standard error.

    Raises:
        BadInput: The command refuses what it is given.
        Broken: The command fails, or writes no result, or a process of another comparison calls this.
        KeyboardInterrupt: It is interrupted; the command has ended its workers before.
    """
    if "GAUNTLET_WITHIN" in os.environ:
        raise Broken(
            "this comparison is started by a process of another one, which imports the file for its kernels; put the call under "
            "`if __name__ == \"__main__\":`"
        )
    words = [*command(), *arguments, "--json", str(result)]
    # Workers of Python functions run in this interpreter, unless the caller has chosen another. Messages are not broken into
    # lines where the exception repeats them.
    environment = {"GAUNTLET_PYTHON": sys.executable, **os.environ, **({} if progress else {"COLUMNS": "10000"})}
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=None if progress else subprocess.PIPE,
        env=environment,
        text=True,
        errors="replace",
    ) as process:
        try:
            _, messages = process.communicate()
        except KeyboardInterrupt:
            # In a notebook only this process is interrupted; at a terminal the command is as well.
            process.send_signal(2)
            process.wait()
            raise
    told = in_python((messages or "")[-TAIL:], result.parent)
    if process.returncode == BAD_INPUT:
        raise BadInput(told or "the command refuses its input; it says why above")
    if process.returncode == INTERRUPTED:
        raise KeyboardInterrupt
    if process.returncode not in (0, 1, 4) or not result.exists():
        raise Broken(told or f"the command ended with exit code {process.returncode}; it says why above")
    found: dict[str, Any] = json.loads(result.read_text())
    return found
