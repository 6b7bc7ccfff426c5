"""PyTorch modules with NVFP4 weights, as `nvfp4.convert` and `nvfp4.load_checkpoint` put them into a model. Importing this
module imports torch.

The weights are buffers with the names, types and shapes that ModelOpt gives them, so ``state_dict()`` of a converted dense
layer is a layer that `nvfp4.load` reads. Results are those of `nvfp4.linear` and `nvfp4.moe`: tokens are multiplied as
they are, so activations are not quantised. The modules are for inference: nothing here has a gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gauntlet.nvfp4 import _layer_ops  # noqa: F401  (defines the operators)
from gauntlet.nvfp4._tensor import BLOCK, Tensor

__all__ = ["Experts", "Linear", "PackedWeights"]


class PackedWeights(torch.nn.Module):
    """An NVFP4 matrix ``[n, k]``, or a stack of them ``[groups, n, k]``, as buffers of a module.

    Buffers:
        weight: e2m1 codes, two a byte: ``[..., n, k / 2]``, uint8.
        weight_scale: Block scales: ``[..., n, k / 16]``, float8_e4m3fn.
        weight_scale_2: What all elements are multiplied by: one number, or ``[groups]``, float32.

    ``to(dtype)``, ``half()`` and the like move them and leave their types: packed codes and scales of another type would be
    other numbers.

    `nvfp4.repack` gives `weight` and `weight_scale` the same bytes in an order that only the kernels of a Hopper GPU read. They then
    stay on GPUs, and are neither saved nor loaded: what would take them for a checkpoint's raises ValueError.

    Args:
        shape: ``(n, k)`` or ``(groups, n, k)``, k a multiple of 16. All weights are zero until `fill`.
        device: Where the buffers are made.

    Raises:
        ValueError: The shape is another.
    """

    weight: torch.Tensor
    weight_scale: torch.Tensor
    weight_scale_2: torch.Tensor
    tokens: str | None = None
    """The type of the tokens that the weights were repacked for, ``bfloat16`` or ``float16``."""

    def __init__(self, shape: tuple[int, ...], device: Any = None) -> None:
        super().__init__()
        if len(shape) not in (2, 3) or shape[-1] % BLOCK:
            raise ValueError(f"shape: it is {shape}; give (n, k) or (groups, n, k), k a multiple of {BLOCK}")
        *outer, k = shape
        self.shape = tuple(shape)
        self.register_buffer("weight", torch.zeros(*outer, k // 2, dtype=torch.uint8, device=device))
        scales = torch.zeros(*outer, k // BLOCK, dtype=torch.uint8, device=device)
        self.register_buffer("weight_scale", scales.view(torch.float8_e4m3fn))
        self.register_buffer("weight_scale_2", torch.ones(shape[:-2], dtype=torch.float32, device=device))

    def fill(self, tensor: Tensor, group: int | None = None) -> None:
        """Copies weights into the buffers, in place, from any device.

        Args:
            tensor: Of numpy arrays or PyTorch tensors: all matrices, or one if there is `group`.
            group: The matrix of the stack that is filled.

        Raises:
            ValueError: The tensor has another shape, or the weights were repacked.
        """
        self._check_order("tensor", "fill the weights before nvfp4.repack")
        wanted = self.shape if group is None else self.shape[1:]
        if tensor.shape != wanted:
            raise ValueError(f"tensor: its shape is {tensor.shape}; these weights are {wanted}")
        place = ... if group is None else group
        scale = tensor.tensor_scales if len(wanted) == 3 else tensor.tensor_scales[0]
        self.weight[place] = torch.as_tensor(tensor.values).view(torch.uint8)
        self.weight_scale.view(torch.uint8)[place] = torch.as_tensor(tensor.scales).view(torch.uint8)
        self.weight_scale_2[place] = torch.tensor(scale, dtype=torch.float32)

    def packed(self) -> Tensor:
        """The weights as an `nvfp4.Tensor` that shares the buffers' memory.

        Raises:
            ValueError: They were repacked.
        """
        self._check_order("weight", "take the tensor before nvfp4.repack")
        return Tensor(self.weight, self.weight_scale, tuple(self.weight_scale_2.reshape(-1).tolist()))

    def extra_repr(self) -> str:
        return f"shape={self.shape}{self._order()}"

    def _order(self) -> str:
        return "" if self.tokens is None else f", tokens={self.tokens!r}"

    def _check_order(self, name: str, remedy: str) -> None:
        """Raises ValueError if the weights were repacked."""
        if self.tokens is not None:
            raise ValueError(
                f"{name}: the weights were repacked for {self.tokens} tokens, in an order that only the kernels of a Hopper GPU read; "
                f"{remedy}"
            )

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        self._check_order(f"{prefix}weight", "save the model before nvfp4.repack")
        save: Any = super()._save_to_state_dict
        save(destination, prefix, keep_vars)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *others: Any) -> None:
        self._check_order(f"{prefix}weight", "load the state into a model before nvfp4.repack")
        load: Any = super()._load_from_state_dict
        load(state_dict, prefix, *others)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> PackedWeights:
        if self.tokens is not None:
            target = fn(self.weight.new_empty(0)).device
            if target.type != self.weight.device.type:
                self._check_order(f"{target}", "move the model there before nvfp4.repack")
        before = {name: buffer for name, buffer in self._buffers.items() if buffer is not None}
        applied: Any = super()._apply
        applied(fn, recurse)
        for name, own in before.items():
            found: Any = self._buffers[name]
            if found.dtype != own.dtype:
                self._buffers[name] = own.to(found.device)
        return self


class Linear(PackedWeights):
    """A dense layer, ``x @ weight.T + bias``, in place of `torch.nn.Linear`.

    Args:
        in_features: k, a multiple of 16.
        out_features: n.
        bias: ``[n]``, bfloat16, float16 or float32, or none.
        device: Where the buffers are made.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: torch.Tensor | None = None, device: Any = None
    ) -> None:
        super().__init__((out_features, in_features), device)
        self.in_features, self.out_features = in_features, out_features
        own = None if bias is None else torch.nn.Parameter(bias.detach(), requires_grad=False)
        self.register_parameter("bias", own)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Computes the layer.

        Args:
            x: ``[..., k]``, bfloat16 or float16, on the CPU also float32.

        Returns:
            ``[..., n]``, of the type of `x`.

        Raises:
            As `nvfp4.linear`.
        """
        result: torch.Tensor = torch.ops.gauntlet.linear(
            x, self.weight, self.weight_scale, self.weight_scale_2, self.bias, self.tokens
        )
        return result

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}{self._order()}"


class Experts(torch.nn.Module):
    """The experts of a mixture, each ``(silu(x @ gate.T) * (x @ up.T)) @ down.T``, in place of the module with fused
    three-dimensional parameters that transformers calls with the router's choice.

    Args:
        experts: How many there are.
        hidden: The width of a token, a multiple of 16.
        intermediate: The width between the products, a multiple of 16.
        device: Where the buffers are made.
    """

    def __init__(self, experts: int, hidden: int, intermediate: int, device: Any = None) -> None:
        super().__init__()
        self.num_experts = experts
        self.gate_proj = PackedWeights((experts, intermediate, hidden), device)
        self.up_proj = PackedWeights((experts, intermediate, hidden), device)
        self.down_proj = PackedWeights((experts, hidden, intermediate), device)

    def forward(
        self, hidden_states: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor
    ) -> torch.Tensor:
        """Computes the weighted sum of the chosen experts.

        Args:
            hidden_states: ``[tokens, hidden]``, bfloat16 or float16, on the CPU also float32.
            top_k_index: ``[tokens, k]``, int32 or int64: the experts of each token.
            top_k_weights: ``[tokens, k]``, float32, bfloat16 or float16.

        Returns:
            ``[tokens, hidden]``, of the type of `hidden_states`.

        Raises:
            As `nvfp4.moe`.
            ValueError: Only some of the weights were repacked, or for several types of tokens.
        """
        matrices = self.gate_proj, self.up_proj, self.down_proj
        tokens = self.gate_proj.tokens
        if any(own.tokens != tokens for own in matrices):
            raise ValueError(
                "gate_proj, up_proj, down_proj: only some of them were repacked, or for other tokens; give nvfp4.repack the whole model"
            )
        weights = [
            part
            for own in matrices
            for part in (own.weight, own.weight_scale, own.weight_scale_2)
        ]
        result: torch.Tensor = torch.ops.gauntlet.moe(
            hidden_states, top_k_index, top_k_weights, *weights, tokens
        )
        return result
