import numpy as np

cases = [{"count": 5000, "bins": 40}]


def generate(count, bins, seed):
    rng = np.random.default_rng(seed)
    return {"x": rng.integers(0, bins, count, dtype=np.int32), "bins": np.zeros(bins, np.int32)}


def reference(x, bins):
    return {"counts": np.bincount(x, minlength=len(bins)).astype(np.int32)}
