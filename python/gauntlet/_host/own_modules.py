"""The modules beside a user's file, for the files of that folder alone.

A folder in front of ``sys.path`` serves every import of the process: a file in it that is called like a module of the
standard library would run as soon as numpy imports that module for itself. The process that computes the expected results
would run a kernel's file so, and a worker the file of its rival.
"""

import importlib
import os
import sys
from importlib.machinery import PathFinder


class _OwnModules:
    """Finds the modules of folders if a file in one of them imports them."""

    def __init__(self, folders):
        self.folders = folders

    def find_spec(self, name, path=None, target=None):
        if path is None and self._holds(_importer()):
            return PathFinder.find_spec(name, self.folders)
        return None

    def _holds(self, file):
        # The folder may hold the environment in which numpy is installed.
        is_installed = file.startswith(os.path.join(sys.prefix, ""))
        return not is_installed and any(file.startswith(os.path.join(folder, "")) for folder in self.folders)


def _importer():
    """The file whose code imports something now."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file not in (__file__, importlib.__file__) and not file.startswith("<frozen importlib"):
            return file
        frame = frame.f_back
    return ""


def add(*folders):
    """Lets files in these folders import each other first. All other files find them last."""
    sys.meta_path.insert(0, _OwnModules(list(folders)))
    sys.path.extend(folders)
