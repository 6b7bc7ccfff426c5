import numpy as np

cases = [{"rows": 20, "cols": 33}]
tolerance = {"rtol": 1e-5, "atol": 1e-6}


def generate(rows, cols, seed):
    rng = np.random.default_rng(seed)
    mask = rng.random((rows, cols)) < 0.7
    return {"x": rng.standard_normal((rows, cols), dtype=np.float32), "mask": mask}


def reference(x, mask):
    sums = np.where(mask, x, 0).sum(axis=1, dtype=np.float64)
    return {"y": (sums / np.maximum(mask.sum(axis=1), 1)).astype(np.float32)}
