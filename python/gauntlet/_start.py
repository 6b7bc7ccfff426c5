"""Starts the command from its file alone: ``python -I -S _start.py ARGUMENTS``. Imports nothing but the extension."""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType

NAME = "gauntlet._native"
FOLDER = __file__.rpartition("/")[0]


def native() -> ModuleType:
    """The extension beside this file."""
    for suffix in EXTENSION_SUFFIXES:
        loader = ExtensionFileLoader(NAME, f"{FOLDER}/_native{suffix}")
        try:
            spec = spec_from_loader(NAME, loader)
            module = module_from_spec(spec) if spec else None
        except ImportError:
            continue
        if module is None:
            continue
        loader.exec_module(module)
        return module
    sys.exit(f"gauntlet: no extension module in {FOLDER}; install the package again")


if __name__ == "__main__":
    sys.exit(native().main(["gauntlet", *sys.argv[1:]], [sys.executable, "-I", "-S", __file__]))
