"""Which modules a list of names excludes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase


def is_excluded(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns names the module, or a module that contains it. A pattern is a name, perhaps with ``*``,
    or a regular expression for the beginning of a name after ``re:``."""
    return any(
        re.match(pattern[3:], name) is not None
        if pattern.startswith("re:")
        else fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*")
        for pattern in patterns
    )
