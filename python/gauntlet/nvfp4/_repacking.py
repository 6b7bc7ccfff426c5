"""Repacking the NVFP4 modules of a model for 16-bit tokens. Imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import torch

from gauntlet.nvfp4 import _cuda
from gauntlet.nvfp4._conversion import check_is_module, layers
from gauntlet.nvfp4._products import tokens_argument
from gauntlet.nvfp4.modules import Experts, Linear, PackedWeights

Model = TypeVar("Model")


def repack(model: Model, tokens: Any) -> Model:
    """See `nvfp4.repack`."""
    check_is_module("nvfp4.repack", model)
    wanted = tokens_argument(tokens, torch.empty(0))
    repacked, left = _tried(model, wanted)
    if not repacked:
        if left:
            raise ValueError(f"model: of its {len(left)} NVFP4 layers none can be repacked; {left[0]}")
        raise ValueError(
            f"model: {type(model).__name__} has no NVFP4 layers; call nvfp4.convert or nvfp4.load_checkpoint first"
        )
    _load(repacked, wanted)
    return model


def repack_what_can_be(model: Any, tokens: str) -> None:
    """As `repack`, for a model whose layers may all have to stay as they are."""
    repacked, _ = _tried(model, tokens)
    _load(repacked, tokens)


def _tried(model: Any, tokens: str) -> tuple[list[torch.nn.Module], list[str]]:
    """Repacks what can be, and returns those modules, and for each other one its name and the reason."""
    repacked: list[torch.nn.Module] = []
    left: list[str] = []
    for name, module in layers(model):
        parts = _parts(module)
        reasons = [found for part in parts if (found := reason(part, tokens))]
        if reasons:
            left.append(f"{name or type(module).__name__}: {reasons[0]}")
        elif parts:
            replace([part for part in parts if part.tokens is None], tokens)
            repacked.append(module)
    return repacked, left


def _parts(module: torch.nn.Module) -> list[PackedWeights]:
    """The weights of an NVFP4 module, which are repacked together; none of another module."""
    if isinstance(module, Experts):
        return [module.gate_proj, module.up_proj, module.down_proj]
    return [module] if isinstance(module, PackedWeights) else []


def reason(weights: PackedWeights, tokens: str) -> str | None:
    """Why weights cannot be repacked where they lie."""
    *_, n, k = weights.shape
    if weights.tokens is not None:
        return None if weights.tokens == tokens else f"its weights were repacked for {weights.tokens} tokens before"
    values = weights.weight
    if not values.is_cuda or torch.cuda.get_device_capability(values.device)[0] != _cuda.HOPPER:
        return f"its weights are on {values.device}, and only a Hopper GPU reads repacked ones; move the model to one first"
    if k % _cuda.STEP:
        return f"its weights have rows of {k} values, and only multiples of {_cuda.STEP} are repacked"
    if n % _cuda.ROWS:
        return f"its weights have {n} rows, and only multiples of {_cuda.ROWS} are repacked"
    return None


def replace(parts: Sequence[PackedWeights], tokens: str) -> None:
    """Replaces the buffers of these weights. All of them change together, because a mixture multiplies by all or by none. They are not
    overwritten: another module may share them."""
    made = [_cuda.packed(part.packed(), tokens) for part in parts]
    for part, tensor in zip(parts, made, strict=True):
        part.weight = tensor.values
        part.weight_scale = tensor.scales.view(part.weight_scale.dtype)
        part.tokens = tokens


def _load(modules: Sequence[torch.nn.Module], tokens: str) -> None:
    """Loads the kernels that these modules call, compiled side by side, so that the first forward pass finds them."""
    products: dict[tuple[Any, ...], tuple[int, _cuda.Product]] = {}
    for module in modules:
        parts = _parts(module)
        stacks = [_stack(part) for part in parts]
        found: list[_cuda.Product] = []
        if isinstance(module, Experts):
            found = _cuda.products_of_mixture(tokens, stacks[0], stacks[2])
        elif isinstance(module, Linear):
            # A bias is added to sums in float32.
            output = tokens if module.bias is None else "float32"
            found = [(module.in_features, stacks[0], None, (tokens, output), False)]
        for product in found:
            _, _, second, formats, is_routed = product
            device = parts[0].weight.get_device()
            products.setdefault((device, second is None, formats, is_routed), (device, product))
    for device in {device for device, _ in products.values()}:
        _cuda.libraries.of[device].load([product for own, product in products.values() if own == device])


def _stack(weights: PackedWeights) -> Any:
    scales = weights.weight_scale_2.reshape(-1).tolist()
    return _cuda.Matrices.of(weights.weight, weights.weight_scale, scales, _cuda.STEPS).stack
