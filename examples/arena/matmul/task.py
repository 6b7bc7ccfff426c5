"""c = a·b of small matrices."""
import numpy as np

cases = {
    "correctness": [{"m": 3, "n": 5, "k": 7}, {"m": 33, "n": 17, "k": 65}, {"m": 1, "n": 100, "k": 30}],
    "benchmark": [{"m": 128, "n": 128, "k": 64}],
}
tolerance = {"rtol": 1e-4, "atol": 1e-4}


def generate(m, n, k, seed):
    rng = np.random.default_rng(seed)
    return {
        "a": rng.standard_normal((m, k), dtype=np.float32),
        "b": rng.standard_normal((k, n), dtype=np.float32),
    }


def reference(a, b):
    return {"c": (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)}


def work(m, n, k):
    return {"flops": 2 * m * n * k, "bytes": 4 * (m * k + k * n + m * n)}
