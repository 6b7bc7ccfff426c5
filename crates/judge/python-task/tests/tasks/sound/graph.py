import numpy as np

cases = [{"rows": 50, "edges": 600}]
tolerance = {"rtol": 1e-9, "atol": 1e-9}


def generate(rows, edges, seed):
    rng = np.random.default_rng(seed)
    graph = rng
    return {
        "i": graph.integers(0, rows, edges),
        "j": graph.integers(0, rows, edges),
        "v": rng.standard_normal(edges),
        "b": rng.standard_normal(rows),
    }


def reference(i, j, v, b):
    return {"y": np.bincount(i, weights=v * b[j], minlength=len(b))}
