"""Grouped matrix products on NVFP4 operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gauntlet import _native
from gauntlet.nvfp4 import _arrays
from gauntlet.nvfp4._tensor import Tensor


class Weights:
    """The weights of a layer, registered once, so that calls do not copy them.

    Args:
        tensor: ``[n, k]``, or ``[groups, n, k]`` for a mixture of experts, on the CPU. It is copied.

    Raises:
        TypeError: It is not an `nvfp4.Tensor`.
        ValueError: It is not on the CPU, or a block scale is NaN.
    """

    def __init__(self, tensor: Tensor) -> None:
        _check_tensor("weights", tensor)
        _arrays.on_cpu("weights", tensor.values)
        self.shape = tensor.shape
        self._like = tensor.values[:0]
        self._matrices = matrices(tensor, [tensor.shape[-2]] * groups_of(tensor.shape))

    def __repr__(self) -> str:
        return f"nvfp4.Weights(shape={self.shape})"


def grouped_mm(
    tokens: Any,
    weights: Tensor | Weights,
    sizes: Sequence[int] | None = None,
    *,
    out_dtype: Any = None,
) -> Any:
    """Multiplies each group's tokens by its weights: ``tokens[group] @ weights[group].T``.

    Args:
        tokens: ``[m, k]``: the tokens of all groups one after another. An `nvfp4.Tensor`, or a PyTorch tensor of
            bfloat16 or float16 on a GPU, whose values are multiplied as they are: products are exact, and only
            the float32 sums round.
        weights: ``[groups, n, k]``, or ``[n, k]`` for one group; `Weights` spare the CPU a copy in each call.
        sizes: The tokens of each group, which add up to m; 0 is allowed. Left out for one group.
        out_dtype: float16, bfloat16 or float32; by default float32 for numpy and bfloat16 for PyTorch.

    Returns:
        ``[m, n]``, of the tokens' library and device. Sums are rounded once to `out_dtype`, results are the same to the
        bit from call to call.

    Raises:
        TypeError: An argument is of another type.
        ValueError: Shapes, sizes or devices do not fit.
        MemoryError: There is no memory for the call.
    """
    return _product(tokens, weights, None, sizes, out_dtype)


def swiglu_grouped_mm(
    tokens: Any,
    gate: Tensor | Weights,
    up: Tensor | Weights,
    sizes: Sequence[int] | None = None,
    *,
    out_dtype: Any = None,
) -> Any:
    """Two products with SwiGLU fused: ``silu(tokens @ gate.T) * (tokens @ up.T)`` for each group.

    Args:
        tokens: As in `grouped_mm`.
        gate: ``[groups, n, k]``, or ``[n, k]`` for one group: the weights under `silu`.
        up: The other weights, of the same shape.
        sizes: As in `grouped_mm`.
        out_dtype: As in `grouped_mm`.

    Returns:
        ``[m, n]``, of the tokens' library and device.

    Raises:
        As `grouped_mm`.
    """
    if getattr(gate, "shape", None) != getattr(up, "shape", None):
        raise ValueError(
            f"up: its shape is {getattr(up, 'shape', None)}, and gate's is {getattr(gate, 'shape', None)}; give weights "
            "of one shape"
        )
    return _product(tokens, gate, up, sizes, out_dtype)


def _product(
    tokens: Any,
    weights: Tensor | Weights,
    second: Tensor | Weights | None,
    sizes: Sequence[int] | None,
    out_dtype: Any,
) -> Any:
    named = {"weights": weights} if second is None else {"gate": weights, "up": second}
    if _arrays.is_torch(tokens) and _arrays.dtype_name(tokens) in HALVES:
        return _product_of_halves(tokens, named, sizes, out_dtype)
    _check_tensor("tokens", tokens)
    counts = checked_sizes(tokens, named, sizes)
    default = "bfloat16" if _arrays.is_torch(tokens.values) else "float32"
    dtype = _arrays.dtype_argument("out_dtype", out_dtype, default, tokens.values)
    if dtype == "float64":
        raise TypeError("out_dtype: float64 is not supported; use float32, float16 or bfloat16")
    tensors = {name: one.values for name, one in named.items() if isinstance(one, Tensor)}
    if _arrays.check_same_device({"tokens": tokens.values, **tensors}) != "cpu":
        from gauntlet.nvfp4 import _cuda

        return _cuda.product(tokens, named, counts, dtype)
    operands = matrices(tokens, counts)
    layers = [_registered(one)._matrices for one in named.values()]
    data = _native.grouped_mm(operands, layers[0], layers[1] if second is not None else None, dtype)
    columns = weights.shape[-2]
    return _arrays.from_bytes(data, dtype, (tokens.shape[0], columns), tokens.values)


def _product_of_halves(
    tokens: Any, named: dict[str, Tensor | Weights], sizes: Sequence[int] | None, out_dtype: Any
) -> Any:
    _arrays.check_contiguous("tokens", tokens)
    counts = checked_sizes(tokens, named, sizes)
    dtype = _arrays.dtype_argument("out_dtype", out_dtype, "bfloat16", tokens)
    if dtype == "float64":
        raise TypeError("out_dtype: float64 is not supported; use float32, float16 or bfloat16")
    tensors = {name: one.values for name, one in named.items() if isinstance(one, Tensor)}
    if _arrays.check_same_device({"tokens": tokens, **tensors}) == "cpu":
        raise ValueError(
            f"tokens: {_arrays.dtype_name(tokens)} on the CPU, where the kernels multiply NVFP4 tokens; quantise them with "
            "nvfp4.quantize, or move tokens and weights to a GPU"
        )
    from gauntlet.nvfp4 import _cuda

    return _cuda.product_of_halves(tokens, named, counts, dtype)


HALVES = ("bfloat16", "float16")
"""Types of tokens that are multiplied as they are."""


def checked_sizes(
    tokens: Any, named: dict[str, Tensor | Weights], sizes: Sequence[int] | None
) -> list[int]:
    """The tokens of each group, once everything fits."""
    if len(tokens.shape) != 2:
        raise ValueError(f"tokens: its shape is {tuple(tokens.shape)}; give [m, k], the groups one after another")
    for name, weights in named.items():
        if not isinstance(weights, Weights):
            _check_tensor(name, weights)
        if weights.shape[-1] != tokens.shape[1]:
            raise ValueError(
                f"{name}: its rows have {weights.shape[-1]} values, and those of tokens {tokens.shape[1]}; both must "
                "have k"
            )
    groups = groups_of(next(iter(named.values())).shape)
    if sizes is None:
        if groups != 1:
            raise ValueError(f"sizes: left out for weights of {groups} groups; give the tokens of each group")
        return [tokens.shape[0]]
    if hasattr(sizes, "tolist"):
        sizes = sizes.tolist()
    counts = [int(size) for size in sizes]
    if len(counts) != groups:
        raise ValueError(f"sizes: {len(counts)} sizes for weights of {groups} groups; give one for each")
    negative = [count for count in counts if count < 0]
    if negative:
        raise ValueError(f"sizes: {negative[0]} is negative; give the number of tokens, 0 for none")
    if sum(counts) != tokens.shape[0]:
        raise ValueError(f"sizes: they add up to {sum(counts)}, and tokens has {tokens.shape[0]} rows")
    return counts


def groups_of(shape: tuple[int, ...]) -> int:
    """How many matrices a tensor of this shape holds."""
    return shape[0] if len(shape) == 3 else 1


def matrices(tensor: Tensor, rows: Sequence[int]) -> _native.Matrices:
    """A copy of a tensor on the CPU, cut into matrices of so many rows."""
    scales = tensor.tensor_scales
    if len(scales) != len(rows):
        scales = scales * len(rows)
    return _native.Matrices(
        _arrays.flat_bytes(tensor.values), _arrays.flat_bytes(tensor.scales), rows, tensor.shape[-1], scales
    )


def _registered(weights: Tensor | Weights) -> Weights:
    return weights if isinstance(weights, Weights) else Weights(weights)


def _check_tensor(name: str, tensor: object) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"{name}: it is a {type(tensor).__name__}; give an nvfp4.Tensor, as nvfp4.quantize and nvfp4.load make them"
        )
