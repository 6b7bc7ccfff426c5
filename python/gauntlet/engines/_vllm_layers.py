"""Linear layers and mixtures of experts with NVFP4 weights in vLLM. Imports vllm."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from vllm.model_executor.layers.fused_moe import (
    FusedMoEMethodBase,
    FusedMoeWeightScaleSupported,
    MoEActivation,
    RoutedExperts,
)
from vllm.model_executor.layers.linear import LinearMethodBase, register_weight_loader_v2_supported_method
from vllm.model_executor.parameter import ModelWeightParameter, PerTensorScaleParameter
from vllm.model_executor.utils import set_weight_attrs

from gauntlet import nvfp4
from gauntlet.nvfp4 import _cuda, _repacking
from gauntlet.nvfp4._tensor import BLOCK
from gauntlet.nvfp4.modules import Linear


class Layout(NamedTuple):
    """How a quantiser stores an NVFP4 matrix, beside its block scales, `weight_scale`."""

    values: str
    tensor_scale: str
    input_scale: str
    """Of activations, which stay in 16 bits here: it is read and dropped."""
    divides: bool
    """Whether the tensor scale is stored as its reciprocal."""

    def multipliers(self, stored: torch.Tensor) -> torch.Tensor:
        """What elements are multiplied by, in float32; a reciprocal is rounded once."""
        return stored.double().reciprocal().float() if self.divides else stored.float()


MODELOPT = Layout("weight", "weight_scale_2", "input_scale", False)
COMPRESSED_TENSORS = Layout("weight_packed", "weight_global_scale", "input_global_scale", True)

BLOCK_SCALES = "weight_scale"


def _check_rows(prefix: str, k: int) -> None:
    if k % BLOCK:
        raise ValueError(
            f"{prefix}: rows of {k} values on each GPU are no whole blocks of {BLOCK}; choose another tensor parallel size"
        )


def _taken(layer: Any, name: str) -> torch.Tensor:
    """A parameter's tensor, which the layer has no longer."""
    parameter: torch.nn.Parameter = getattr(layer, name)
    delattr(layer, name)
    return parameter.data


def _check_is_loaded(prefix: str, *scales: torch.Tensor) -> None:
    """Raises ValueError if scales are what they were made with."""
    for scale in scales:
        if scale.float().isnan().any():
            raise ValueError(
                f"{prefix}: scales of its weights are NaN or were not in the checkpoint, so the layer may be stored without "
                "quantisation; name it under `ignore` or `exclude_modules` of the checkpoint's configuration"
            )


def _tokens(values: torch.Tensor, dtype: torch.dtype) -> str | None:
    """The type of tokens that weights are repacked for, where a GPU reads repacked ones."""
    is_read = values.is_cuda and torch.cuda.get_device_capability(values.device)[0] == _cuda.HOPPER
    return _cuda.NAMES[dtype] if is_read and values.shape[-2] % _cuda.ROWS == 0 else None


@register_weight_loader_v2_supported_method
class LinearMethod(LinearMethodBase):
    """A linear layer, or several that vLLM fuses.

    vLLM gives fused layers one tensor scale. If the checkpoint has several, each layer is a product of its own here, so results are those
    of the checkpoint's numbers in any case.

    Args:
        layout: How the checkpoint stores the layer.
        prefix: The layer's name.
    """

    def __init__(self, layout: Layout, prefix: str) -> None:
        self._layout, self._prefix = layout, prefix

    def create_weights(
        self,
        layer: Any,
        input_size_per_partition: int,
        output_partition_sizes: list[int],
        input_size: int,
        output_size: int,
        params_dtype: torch.dtype,
        **extra_weight_attrs: Any,
    ) -> None:
        """Makes the parameters that vLLM fills from the checkpoint, each rank its part.

        Raises:
            ValueError: A rank's part has no whole blocks.
        """
        k, n = input_size_per_partition, sum(output_partition_sizes)
        _check_rows(self._prefix, k)
        layer.logical_widths = list(output_partition_sizes)
        layer.params_dtype = params_dtype
        loader = extra_weight_attrs["weight_loader"]
        matrix = functools.partial(ModelWeightParameter, input_dim=1, output_dim=0, weight_loader=loader)
        scales = torch.full((n, k // BLOCK), torch.nan, dtype=torch.float8_e4m3fn)
        layer.register_parameter(self._layout.values, matrix(data=torch.zeros(n, k // 2, dtype=torch.uint8)))
        layer.register_parameter(BLOCK_SCALES, matrix(data=scales))
        for name in (self._layout.tensor_scale, self._layout.input_scale):
            stored = torch.full((len(output_partition_sizes),), torch.nan, dtype=torch.float32)
            layer.register_parameter(name, PerTensorScaleParameter(data=stored, weight_loader=loader))

    def process_weights_after_loading(self, layer: Any) -> None:
        """Puts the weights into modules of `nvfp4.modules`, in the order that the GPU's kernels read.

        Raises:
            ValueError: Scales are NaN.
        """
        values, scales = _taken(layer, self._layout.values), _taken(layer, BLOCK_SCALES)
        stored = _taken(layer, self._layout.tensor_scale)
        delattr(layer, self._layout.input_scale)
        _check_is_loaded(self._prefix, scales, stored)
        factors = self._layout.multipliers(stored)
        # One product, if one scale belongs to all.
        widths = layer.logical_widths if len(set(factors.tolist())) > 1 else [len(values)]
        parts = torch.nn.ModuleList()
        for own, own_scales, factor in zip(torch.split(values, widths), torch.split(scales, widths), factors, strict=False):
            part = Linear(2 * values.shape[1], len(own), device="meta")
            part.weight, part.weight_scale, part.weight_scale_2 = own, own_scales, factor.clone()
            tokens = _cuda.NAMES.get(layer.params_dtype, "")
            if values.is_cuda and _repacking.reason(part, tokens) is None:
                _repacking.replace([part], tokens)
            parts.append(part)
        layer.nvfp4 = parts

    def apply(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """Computes the layer, by operators that `torch.compile` and CUDA graphs contain as they are."""
        only = bias if len(layer.nvfp4) == 1 else None
        results = [
            torch.ops.gauntlet.linear(x, part.weight, part.weight_scale, part.weight_scale_2, only, part.tokens)
            for part in layer.nvfp4
        ]
        if len(results) == 1:
            single: torch.Tensor = results[0]
            return single
        joined = torch.cat(results, -1)
        return joined if bias is None else joined + bias


class Experts(NamedTuple):
    """The matrices of all experts of a rank, and what is computed between them."""

    gate: nvfp4.Weights
    up: nvfp4.Weights
    down: nvfp4.Weights


class ExpertsMethod(FusedMoEMethodBase):
    """A mixture of experts. Each rank computes the experts that it has, or its part of each; vLLM adds the ranks' results.

    Args:
        layout: How the checkpoint stores the experts.
        prefix: The layer's name.
        moe: vLLM's settings of the layer.

    Raises:
        ValueError: The layer computes something that `nvfp4.moe` does not.
    """

    def __init__(self, layout: Layout, prefix: str, moe: Any) -> None:
        super().__init__(moe)
        self._layout, self._prefix = layout, prefix
        if moe.has_bias:
            raise ValueError(f"{prefix}: NVFP4 experts with biases are not read; leave `--quantization gauntlet` out")
        self._activation = _activation(prefix, moe)

    def uses_weight_scale_2_pattern(self) -> bool:
        return self._layout is MODELOPT

    def create_weights(
        self,
        layer: RoutedExperts,
        num_experts: int,
        hidden_size: int,
        intermediate_size_per_partition: int,
        params_dtype: torch.dtype,
        **extra_weight_attrs: Any,
    ) -> None:
        """Makes the parameters that vLLM fills from the checkpoint: of each rank's experts, each rank its part.

        Raises:
            ValueError: A rank's part has no whole blocks.
        """
        between = intermediate_size_per_partition
        for k in (hidden_size, between):
            _check_rows(self._prefix, k)
        layer.num_experts, layer.params_dtype = num_experts, params_dtype

        def made(name: str, kind: FusedMoeWeightScaleSupported | None, data: torch.Tensor) -> None:
            parameter = torch.nn.Parameter(data, requires_grad=False)
            layer.register_parameter(name, parameter)
            set_weight_attrs(parameter, extra_weight_attrs | ({} if kind is None else {"quant_method": kind.value}))

        for stack, n, k, matrices in (("w13", 2 * between, hidden_size, (2,)), ("w2", hidden_size, between, ())):
            values = torch.zeros(num_experts, n, k // 2, dtype=torch.uint8)
            scales = torch.full((num_experts, n, k // BLOCK), torch.nan, dtype=torch.float8_e4m3fn)
            made(f"{stack}_{self._layout.values}", None, values)
            made(f"{stack}_{BLOCK_SCALES}", FusedMoeWeightScaleSupported.GROUP, scales)
            for name in (self._layout.tensor_scale, self._layout.input_scale):
                own = torch.full((num_experts, *matrices), torch.nan, dtype=torch.float32)
                made(f"{stack}_{name}", FusedMoeWeightScaleSupported.TENSOR, own)

    def process_weights_after_loading(self, layer: RoutedExperts) -> None:
        """Puts the weights into the order that the GPU's kernels read.

        Raises:
            ValueError: Scales are NaN.
        """
        both, down = self._stack(layer, "w13"), self._stack(layer, "w2")
        between = both.values.shape[1] // 2
        gate, up = (
            _Stack(both.values[:, own], both.scales[:, own], both.factors[:, at])
            for at, own in enumerate((slice(0, between), slice(between, None)))
        )
        layer.nvfp4 = Experts(*(one.prepared(layer.params_dtype) for one in (gate, up, down)))

    def _stack(self, layer: RoutedExperts, name: str) -> _Stack:
        values, scales = _taken(layer, f"{name}_{self._layout.values}"), _taken(layer, f"{name}_{BLOCK_SCALES}")
        stored = _taken(layer, f"{name}_{self._layout.tensor_scale}")
        delattr(layer, f"{name}_{self._layout.input_scale}")
        _check_is_loaded(f"{self._prefix} ({name})", scales, stored)
        return _Stack(values, scales, self._layout.multipliers(stored))

    def get_fused_moe_quant_config(self, layer: RoutedExperts) -> None:
        """Nothing: it describes weights to vLLM's own kernels."""
        return None

    def apply(
        self,
        layer: RoutedExperts,
        x: torch.Tensor,
        topk_weights: torch.Tensor,
        topk_ids: torch.Tensor,
        shared_experts: Any,
        shared_experts_input: torch.Tensor | None,
    ) -> torch.Tensor:
        """Computes the experts that are here. The routing stays on the device, so a CUDA graph serves every one."""
        if layer.apply_router_weight_on_input:
            x, topk_weights = x * topk_weights.to(x.dtype), torch.ones_like(topk_weights)
        experts: Experts = layer.nvfp4
        result: torch.Tensor = nvfp4.moe(
            x, topk_ids, topk_weights, *experts, expert_map=layer.expert_map, **self._activation
        )
        return result


class _Stack(NamedTuple):
    """A matrix of each expert, as it was loaded."""

    values: torch.Tensor
    scales: torch.Tensor
    factors: torch.Tensor

    def prepared(self, dtype: torch.dtype) -> nvfp4.Weights:
        """For products with tokens of a type."""
        tensor = nvfp4.Tensor(self.values.contiguous(), self.scales.contiguous(), tuple(self.factors.tolist()))
        return nvfp4.Weights(tensor, tokens=_tokens(self.values, dtype))


_FUNCTIONS: dict[MoEActivation, Callable[[Any], dict[str, Any]]] = {
    MoEActivation.SILU: lambda moe: {"activation": "silu", "limit": moe.swiglu_limit},
    MoEActivation.GELU: lambda moe: {"activation": "gelu"},
    MoEActivation.GELU_TANH: lambda moe: {"activation": "gelu_tanh"},
    MoEActivation.SWIGLUOAI_UNINTERLEAVE: lambda moe: {
        "activation": "silu",
        "limit": moe.swiglu_limit,
        "alpha": 1.0 if moe.swiglu_alpha is None else moe.swiglu_alpha,
        "beta": 0.0 if moe.swiglu_beta is None else moe.swiglu_beta,
    },
}
"""The arguments of `nvfp4.moe` for vLLM's names of activations."""


def _activation(prefix: str, moe: Any) -> dict[str, Any]:
    found = _FUNCTIONS.get(moe.activation)
    if found is None:
        known = ", ".join(activation.value for activation in _FUNCTIONS)
        raise ValueError(
            f"{prefix}: its experts have the activation {moe.activation.value}, and {known} are computed here; leave "
            "`--quantization gauntlet` out"
        )
    return found(moe)
