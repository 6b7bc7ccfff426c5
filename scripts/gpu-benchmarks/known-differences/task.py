"""Copies an array of 132 x 256 elements: one block of 256 threads on each of the 132 multiprocessors of an H100 or H200."""
import numpy as np

cases = {"correctness": [{"n": 1000}], "benchmark": [{"n": 132 * 256}]}
tolerance = {"rtol": 1e-6, "atol": 0}


def generate(n, seed):
    return {"x": np.random.default_rng(seed).standard_normal(n, dtype=np.float32)}


def reference(x):
    return {"y": x.copy()}
