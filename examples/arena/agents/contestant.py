"""The conversation of a contestant or panellist with Gauntlet: lines of JSON on standard input and output.

A program says what it does in each phase, and runs:

    def pitch(question):
        return {"pass": "I have nothing to propose"}

    contestant.run(pitch=pitch)
"""

import json
import sys


class NotPossible(Exception):
    """A tool could not be used; the message says why."""


def run(**phases):
    """Reads the question and answers it by the function of its phase.

    If an answer is refused, the function is asked again, with the reason as `question["refused"]`.
    """
    question = _read()
    while question is not None:
        _write({"answer": phases[question["phase"]](question)})
        reply = _read()  # nothing comes if the answer was taken
        question = None if reply is None else {**question, "refused": reply["refused"]}


def use(tool, **arguments):
    """Uses a tool, such as `use("read", path="kernel.py")`, and returns its result."""
    _write({"call": tool, "arguments": arguments})
    reply = _read() or {"error": "Gauntlet has closed the conversation"}
    if "error" in reply:
        raise NotPossible(reply["error"])
    return reply["result"]


def _read():
    line = sys.stdin.readline()
    return json.loads(line) if line.strip() else None


def _write(message):
    print(json.dumps(message), flush=True)
