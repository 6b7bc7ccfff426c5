"""PyTorch tensors, and the devices that they are on. Imports torch."""

import pytest
import torch


def has_hopper():
    return torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9


needs_hopper = pytest.mark.skipif(not has_hopper(), reason="no Hopper GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_hopper)]


def drawn(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
