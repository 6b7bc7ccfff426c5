"""Softmax by CuPy, on tensors of torch."""
import cupy
import torch


@cupy.fuse()
def scaled(exponentials, sums):
    return exponentials / sums


def by_cupy(x):
    with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        given = cupy.from_dlpack(x)
        exponentials = cupy.exp(given - given.max(axis=1, keepdims=True))
        return torch.from_dlpack(scaled(exponentials, exponentials.sum(axis=1, keepdims=True)))
