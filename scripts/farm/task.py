"""A task whose comparisons take seconds, for tests of farms."""

import numpy as np

cases = {"correctness": [{"n": 9}], "benchmark": [{"n": 100000}]}
tolerance = {"rtol": 1e-12, "atol": 1e-12}


def generate(n, seed):
    return {"x": np.random.default_rng(seed).standard_normal(n)}


def reference(x):
    return {"y": x * 2}
