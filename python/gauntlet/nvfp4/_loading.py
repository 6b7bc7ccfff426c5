"""Filling a model from an NVFP4 checkpoint. Imports torch and safetensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TypeVar

import torch

from gauntlet.nvfp4 import _exclusions
from gauntlet.nvfp4._checkpoint import OTHER_SCALE
from gauntlet.nvfp4._conversion import check_is_module, empty_experts, empty_linear, is_fused, layers, replaced
from gauntlet.nvfp4._stored import Stored
from gauntlet.nvfp4.modules import Experts, Linear, PackedWeights

Model = TypeVar("Model")
Module = TypeVar("Module", Linear, Experts)

MATRICES = ("gate_proj", "up_proj", "down_proj")


def load_checkpoint(model: Model, path: str | PathLike[str], nan_scales_of_zeros: bool) -> Model:
    """See `nvfp4.load_checkpoint`."""
    check_is_module("nvfp4.load_checkpoint", model)
    stored = Stored(path, nan_scales_of_zeros)
    excluded = stored.checkpoint.excluded
    replacements: dict[int, torch.nn.Module] = {}
    filled: set[str] = set()
    made: torch.nn.Module | None
    for name, module in layers(model):
        if isinstance(module, Experts) or is_fused(module):
            made = _experts(stored, name, module, excluded, filled)
        elif isinstance(module, Linear) or type(module) is torch.nn.Linear:
            made = _linear(stored, name, module, excluded)
        else:
            continue
        if made is not None:
            replacements[id(module)] = made
    model = replaced(model, replacements)
    _plain(stored, model, filled)
    if stored.unused:
        warnings.warn(f"{stored.path}: the model has no place for {_listed(stored.unused)}", stacklevel=3)
    _warn_of_huge(stored)
    return model


def make_room(model: Any, stored: Stored) -> set[str]:
    """Replaces the layers that a checkpoint stores in NVFP4 by modules on meta, and returns their names."""
    excluded = stored.checkpoint.excluded
    replacements: dict[int, torch.nn.Module] = {}
    names: set[str] = set()
    for name, module in layers(model):
        made: torch.nn.Module
        if is_fused(module):
            if not _is_packed(stored, f"{name}.0.{MATRICES[0]}", excluded):
                continue
            made = _replacement(name, module, empty_experts)
        elif type(module) is torch.nn.Linear and _is_packed(stored, name, excluded):
            made = _replacement(name, module, empty_linear)
        else:
            continue
        replacements[id(module)] = made.to("meta")
        names.add(name)
    replaced(model, replacements)
    return names


def fill(model: Any, stored: Stored) -> None:
    """Fills the NVFP4 modules of a model, and nothing else of it."""
    for name, module in layers(model):
        if isinstance(module, Experts):
            _experts(stored, name, module, stored.checkpoint.excluded, set())
        elif isinstance(module, Linear):
            _linear(stored, name, module, stored.checkpoint.excluded)
    _warn_of_huge(stored)


def _warn_of_huge(stored: Stored) -> None:
    if stored.huge:
        warnings.warn(
            f"{stored.path}: weights are as large as {max(stored.huge.values()):.0e} in {_listed(set(stored.huge))}. The scales of these "
            f"layers seem to be stored the other way, as for the other layout. If so, fill each module again: {OTHER_SCALE}, which its "
            "method `fill` takes",
            stacklevel=4,
        )


def _linear(stored: Stored, name: str, module: Any, excluded: Sequence[str]) -> Linear | None:
    """The NVFP4 module of a linear layer; nothing if the checkpoint stores a plain one."""
    if not _is_packed(stored, name, excluded):
        _check_is_plain(stored, name, module)
        return None
    made = module if isinstance(module, Linear) else _replacement(name, module, empty_linear)
    made.fill(stored.packed(name, made.shape))
    return made


def _experts(stored: Stored, name: str, module: Any, excluded: Sequence[str], filled: set[str]) -> Experts | None:
    """The NVFP4 module of fused experts. Plain experts are copied, and their names go to `filled`; nothing is done if the
    checkpoint stores them fused too."""
    experts, width, between = _sizes(module)
    names = [[f"{name}.{expert}.{matrix}" for matrix in MATRICES] for expert in range(experts)]
    packed = [layer for row in names for layer in row if _is_packed(stored, layer, excluded)]
    if not packed:
        _check_is_plain(stored, name, module)
        if f"{name}.gate_up_proj" in stored.entries:
            return None
        gate_up, down = _materialised(module.gate_up_proj), _materialised(module.down_proj)
        for expert, (gate, up, last) in enumerate(names):
            for layer, place in (
                (gate, gate_up[expert, :between]),
                (up, gate_up[expert, between:]),
                (last, down[expert]),
            ):
                place.copy_(stored.plain(f"{layer}.weight", place))
        module.gate_up_proj = _parameter(gate_up, module.gate_up_proj)
        module.down_proj = _parameter(down, module.down_proj)
        filled |= {f"{name}.gate_up_proj", f"{name}.down_proj"}
        return None
    for layer in (layer for row in names for layer in row):
        if layer not in packed:
            raise ValueError(
                f"{stored.path}: `{layer}` is not stored in NVFP4, and `{packed[0]}` is; NVFP4 experts are all of one kind, so "
                "quantise the model again with all experts of a layer or none"
            )
    made = module if isinstance(module, Experts) else _replacement(name, module, empty_experts)
    for expert, (gate, up, last) in enumerate(names):
        made.gate_proj.fill(stored.packed(gate, (between, width)), expert)
        made.up_proj.fill(stored.packed(up, (between, width)), expert)
        made.down_proj.fill(stored.packed(last, (width, between)), expert)
    return made


def _replacement(name: str, module: Any, empty: Callable[[Any], Module]) -> Module:
    """An NVFP4 module of a module's sizes; the error names it."""
    try:
        return empty(module)
    except ValueError as error:
        raise ValueError(f"model: `{name}`: {error}") from None


def _sizes(module: Any) -> tuple[int, int, int]:
    shape = module.down_proj.shape
    return int(shape[0]), int(shape[1]), int(shape[2])


def _is_packed(stored: Stored, layer: str, excluded: Sequence[str]) -> bool:
    """Whether a layer is stored in NVFP4.

    Raises:
        ValueError: It is, and the configuration excludes it.
    """
    found = stored.is_packed(layer)
    if found and _exclusions.is_excluded(layer, excluded):
        raise ValueError(
            f"{stored.path}: `{layer}` is quantised, and the configuration excludes it; take it out of `ignore` or "
            "`exclude_modules`, or export the checkpoint again"
        )
    return found


def _check_is_plain(stored: Stored, name: str, module: torch.nn.Module) -> None:
    if isinstance(module, (Experts, Linear)):
        raise ValueError(
            f"{stored.path}: `{name}` is not stored in NVFP4, and the model has an NVFP4 module there; give load_checkpoint "
            f"the model before nvfp4.convert, or convert it with exclude=[{name!r}, …]"
        )


def _plain(stored: Stored, model: Any, filled: set[str]) -> None:
    """Copies what is not quantised. Of a parameter with several names, one has to be stored."""
    names: dict[int, list[str]] = {}
    tensors: dict[int, torch.Tensor] = {}
    persistent = model.state_dict(keep_vars=True)
    for name, tensor in (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)):
        if name in persistent and name not in filled and not _is_part_of_packed(model, name):
            names.setdefault(id(tensor), []).append(name)
            tensors[id(tensor)] = tensor
    for key, tensor in tensors.items():
        own = next((name for name in names[key] if name in stored.entries), names[key][0])
        made = _materialised(tensor)
        made.copy_(stored.plain(own, made))
        stored.unused.difference_update(names[key])
        if tensor.is_meta:
            for name in names[key]:
                _set(model, name, _parameter(made, tensor) if isinstance(tensor, torch.nn.Parameter) else made)
    for name, buffer in model.named_buffers():
        if buffer.is_meta:
            raise ValueError(
                f"model: `{name}` is on meta and no checkpoint stores it; build that module with its buffers on the CPU"
            )


def _is_part_of_packed(model: Any, name: str) -> bool:
    """Whether it is one of the buffers that `PackedWeights.fill` wrote."""
    owner, _, last = name.rpartition(".")
    return isinstance(model.get_submodule(owner), PackedWeights) and last != "bias"


def _materialised(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's memory without its history of gradients; on the CPU if it is on meta."""
    return torch.empty_like(tensor, device="cpu") if tensor.is_meta else tensor.detach()


def _parameter(tensor: torch.Tensor, instead_of: torch.nn.Parameter) -> torch.nn.Parameter:
    return torch.nn.Parameter(tensor, requires_grad=instead_of.requires_grad)


def _set(model: Any, name: str, tensor: torch.Tensor) -> None:
    owner, _, last = name.rpartition(".")
    setattr(model.get_submodule(owner), last, tensor)


def _listed(names: set[str]) -> str:
    first = sorted(names)[:8]
    return ", ".join(first) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
