"""Layer norm over the rows of a matrix, on a GPU: its tensors are torch's, on `cuda`."""
import torch

EPSILON = 1e-5
cases = {
    "correctness": [{"rows": 5, "cols": 9}, {"rows": 37, "cols": 1000}],
    "benchmark": [{"rows": 8192, "cols": 2048}],
}
tolerance = {"rtol": 1e-4, "atol": 1e-5}


def generate(rows, cols, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    normal = lambda *shape: torch.randn(*shape, device="cuda", generator=generator)  # noqa: E731
    scale = torch.exp(2 * normal(rows, 1) - 2)  # where it is small, EPSILON matters
    return {"x": scale * (normal(rows, cols) + 0.5), "gamma": normal(cols), "beta": normal(cols)}


def reference(x, gamma, beta):
    wide = x.double()
    centred = wide - wide.mean(dim=1, keepdim=True)
    deviation = (centred.square().mean(dim=1, keepdim=True) + EPSILON).sqrt()
    return {"y": (centred / deviation * gamma.double() + beta.double()).float()}


def work(rows, cols):
    return {"flops": 8 * rows * cols, "bytes": 8 * rows * cols + 8 * cols}
