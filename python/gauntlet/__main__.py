"""The ``gauntlet`` command: the same program as the binary, in this interpreter's process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Workers are processes of the same program. They start through this file, without the package and without site-packages,
# so that a trial does not pay for imports that no kernel needs.
START = str(Path(__file__).with_name("_start.py"))


def program() -> list[str]:
    """The words that start the command in a process of its own."""
    return [sys.executable, "-I", "-S", START]


def main() -> int:
    """Runs the command with the arguments of this process and returns its exit code."""
    from gauntlet import _native

    # Python kernels run in this interpreter, unless the user has chosen another.
    os.environ.setdefault("GAUNTLET_PYTHON", sys.executable)
    return _native.main(["gauntlet", *sys.argv[1:]], program())


if __name__ == "__main__":
    sys.exit(main())
