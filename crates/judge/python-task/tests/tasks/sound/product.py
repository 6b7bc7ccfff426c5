import numpy as np

cases = {"correctness": [{"m": 5, "n": 7, "k": 9}], "benchmark": [{"m": 32, "n": 48, "k": 64}]}
tolerance = {"rtol": 1e-4, "atol": 1e-5}


def generate(m, n, k, seed):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((m, k), dtype=np.float32)
    b = rng.standard_normal((k, n), dtype=np.float32)
    return {"a": a, "b": b}


def reference(a, b):
    return {"c": (a.astype(np.float64) @ b).astype(np.float32)}
