"""Messages of errors."""

import pytest


def error(work, kind):
    """The message of the error of this type that a function raises."""
    with pytest.raises(kind) as raised:
        work()
    return str(raised.value)
