"""A stand-in for a GPU that remembers what it is asked for. Tensors on the CPU stand for those on the GPU: it looks into none."""

import pytest
import torch

from gauntlet.nvfp4 import _cuda, _cuda_attention, _cuda_mixture


class Recorder:
    """In the place of a CUDA library."""

    def __init__(self):
        self.calls = []

    @staticmethod
    def mixture_scratch(sizes):
        return 4 * sizes[2]

    def __getattr__(self, name):
        return lambda *call: self.calls.append((name, *call))


@pytest.fixture
def recorder(monkeypatch):
    recorder = Recorder()
    monkeypatch.setattr(_cuda.libraries, "of", {-1: recorder})
    monkeypatch.setattr(_cuda.libraries, "mixtures", set())
    for module in (_cuda, _cuda_attention, _cuda_mixture):
        monkeypatch.setattr(module, "current_stream", lambda device: 7)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    return recorder
