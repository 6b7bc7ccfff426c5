"""Replacing the layers of a model by NVFP4 modules. Imports torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import torch

from gauntlet.nvfp4._exclusions import is_excluded
from gauntlet.nvfp4._tensor import Tensor, quantize
from gauntlet.nvfp4.modules import Experts, Linear, PackedWeights

Model = TypeVar("Model")

# What transformers says of a class of fused experts (`use_experts_implementation`), and what `Experts` computes.
LAYOUT = {
    "has_gate": True,
    "has_bias": False,
    "has_post_expert_norm": False,
    "is_transposed": False,
    "is_concatenated": True,
}
SILU = ("SiLU", "SiLUActivation")


def convert(model: Model, exclude: Sequence[str]) -> Model:
    """See `nvfp4.convert`."""
    check_is_module("nvfp4.convert", model)
    replacements: dict[int, torch.nn.Module] = {}
    for name, module in layers(model):
        if is_excluded(name, exclude):
            continue
        try:
            if type(module) is torch.nn.Linear:
                replacements[id(module)] = _linear(module)
            elif is_fused(module):
                replacements[id(module)] = _experts(module)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}: {error}; or leave it as it is with exclude=[{name!r}, …]") from None
    if not replacements:
        raise ValueError(
            f"model: {type(model).__name__} has no linear layer or mixture of experts that is not excluded; give a model with "
            "torch.nn.Linear, or another `exclude`"
        )
    converted: Model = replaced(model, replacements)
    return converted


def check_is_module(function: str, model: object) -> None:
    """Raises TypeError unless it is a module of PyTorch."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model: it is a {type(model).__name__}; {function} takes a torch.nn.Module")


def layers(model: Any) -> Iterator[tuple[str, torch.nn.Module]]:
    """The modules by name, without the parts of NVFP4 modules."""
    within: list[str] = []
    for name, module in list(model.named_modules()):
        if any(name.startswith(f"{outer}.") for outer in within):
            continue
        if isinstance(module, (Experts, PackedWeights)):
            within.append(name)
        yield name, module


def replaced(model: Any, replacements: dict[int, torch.nn.Module]) -> Any:
    """The model with other modules in the places of those with these ids, wherever they are used."""
    for parent in list(model.modules()):
        # `named_children` would leave out a module that a parent has under two names.
        for name, child in list(parent._modules.items()):
            if id(child) in replacements:
                setattr(parent, name, replacements[id(child)])
    return replacements.get(id(model), model)


def is_fused(module: torch.nn.Module) -> bool:
    """Whether it holds the matrices of all experts of a mixture in two parameters."""
    matrices = [getattr(module, name, None) for name in ("gate_up_proj", "down_proj")]
    return all(isinstance(matrix, torch.nn.Parameter) and matrix.ndim == 3 for matrix in matrices)


def _check_has_nothing_else(module: Any, *known: str) -> None:
    """Raises ValueError if a module computes more than its class does, which its replacement would leave out."""
    own = {name for name, _ in (*module.named_parameters(), *module.named_buffers())}
    others = sorted(f"the tensor `{name}`" for name in own - {*known})
    if "forward" in vars(module):
        others.append("a `forward` of its own")
    if module._forward_pre_hooks or module._forward_hooks:
        others.append("a hook")
    if others:
        raise ValueError(f"{type(module).__name__} has {others[0]}, which would be lost with what it changes; remove it")


def empty_linear(module: Any) -> Linear:
    """An NVFP4 module of the sizes of a linear layer, with its bias.

    Raises:
        ValueError: The layer computes something else too.
    """
    _check_has_nothing_else(module, "weight", "bias")
    made = Linear(module.in_features, module.out_features, module.bias, _device(module.weight))
    made.train(module.training)
    return made


def empty_experts(module: Any) -> Experts:
    """An NVFP4 module of the sizes of fused experts.

    Raises:
        ValueError: They are not silu-gated matrices in the layout that is known, or compute something else too.
    """
    _check_has_nothing_else(module, "gate_up_proj", "down_proj")
    for name, wanted in LAYOUT.items():
        # transformers 5.17 says nothing of the norm behind experts, and has none.
        found = getattr(module, name, False if name == "has_post_expert_norm" else None)
        if found != wanted:
            raise ValueError(f"{type(module).__name__} has {name}={found}, and NVFP4 experts have {wanted}")
    activation = type(module.act_fn).__name__
    gating = getattr(type(module), "_apply_gate", None)
    if activation not in SILU or getattr(gating, "__name__", None) != "_default_apply_gate":
        raise ValueError(f"{type(module).__name__} gates by other than silu(gate) * up, which NVFP4 experts compute")
    experts, hidden, intermediate = module.down_proj.shape
    made = Experts(experts, hidden, intermediate, _device(module.down_proj))
    made.train(module.training)
    return made


def _linear(module: Any) -> Linear:
    weight = _quantized(module.weight)
    made = empty_linear(module)
    made.fill(weight)
    return made


def _experts(module: Any) -> Experts:
    made = empty_experts(module)
    between = module.down_proj.shape[2]
    for expert in range(made.num_experts):
        both = module.gate_up_proj[expert]
        made.gate_proj.fill(_quantized(both[:between]), expert)
        made.up_proj.fill(_quantized(both[between:]), expert)
        made.down_proj.fill(_quantized(module.down_proj[expert]), expert)
    return made


def _quantized(weight: torch.Tensor) -> Tensor:
    if weight.is_meta:
        raise ValueError("its weights are on meta, so they have no values; load them first, or use nvfp4.load_checkpoint")
    return quantize(weight.detach().cpu().contiguous())


def _device(weight: torch.Tensor) -> torch.device:
    """Where the packed weights go: beside the others, and to the CPU if those have no memory yet."""
    return torch.device("cpu") if weight.is_meta else weight.device
