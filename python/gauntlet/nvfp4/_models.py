"""Whole PyTorch models: the functions of the package, which import torch when they are called."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from os import PathLike
from typing import Any, TypeVar

Model = TypeVar("Model")

UNQUANTIZED = ("lm_head", "*.gate", "*router*", "*.shared_expert_gate")
"""What quantisers leave as it is: the last layer, and the small ones that choose experts."""


def convert(model: Model, *, exclude: Sequence[str] = UNQUANTIZED) -> Model:
    """Replaces the linear layers and the mixtures of experts of a PyTorch model by NVFP4 modules, in place.

    Each weight is quantised as by `quantize`, every expert's matrices with a tensor scale of their own. Replaced are

    - `torch.nn.Linear`, but no subclass, by `nvfp4.modules.Linear`;
    - experts with fused three-dimensional parameters ``gate_up_proj`` and ``down_proj``, as transformers 5 keeps them, by
      `nvfp4.modules.Experts`. Experts that are a list of modules with linear layers, as in transformers 4, have those
      layers replaced one by one.

    Activations are not quantised, and nothing else of the model changes: embeddings, norms, routers, attention.

    Args:
        model: A `torch.nn.Module`, such as a causal language model of transformers. It is changed, so keep a copy if the
            original weights are still needed. Weights are float32, bfloat16 or float16, and their rows have a multiple
            of 16 values.
        exclude: Names of modules that stay as they are. A name excludes what is below it too; ``*`` stands for any text,
            and what begins with ``re:`` is a regular expression for the beginning of a name.

    Returns:
        The model; if it is a linear layer itself, its replacement.

    Raises:
        ImportError: PyTorch is not installed.
        TypeError: It is not a `torch.nn.Module`.
        ValueError: A layer cannot be replaced, or there is none; or a layer has tensors, hooks or a `forward` of its own that would
            be lost. The message names it.
    """
    needed("nvfp4.convert", "torch")
    from gauntlet.nvfp4 import _conversion

    return _conversion.convert(model, exclude)


def load_checkpoint(model: Model, path: str | PathLike[str], *, nan_scales_of_zeros: bool = False) -> Model:
    """Fills a model from an NVFP4 checkpoint, as ModelOpt or compressed-tensors writes it, in place.

    The tensors of the checkpoint decide: a linear layer or an expert that it stores in NVFP4 becomes an NVFP4 module as by
    `convert`, whether or not `convert` was called before, and everything else is copied into the parameters and buffers of
    the model and takes their type. So modules that the checkpoint leaves out of quantisation (its `ignore` or
    `exclude_modules`, lm_head) stay as they are. Scales of activations and of the cache of keys and values are not used. Scales of
    weights that seem to be stored for the other layout, so that weights are above 10,000, are a warning.

    Args:
        model: A `torch.nn.Module` whose names are those of the checkpoint. Its parameters may be on the device ``meta``;
            they are then made on the CPU.
        path: A folder with safetensors files, and `config.json` or `hf_quant_config.json` beside them; or one such file.
        nan_scales_of_zeros: As in `load`.

    Returns:
        The model; if it is a linear layer itself, its replacement. It is partly filled if there is an error.

    Raises:
        ImportError: PyTorch or safetensors is not installed.
        TypeError: It is not a `torch.nn.Module`.
        FileNotFoundError: There is no such checkpoint.
        ValueError: A tensor is missing, or has another type or shape than the model or the layout; or the checkpoint is
            not NVFP4, or was quantised with something that these modules do not compute. The message names the tensor, its
            file and the remedy.
    """
    needed("nvfp4.load_checkpoint", "torch", "safetensors")
    from gauntlet.nvfp4 import _loading

    return _loading.load_checkpoint(model, path, nan_scales_of_zeros)


def repack(model: Model, tokens: Any = "bfloat16") -> Model:
    """Repacks the weights of NVFP4 modules for 16-bit tokens on a Hopper GPU, in place, as ``Weights(tensor, tokens=…)`` does.

    The kernels then multiply tokens as they lie in memory, which spares each call a launch. Repacked weights take as much memory as
    before, and one layer at a time has both in the GPU's memory. The kernels that the layers call are loaded too, and those that
    have to be compiled are compiled side by side.

    Only weights that lie on a Hopper GPU are repacked, and whose k is a multiple of 256 and n of 16; of a mixture of experts all
    matrices or none. Others stay as they are and take any tokens, as do modules that are not of `nvfp4.modules`.

    The order is for these kernels alone: a repacked model is not saved, and its weights are not loaded, read or moved to the CPU.
    `copy.deepcopy` copies it, and it moves to other Hopper GPUs. CUDA graphs that were captured before use memory that is then
    free, so capture them again.

    Args:
        model: A `torch.nn.Module` after `convert` or `load_checkpoint`, on a Hopper GPU. Call it in the type of `tokens`.
        tokens: The type of the tokens, bfloat16 or float16; layers that are repacked take no others afterwards.

    Returns:
        The model.

    Raises:
        ImportError: PyTorch is not installed.
        TypeError: It is not a `torch.nn.Module`, or weights are not repacked for such tokens.
        ValueError: None of its weights can be repacked; the message names one and the reason.
        RuntimeError: There is no compiler, or a kernel does not compile.
    """
    needed("nvfp4.repack", "torch")
    from gauntlet.nvfp4 import _repacking

    return _repacking.repack(model, tokens)


def needed(function: str, *packages: str) -> None:
    """Raises ImportError, with what to install, unless all packages can be imported."""
    for package in packages:
        try:
            importlib.import_module(package)
        except ModuleNotFoundError as error:
            if error.name != package:
                raise
            raise ImportError(f"{function} needs {package}; install it with `pip install {package}`", name=package) from None
