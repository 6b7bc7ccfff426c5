"""What can go wrong in a worker, and in whose code."""

import os
import sys
import traceback

_FOLDER = os.path.dirname(os.path.abspath(__file__))


class Refused(Exception):
    """The kernel cannot be built."""


class Wrong(Exception):
    """The kernel failed, or its result is wrong."""


class Broken(Exception):
    """The worker has no memory or no device."""


class Unfit(Exception):
    """Raised by the loop: the number of a call, and its result, which does not fit the task's outputs."""


def told(error, module_file=None):
    """An exception in words: where it arose in the user's code, its type and its text."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    folder = os.path.dirname(os.path.abspath(module_file)) if module_file else None
    own = [frame for frame in frames if folder and frame.filename.startswith(folder)]
    theirs = [frame for frame in frames if not frame.filename.startswith((_FOLDER, "<frozen"))]
    frame = (own or theirs or [None])[-1]
    where = f"{frame.filename}:{frame.lineno}: " if frame else ""
    return f"{where}{type(error).__name__}: {error}".strip()


def is_out_of_memory(error):
    """Whether memory ran out, on the host or on the device."""
    torch = sys.modules.get("torch")
    kinds = (MemoryError,) + ((torch.cuda.OutOfMemoryError,) if torch is not None else ())
    return isinstance(error, kinds) or "out of memory" in str(error)
