"""Functions by where they are defined, so that a fresh process finds them again."""

from __future__ import annotations

import base64
import importlib
import importlib.util
import keyword
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from gauntlet._errors import kind

MAIN = "__gauntlet_main__"
"""The name under which a script is imported, so that its ``if __name__ == "__main__"`` part does not run."""

Place = dict[str, Any]


def place(function: Callable[..., Any]) -> Place:
    """Where a function is defined: module or file and qualified name, or its pickled code.

    Raises:
        TypeError: It is not a function, or one of a notebook or a closure and cloudpickle is not installed.
    """
    if not callable(function):
        raise TypeError(f"it is {kind(function)}; give a function, or a text such as 'softmax.py:fast'")
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None)
    if module and name and "<" not in name:
        found = sys.modules.get(module)
        file = getattr(found, "__file__", None)
        if found is not None and _is_there(found, name, function) and (module != "__main__" or file):
            return {"module": module, "file": file and os.path.abspath(file), "name": name}
    return {"pickle": _pickled(function)}


def _is_there(module: ModuleType, name: str, function: object) -> bool:
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is function


def _pickled(function: Callable[..., Any]) -> str:
    try:
        import cloudpickle
    except ImportError:
        raise TypeError(
            f"{label(function, 'function')} is defined in a notebook or within a function, where a fresh process does not "
            "find it; install the package cloudpickle, or move it to the top level of a file"
        ) from None
    return base64.b64encode(cloudpickle.dumps(function)).decode()


def find(place: Place) -> Callable[..., Any]:
    """The function at a place, imported in this process."""
    if "pickle" in place:
        import pickle

        function: Callable[..., Any] = pickle.loads(base64.b64decode(place["pickle"]))
        return function
    found: Any = _module(place["module"], place["file"])
    for part in place["name"].split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def _module(name: str, file: str | None) -> ModuleType:
    if name != "__main__":
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            # A file that was loaded by its path is not on the search path.
            if error.name is None or not (name + ".").startswith(error.name + ".") or file is None:
                raise
    if file is None:
        raise ModuleNotFoundError(f"no module named {name!r}", name=name)
    own = MAIN if name == "__main__" else name
    if own in sys.modules:
        return sys.modules[own]
    spec = importlib.util.spec_from_file_location(own, file)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{file} is not a Python file", name=name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[own] = module
    sys.path.append(os.path.dirname(file))
    spec.loader.exec_module(module)
    return module


def label(function: object, otherwise: str) -> str:
    """A function's name as a person says it."""
    name = str(getattr(function, "__name__", otherwise))
    return name if name.isidentifier() and not keyword.iskeyword(name) else otherwise


def shim(folder: Path, side: str, function: Callable[..., Any]) -> str:
    """Writes a file through which a fresh process finds the function; returns it as a kernel's text."""
    name = label(function, side)
    try:
        found = place(function)
    except TypeError as error:
        raise TypeError(f"{side}: {error}") from None
    file = folder / f"{side}.py"
    file.write_text(f"{preamble()}\n{name} = find({found!r})\n")
    return f"{file}:{name}"


def preamble() -> str:
    """The first lines of a file that finds functions: the caller's search path, and `find`."""
    package = str(Path(__file__).resolve().parent.parent)
    paths = [os.path.abspath(path) for path in sys.path if not path.endswith(".zip")]
    return (
        "import sys\n\n"
        f"sys.path.extend(path for path in {[*paths, package]!r} if path not in sys.path)\n\n"
        "from gauntlet._functions import find\n"
    )

