"""The modules beside a user's file, for the files of that folder alone.

A folder on ``sys.path`` serves every import of the process: a file in it that is called like a module of the standard
library, or like one that numpy or pandas imports if it can, would run there. The process that computes the expected results
would run a kernel's file so, and a worker the file of its rival.

Compiled files (``__pycache__``) beside sources that are not installed are not read: Python does not compare an unchecked one
(PEP 552) with its source, so it could hold other code.
"""

import functools
import importlib
import importlib.util
import os
import site
import sys
import sysconfig
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    BuiltinImporter,
    ExtensionFileLoader,
    FileFinder,
    PathFinder,
    SourceFileLoader,
)

_HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_real = functools.lru_cache(maxsize=None)(os.path.realpath)


def _installation():
    """The folders of the interpreter's own modules and of installed packages."""
    folders = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    folders += [entry for entry in sys.path if os.path.basename(entry) in ("site-packages", "dist-packages")]
    return tuple(os.path.join(_real(folder), "") for folder in folders if folder)


_INSTALLED = _installation()


def _is_installed(file):
    return _real(file).startswith(_INSTALLED)


class _Source(SourceFileLoader):
    """Loads a module from its source, whatever compiled file lies beside it."""

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


_LOADERS = ((ExtensionFileLoader, EXTENSION_SUFFIXES), (_Source, SOURCE_SUFFIXES))


def _finder(folder):
    """A hook for ``sys.path_hooks``: finds modules in folders that are not installed."""
    if not os.path.isdir(folder or ".") or os.path.join(_real(folder or "."), "").startswith(_INSTALLED):
        raise ImportError("not a folder of the user's own")
    return FileFinder(folder or ".", *_LOADERS)


sys.path_hooks.insert(0, _finder)
sys.path_importer_cache.clear()


def spec_of(name, path):
    """How a file becomes the module of this name."""
    return importlib.util.spec_from_file_location(name, path, loader=_Source(name, path))


class _Others(PathFinder):
    """Finds modules on ``sys.path`` for files that lie elsewhere: all but those in the users' folders."""

    folders = ()

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if path is None and not _holds(cls.folders, _importer()):
            path = elsewhere(cls.folders)
        return PathFinder.find_spec(name, path, target)


def elsewhere(folders):
    """The entries of ``sys.path`` that are none of these folders."""
    hidden = {_real(folder) for folder in folders}
    return [entry for entry in sys.path if _real(entry or ".") not in hidden]


class _OwnModules:
    """Finds the modules of folders if a file in one of them imports them."""

    def __init__(self, folders, refuse):
        self.folders, self.refuse = folders, refuse

    def find_spec(self, name, path=None, target=None):
        if path is not None or not _holds(self.folders, _importer()):
            return None
        own = PathFinder.find_spec(name, self.folders)
        if own is None or own.loader is None:
            # A folder without __init__.py gives way to a module elsewhere, as in Python everywhere.
            return own if own and self._other(name) is None else None
        other = self._other(name) if self.refuse else None
        if other is not None and other.origin != own.origin:
            raise self.refuse(name, own.origin, other.origin)
        return own

    def _other(self, name):
        if name in sys.builtin_module_names:
            return BuiltinImporter.find_spec(name)
        return PathFinder.find_spec(name, elsewhere(self.folders))


def _holds(folders, file):
    # The folder may hold the environment in which numpy is installed, and these files.
    is_own = not file.startswith(_HERE) and any(file.startswith(os.path.join(folder, "")) for folder in folders)
    return is_own and not _is_installed(file)


def _importer():
    """The file whose code imports something now."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file not in (__file__, importlib.__file__) and not file.startswith("<frozen importlib"):
            return file
        frame = frame.f_back
    return ""


def add(*folders, refuse=None):
    """Lets files in these folders, and no others, import the modules there; they find those first. ``refuse`` makes the
    exception for a name that is found elsewhere too; without it the folder's module is taken."""
    sys.meta_path.insert(0, _OwnModules(list(folders), refuse))
    _Others.folders += folders
    sys.meta_path[:] = [_Others if finder is PathFinder else finder for finder in sys.meta_path]
