"""Takes turns with the coordinator as the host's loop does, for kernels that replace it."""

import json
import os


def say(pipes, line):
    """Says a line, and waits for the coordinator."""
    requests, replies = pipes
    os.write(replies, line)
    os.read(requests, 1)


def ready(tensors):
    """The line before a call, with where arrays of the host lie."""
    places = {name: [array.ctypes.data] for name, array in tensors.items()}
    return json.dumps({"inputs": places}).encode() + b"\n"


def placed(seconds):
    """The line after the operands were copied to a GPU."""
    return json.dumps({"placed": seconds}).encode() + b"\n"


def over(pipes, seconds):
    """Says that a call on a GPU has ended, which is not answered."""
    os.write(pipes[1], json.dumps({"over": seconds}).encode() + b"\n")


def done(seconds, result):
    """The line after a call."""
    return json.dumps({"call": seconds, "outputs": [[result.ctypes.data]]}).encode() + b"\n"


def tensors_of(worker, copy):
    """The tensors of a copy."""
    return worker.copies[copy % len(worker.copies)][1]
