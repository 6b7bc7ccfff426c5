"""As routed_products.py, on shapes that were drawn at random from configurations of published models (draw.py)."""

from routed_products import SMALL_PRODUCTS, generate, listed, reference, tolerance  # noqa: F401
from shapes import DRAWN

cases = listed(SMALL_PRODUCTS, DRAWN["products"])
