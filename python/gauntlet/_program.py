"""Asks the judge, which is the extension in this process; its workers are processes of their own."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gauntlet import _native
from gauntlet._errors import BadInput, Broken

Tell = Callable[[str], None]

# The process that has asked the judge. A forked copy of it lacks the threads among which the extension divides work.
_asker: int | None = None

# Options of the command that are arguments of the functions.
_OPTION = re.compile(r"--(activity|budget|cases?|device|executor|pairs|quick|regime|scope|task|warm)\b")


def in_python(text: str, folder: Path) -> str:
    """A message of the judge as a caller of the functions understands it.

    Args:
        text: The message.
        folder: Where the caller's functions were written for the workers; its files mean nothing to the caller.
    """
    text = _OPTION.sub(r"`\1`", text).strip()
    place = re.escape(str(folder)) + "/"
    text = re.sub(place + r"[^/\s]+/task\.py(:\d+)?", "the task", text)
    return re.sub(place + r"(baseline|candidate)\.py(:\d+)?", r"the \1", text)


def command() -> list[str]:
    """The words that start the command in a process of its own, as workers are started."""
    start = str(Path(__file__).with_name("_start.py"))
    return [sys.executable, "-I", "-S", start]


def ask(question: Callable[..., str], *arguments: object, folder: Path, tell: Tell | None) -> dict[str, Any]:
    """Asks the judge, and returns the document that it answers with.

    Args:
        question: A function of the extension.
        arguments: Its first arguments.
        folder: As in `in_python`.
        tell: Called with each event as a line of text; an exception of it ends the comparison.

    Raises:
        BadInput: The judge refuses what it is given.
        Broken: The judge fails, or a process of another comparison calls this, or a forked copy of one that has called it.
        KeyboardInterrupt: It is interrupted; the workers have ended before.
    """
    if "GAUNTLET_WITHIN" in os.environ:
        raise Broken(
            "this comparison is started by a process of another one, which imports the file for its kernels; put the call under "
            "`if __name__ == \"__main__\":`"
        )
    global _asker
    if _asker not in (None, os.getpid()):
        raise Broken(
            "this process is a forked copy of one that has judged, without its threads; judge in a process that is started anew, "
            "such as one of `multiprocessing.get_context(\"spawn\")` or `subprocess`"
        )
    _asker = os.getpid()
    # Workers of Python functions run in this interpreter, unless the caller has chosen another.
    os.environ.setdefault("GAUNTLET_PYTHON", sys.executable)
    try:
        answer = question(*arguments, command(), tell)
    except _native.Refused as error:
        raise BadInput(in_python(str(error), folder)) from None
    except _native.Failed as error:
        raise Broken(in_python(str(error), folder)) from None
    document: dict[str, Any] = json.loads(answer)
    return document
