"""As products.py, of single layers of 8192 × 8192 weights."""

from products import generate, listed, reference, tolerance  # noqa: F401
from shapes import DENSE, SMALL_DENSE

cases = listed(SMALL_DENSE, DENSE)
