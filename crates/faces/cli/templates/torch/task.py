"""NAME: `up` times the SiLU of `gate`, element by element. Put your computation in its place."""

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

# Correctness cases are small and odd, so that tails are tried; benchmark cases are timed as well.
cases = {
    "correctness": [{"rows": 3, "cols": 37}, {"rows": 65, "cols": 1000}],
    "benchmark": [{"rows": 1024, "cols": 1024}],
}
tolerance = {"rtol": 1e-5, "atol": 1e-6}


def generate(rows, cols, seed):
    """Every input is drawn from the seed, so that no kernel can know it."""
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    drawn = (torch.randn(rows, cols, device=DEVICE, generator=generator) for _ in range(2))
    return dict(zip(("gate", "up"), drawn))


def reference(gate, up):
    """Computes in f64: what is right should be more exact than what is judged by it."""
    return {"y": (torch.nn.functional.silu(gate.double()) * up).float()}


def work(rows, cols):
    return {"flops": 5 * rows * cols, "bytes": 12 * rows * cols}
