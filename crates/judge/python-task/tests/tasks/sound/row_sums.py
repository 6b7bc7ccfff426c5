import numpy as np

cases = [{"rows": 20, "cols": 300}]
tolerance = {"rtol": 1e-5, "atol": 1e-5}


def generate(rows, cols, seed):
    rng = np.random.default_rng(seed)
    return {"x": rng.random((rows, cols), dtype=np.float32)}


def reference(x):
    return {"y": x.sum(axis=1, dtype=np.float64).astype(np.float32)}
