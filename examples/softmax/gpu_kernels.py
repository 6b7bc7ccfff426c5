"""Softmax by torch, and a kernel in Triton that reads each row once."""
import torch
import triton
import triton.language as tl


def by_torch(x):
    return torch.softmax(x, dim=1)


@triton.jit
def softmax_row(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    inside = place < cols
    values = tl.load(x + row * cols + place, mask=inside, other=-float("inf"))
    exponentials = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * cols + place, exponentials / tl.sum(exponentials, axis=0), mask=inside)


def by_triton(x):
    y = torch.empty_like(x)
    rows, cols = x.shape
    softmax_row[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols))
    return y
