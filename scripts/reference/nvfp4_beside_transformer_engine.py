#!/usr/bin/env python3
"""Compares the NVFP4 quantiser with TransformerEngine's, on the CPU: scales and codes, and why they differ where they do.

    pip download --no-deps transformer_engine_cu13 && unzip transformer_engine_cu13-*.whl -d FOLDER
    scripts/reference/nvfp4_beside_transformer_engine.py FOLDER [--json FILE]

TransformerEngine quantises by a CUDA kernel for Blackwell GPUs, and tests it against a reference in PyTorch, which runs
anywhere. This script runs that reference from an unpacked wheel, without the rest of the package, which needs a GPU.
Needs the package `gauntlet` and PyTorch.
"""

import argparse
import importlib.util
import json
import sys
import types
from pathlib import Path

import torch

from gauntlet import nvfp4

ROWS, COLUMNS, BLOCK = 256, 1024, 16
MIDPOINTS = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0], dtype=torch.double)
"""Between neighbouring magnitudes of e2m1."""

SCALES = torch.arange(127, dtype=torch.uint8).view(torch.float8_e4m3fn).double()
SCALE_MIDPOINTS = (SCALES[1:] + SCALES[:-1]) / 2
"""Between neighbouring numbers of e4m3 that are not negative."""

NEAR = 3e-7
"""How near to a midpoint, relatively, f32 may round a quotient to it or beyond it: 2.5 units in the last place."""


def reference(folder):
    """The class of the reference quantiser. Of the modules that its own imports only names are needed."""
    package = "transformer_engine.pytorch.custom_recipes"

    def stand_in(name, **names):
        module = sys.modules[name] = types.ModuleType(name)
        module.__dict__.update(names, __path__=[])
        return module

    for name in ("transformer_engine", "transformer_engine.pytorch"):
        stand_in(name)
    recipes = stand_in(package)
    stand_in("transformer_engine.pytorch.quantized_tensor", QuantizedTensorStorage=object, Quantizer=object)
    recipes.gemm = stand_in(f"{package}.gemm", GEMMType=types.SimpleNamespace(FPROP=None), MMParams=None)
    for name in ("reference_utils", "reference_nvfp4"):
        path = Path(folder, *package.split("."), f"{name}.py")
        spec = importlib.util.spec_from_file_location(f"{package}.{name}", path)
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        setattr(recipes, name, module)
        spec.loader.exec_module(module)
    return module.NVFP4QuantizerRef


def matrices():
    """Matrices by name: with outliers, of tiny values, and with rows of very different size."""
    torch.manual_seed(1)
    for name in ("normal", "outliers", "tiny", "rows of different size"):
        values = torch.randn(ROWS, COLUMNS)
        if name == "outliers":
            values[torch.rand_like(values) < 0.001] *= 100
        elif name == "tiny":
            values *= 1e-6
        elif name == "rows of different size":
            values *= torch.exp(4 * torch.randn(ROWS, 1))
        for dtype in (torch.float32, torch.bfloat16):
            yield f"{name}, {dtype}".replace("torch.", ""), values.to(dtype)


def near(values, midpoints):
    """Which values are at one of the midpoints, or may be taken for it."""
    above = midpoints[torch.searchsorted(midpoints, values).clamp(max=len(midpoints) - 1)]
    below = midpoints[(torch.searchsorted(midpoints, values) - 1).clamp(min=0)]
    return ((values / above - 1).abs() < NEAR) | ((values / below - 1).abs() < NEAR)


def codes(values):
    return torch.stack((values & 15, values >> 4), -1).flatten(1)


def compared(quantizer, matrix):
    """How many scales and codes of a matrix differ, and at which values."""
    theirs, their_scales = quantizer._quantize_blockwise_reference(
        matrix, matrix.abs().max().float(), BLOCK, 1, pow_2_scales=False, eps=0.0)
    ours = nvfp4.quantize(matrix)
    scales = their_scales.double().repeat_interleave(BLOCK, 1)
    scales_differ = their_scales.view(torch.uint8) != ours.scales.view(torch.uint8)
    largest = matrix.double().abs().view(ROWS, -1, BLOCK).amax(-1)
    near_between_scales = near(largest / 6 / ours.tensor_scales[0], SCALE_MIDPOINTS)
    differ = codes(theirs) != codes(ours.values.view(torch.uint8))
    quotients = (matrix.double() / (scales * ours.tensor_scales[0])).abs()
    is_near = near(quotients, MIDPOINTS)
    by_scale = scales_differ.repeat_interleave(BLOCK, 1)
    dequantised = [nvfp4.dequantize(one) for one in (nvfp4.Tensor(theirs, their_scales, ours.tensor_scale), ours)]
    return {
        "scales": their_scales.numel(),
        "scales_that_differ": scales_differ.sum().item(),
        "of_these_near_a_midpoint": (scales_differ & near_between_scales).sum().item(),
        "codes": differ.numel(),
        "codes_that_differ": differ.sum().item(),
        "of_these_in_blocks_of_scale_zero": (differ & (scales == 0)).sum().item(),
        "of_these_in_blocks_whose_scale_differs": (differ & by_scale).sum().item(),
        "of_these_in_others_near_a_midpoint": (differ & is_near & ~by_scale & (scales != 0)).sum().item(),
        "dequantised_values_that_differ": (dequantised[0] != dequantised[1]).sum().item(),
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", help="an unpacked wheel of transformer_engine_cu12 or transformer_engine_cu13")
    arguments.add_argument("--json", help="where the counts go")
    arguments = arguments.parse_args()
    quantizer = reference(arguments.folder)
    rows = {name: compared(quantizer, matrix) for name, matrix in matrices()}
    for name, row in rows.items():
        print(name, row)
    if arguments.json:
        result = {"torch": torch.__version__, "matrix": [ROWS, COLUMNS], "matrices": rows}
        Path(arguments.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
