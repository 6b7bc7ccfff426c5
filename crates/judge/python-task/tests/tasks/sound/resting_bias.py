import numpy as np

cases = {"correctness": [{"rows": 3, "biased": True}], "benchmark": [{"rows": 21, "biased": True}, {"rows": 21, "biased": False}]}
tolerance = {"rtol": 1e-5, "atol": 1e-6}
constant = "bias"


def generate(rows, biased, seed):
    rng = np.random.default_rng(seed)
    bias = rng.standard_normal(33, dtype=np.float32)
    return {"x": rng.standard_normal((rows, 33), dtype=np.float32), "bias": bias if biased else 0 * bias}


def reference(x, bias):
    return {"y": np.maximum(x + bias, 0)}
