"""NVFP4 tensors and the kernels that multiply them, on numpy arrays and PyTorch tensors.

An NVFP4 matrix has e2m1 values, two a byte, low nibble first; one e4m3 scale for each 16 values along a row; and one
``float`` scale for the whole matrix. Element ``(r, c)`` is ``e2m1(r, c) * e4m3(r, c // 16) * tensor_scale``.

>>> import numpy as np
>>> from gauntlet import nvfp4
>>> tokens = nvfp4.quantize(np.ones((4, 64), np.float32))
>>> weights = nvfp4.quantize(np.full((32, 64), 0.5, np.float32))
>>> float(nvfp4.grouped_mm(tokens, weights)[0, 0])
32.0

Nothing here needs PyTorch, a GPU or a CUDA toolkit until it is given something that does.
"""

from gauntlet.nvfp4._attention import attention
from gauntlet.nvfp4._checkpoint import Checkpoint, load
from gauntlet.nvfp4._layers import linear, moe
from gauntlet.nvfp4._models import convert, load_checkpoint, repack
from gauntlet.nvfp4._products import Weights, grouped_mm, swiglu_grouped_mm
from gauntlet.nvfp4._tensor import BLOCK, Tensor, dequantize, quantize, stack
from gauntlet._native import set_threads as set_num_threads
from gauntlet._native import threads as get_num_threads

__all__ = [
    "BLOCK",
    "Checkpoint",
    "Tensor",
    "Weights",
    "attention",
    "convert",
    "dequantize",
    "get_num_threads",
    "grouped_mm",
    "linear",
    "load",
    "load_checkpoint",
    "moe",
    "quantize",
    "repack",
    "set_num_threads",
    "stack",
    "swiglu_grouped_mm",
]
