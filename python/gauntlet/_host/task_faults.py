"""Errors of a user's task, with file, line and remedy."""

import contextlib
import inspect
import os
import reprlib
import sys
import traceback


class TaskFault(Exception):
    """What is wrong with a task, where, and how to correct it."""

    def __init__(self, message, remedy, file=None, line=None):
        super().__init__(message)
        self.message, self.remedy, self.file, self.line = message, remedy, file, line

    def answer(self):
        """The fault as an answer of the reference process."""
        return {"message": self.message, "remedy": self.remedy, "file": self.file, "line": self.line}


def place_of(function):
    """File and line of a function's definition; none for a function that is not written in Python."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else (None, None)


def fault_at(function, message, remedy):
    """A fault at the definition of a function."""
    return TaskFault(message, remedy, *place_of(function))


def brief(value):
    """A value in a few words, whatever its size."""
    try:
        return reprlib.repr(value)
    except ValueError:
        # Python does not write integers of thousands of digits.
        return f"a huge {type(value).__name__}"


@contextlib.contextmanager
def told(doing, folders):
    """Turns an exception of the user's code into a fault at the innermost line of the user's own files. ``doing`` says
    what was being done, such as ``in `reference` on rows=3``."""
    try:
        yield
    except TaskFault:
        raise
    except SyntaxError as error:
        remedy = "correct the line"
        raise TaskFault(f"{type(error).__name__}: {error.msg}", remedy, error.filename, error.lineno) from None
    except (Exception, SystemExit) as error:
        file, line = _innermost(error, folders)
        if _wants_a_gpu(error):
            message = f"the task makes CUDA tensors, and there is no GPU that PyTorch finds ({doing})"
            remedy = "use a machine with an NVIDIA GPU; `gauntlet doctor` says what is missing"
            raise TaskFault(message, remedy, file, line) from error
        text = str(error).strip() or "no message"
        message = f"{type(error).__name__} {doing}: {text}"
        raise TaskFault(message, _remedy(error, text), file, line) from error


def _innermost(error, folders):
    """The innermost frame of an exception whose file lies in one of the folders; else the innermost of all outside this
    program."""
    frames = traceback.extract_tb(error.__traceback__)
    here = os.path.dirname(os.path.abspath(__file__))
    others = [frame for frame in frames if not os.path.abspath(frame.filename).startswith(here + os.sep)]
    own = [frame for frame in others if any(_lies_in(frame.filename, folder) for folder in folders)]
    for frame in reversed(own or others):
        return frame.filename, frame.lineno
    return None, None


def _lies_in(file, folder):
    return os.path.realpath(file).startswith(os.path.realpath(folder) + os.sep)


def _wants_a_gpu(error):
    """Whether an exception says, in one of many ways, that PyTorch has no GPU."""
    torch = sys.modules.get("torch")
    if torch is None or isinstance(error, SystemExit) or torch.cuda.is_available():
        return False
    return any(sign in str(error) for sign in ("CUDA", "NVIDIA")) or "Cannot access accelerator device" in str(error)


def _remedy(error, text):
    if isinstance(error, ModuleNotFoundError) and error.name:
        return (
            f"install `{error.name.split('.')[0]}` for the Python at {sys.executable}, or name another Python "
            "by GAUNTLET_PYTHON"
        )
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "there is not enough memory: make the case smaller, or use a larger machine"
    return "correct the task; the line is that of the innermost call in its own files"
