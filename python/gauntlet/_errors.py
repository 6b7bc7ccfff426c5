"""What the judge raises."""

from __future__ import annotations


def kind(value: object) -> str:
    """The type of a value with its article: `an int`."""
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


class GauntletError(Exception):
    """What the judge raises, except for wrong arguments of a function."""


class BadInput(GauntletError, ValueError):
    """A task or a kernel cannot be used as it is given; the message names the place and the remedy."""


class Broken(GauntletError, RuntimeError):
    """Something failed that the arguments do not decide: a full disk, a driver, a worker."""


class Regression(GauntletError, AssertionError):
    """The candidate is slower than the baseline, or wrong."""


class NotShown(GauntletError, AssertionError):
    """The evidence does not decide whether the candidate is slower."""
