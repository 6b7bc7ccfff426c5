"""As products.py, but only the device knows how many tokens each group has: the seed deals the sizes to the groups."""

import random

from products import SEEDS, SMALL_PRODUCTS, generate as with_sizes, listed, reference, tolerance  # noqa: F401

cases = listed(SMALL_PRODUCTS, SEEDS)


def generate(lengths, n, k, seed):
    dealt = list(lengths)
    random.Random(seed).shuffle(dealt)
    return with_sizes(dealt, n, k, seed)
