"""As attention.py, on shapes that were drawn at random from configurations of published models (draw.py)."""

from attention import SMALL_ATTENTION, generate, listed, reference, tolerance  # noqa: F401
from shapes import DRAWN

cases = listed(SMALL_ATTENTION, DRAWN["attention"])
