"""NAME: `up` times the SiLU of `gate`, element by element. Put your computation in its place."""

import numpy as np

# Correctness cases are small and odd, so that tails are tried; benchmark cases are timed as well.
cases = {
    "correctness": [{"rows": 3, "cols": 37}, {"rows": 65, "cols": 1000}],
    "benchmark": [{"rows": 1024, "cols": 1024}],
}
tolerance = {"rtol": 1e-5, "atol": 1e-6}


def generate(rows, cols, seed):
    """Every input is drawn from the seed, so that no kernel can know it."""
    rng = np.random.default_rng(seed)
    return {
        "gate": rng.standard_normal((rows, cols), dtype=np.float32),
        "up": rng.standard_normal((rows, cols), dtype=np.float32),
    }


def reference(gate, up):
    """Computes in f64: what is right should be more exact than what is judged by it."""
    wide = gate.astype(np.float64)
    return {"y": (wide / (1 + np.exp(-wide)) * up).astype(np.float32)}


def work(rows, cols):
    return {"flops": 5 * rows * cols, "bytes": 12 * rows * cols}
