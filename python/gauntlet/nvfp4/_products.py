"""Grouped matrix products on NVFP4 operands."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from gauntlet import _native
from gauntlet.nvfp4 import _arrays
from gauntlet.nvfp4._tensor import Tensor


@functools.cache
def on_gpu() -> ModuleType:
    """The module for GPUs, which imports torch. An import statement would take 0.3 us of each call (on a CPU, 2026-11-26)."""
    from gauntlet.nvfp4 import _cuda

    return _cuda


class Weights:
    """The weights of a layer, prepared once, so that calls do not copy them.

    On the CPU they are copied. On a GPU, rows whose values are no multiple of 256 are copied to rows that are filled up with
    zeros, because kernels fetch pieces of rows that begin at multiples of 16 bytes; other weights are used as they are.

    Args:
        tensor: ``[n, k]``, or ``[groups, n, k]`` for a mixture of experts.
        tokens: On a Hopper GPU, the type of the tokens, bfloat16 or float16: weights are then copied in an order for these
            tokens, which spares each call a launch, and are for no others. n is a multiple of 16.
            Or float8_e4m3fn, for PyTorch tensors and `linear` alone: it rounds weights here and tokens in each call to e4m3, in 8
            bits a weight. **Results are not exact**, but off by 3 to 4 % of their root mean square; with a thousand tokens and more
            they take half to two thirds of the time. n and k are multiples of 16.

    Raises:
        TypeError: It is not an `nvfp4.Tensor`, or weights are not repacked for such tokens.
        ValueError: On the CPU, a block scale is NaN, or there are `tokens`; on a GPU, its kernels take no such weights.
    """

    def __init__(self, tensor: Tensor, *, tokens: Any = None) -> None:
        _check_tensor("weights", tensor)
        self.shape = tensor.shape
        self.device = tensor.device
        self._matrices: _native.Matrices | None = None
        self._padded: Tensor | None = None
        self.tokens: str | None = None
        if is_e4m3(tokens):
            from gauntlet.nvfp4 import _eights

            self.tokens, self.eights = E4M3, _eights.decoded(tensor)
            return
        self.tokens = None if tokens is None else tokens_argument(tokens, tensor.values)
        if self.device == "cpu":
            if self.tokens is not None:
                raise ValueError("tokens: weights are repacked for the kernels of a GPU, and these are on cpu; leave it out")
            self._matrices = matrices(tensor, [tensor.shape[-2]] * groups_of(tensor.shape))
        else:
            padded = on_gpu().padded(tensor)
            self._padded = padded if self.tokens is None else on_gpu().packed(padded, self.tokens)

    @property
    def on_cpu(self) -> _native.Matrices:
        """The copy on the CPU."""
        check_is_exact("weights", self)
        if self._matrices is None:
            raise ValueError(f"weights: they are on {self.device}, and the tokens on cpu; prepare weights there")
        return self._matrices

    @property
    def on_gpu(self) -> Tensor:
        """The weights on a GPU, with rows that its kernels take."""
        check_is_exact("weights", self)
        if self._padded is None:
            raise TypeError("weights: nvfp4.Weights are on the CPU, and the tokens on a GPU; prepare weights there")
        return self._padded

    def __repr__(self) -> str:
        tokens = "" if self.tokens is None else f", tokens={self.tokens!r}"
        return f"nvfp4.Weights(shape={self.shape}, device={self.device!r}{tokens})"


E4M3 = "float8_e4m3fn"


def is_e4m3(tokens: object) -> bool:
    """Whether it names e4m3, as a string or as a type of a library."""
    return str(tokens).removeprefix("torch.") == E4M3


def check_is_exact(name: str, weights: Any) -> None:
    """Raises ValueError for weights that are rounded to e4m3."""
    if getattr(weights, "tokens", None) == E4M3:
        raise ValueError(f"{name}: they were rounded for {E4M3} tokens, which only nvfp4.linear takes; prepare others")


def tokens_argument(tokens: Any, like: Any) -> str:
    """The name of the type of tokens that weights are repacked for.

    Raises:
        TypeError: They are repacked for no such tokens.
    """
    name = _arrays.dtype_argument("tokens", tokens, "bfloat16", like)
    if name not in ("bfloat16", "float16"):
        raise TypeError(f"tokens: weights are not repacked for {name}; give bfloat16 or float16")
    return name


def repacked(tensor: Tensor, tokens: str) -> Weights:
    """Weights that share the memory of a tensor whose bytes `_cuda.packed` put into the order for these tokens.

    Raises:
        ValueError: They are on the CPU, whose kernels do not read them.
    """
    if not getattr(tensor.values, "is_cuda", False):
        raise ValueError(
            f"weights: they are on {tensor.device}, and were repacked for {tokens} tokens on a Hopper GPU; convert or load the model "
            "again, or move it back"
        )
    made = Weights.__new__(Weights)
    made.shape, made.device, made.tokens = tensor.shape, tensor.device, tokens
    made._matrices, made._padded = None, tensor
    return made


def grouped_mm(
    tokens: Any,
    weights: Tensor | Weights,
    sizes: Sequence[int] | None = None,
    *,
    offs: Any = None,
    out_dtype: Any = None,
) -> Any:
    """Multiplies each group's tokens by its weights: ``tokens[group] @ weights[group].T``.

    Args:
        tokens: ``[m, k]``: the tokens of all groups one after another. An `nvfp4.Tensor`, or an array of bfloat16 or
            float16, whose values are multiplied as they are: products are exact, and only the float32 sums round. On the
            CPU also float32, whose products round.
        weights: ``[groups, n, k]``, or ``[n, k]`` for one group; `Weights` are prepared once: they spare the
            CPU a copy in each call, and a GPU takes any k that is a multiple of 16 by them.
        sizes: The tokens of each group, which add up to m; 0 is allowed. Left out for one group.
        offs: In place of sizes, as in PyTorch's ``_grouped_mm``: an array of int32 on the device of the tokens, ``[groups]``,
            with the row at which each group's tokens end. On a GPU it is read there, so the host neither knows nor waits for
            it, and a captured graph serves every routing. Rows of the result beyond the last end are not defined.
        out_dtype: float16, bfloat16 or float32; by default float32 for numpy and bfloat16 for PyTorch.

    Returns:
        ``[m, n]``, of the tokens' library and device; arrays of other libraries that offer DLPack (CuPy, JAX) are computed
        through PyTorch, beside weights that are its tensors. Sums are rounded once to `out_dtype`, results are the same to the
        bit from call to call.

    Raises:
        TypeError: An argument is of another type.
        ValueError: Shapes, sizes or devices do not fit.
        MemoryError: There is no memory for the call.
    """
    return _product(tokens, weights, None, (sizes, offs), out_dtype)


def swiglu_grouped_mm(
    tokens: Any,
    gate: Tensor | Weights,
    up: Tensor | Weights,
    sizes: Sequence[int] | None = None,
    *,
    offs: Any = None,
    out_dtype: Any = None,
) -> Any:
    """Two products with SwiGLU fused: ``silu(tokens @ gate.T) * (tokens @ up.T)`` for each group.

    Args:
        tokens: As in `grouped_mm`.
        gate: ``[groups, n, k]``, or ``[n, k]`` for one group: the weights under `silu`.
        up: The other weights, of the same shape.
        sizes: As in `grouped_mm`.
        offs: As in `grouped_mm`.
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
    return _product(tokens, gate, up, (sizes, offs), out_dtype)


def _product(
    tokens: Any,
    weights: Tensor | Weights,
    second: Tensor | Weights | None,
    routing: tuple[Sequence[int] | None, Any],
    out_dtype: Any,
) -> Any:
    sizes, offs = routing
    if getattr(tokens, "is_cuda", False):
        quick = on_gpu().quick(tokens, weights, second, sizes, offs, out_dtype)
        if quick is not None:
            return quick
    if not isinstance(tokens, Tensor) and _arrays.is_foreign(tokens):
        result = _product(_arrays.imported(tokens), weights, second, (sizes, _arrays.imported(offs)), out_dtype)
        return _arrays.exported(result, tokens)
    named = {"weights": weights} if second is None else {"gate": weights, "up": second}
    for name, one in named.items():
        check_is_exact(name, one)
    is_float = not isinstance(tokens, Tensor)
    if is_float:
        check_floats("tokens", tokens)
    own = tokens if is_float else tokens.values
    default = "bfloat16" if _arrays.is_torch(own) else "float32"
    dtype = _arrays.dtype_argument("out_dtype", out_dtype, default, own)
    if dtype == "float64":
        raise TypeError("out_dtype: float64 is not supported; use float32, float16 or bfloat16")
    tensors = {name: one.values for name, one in named.items() if isinstance(one, Tensor)}
    is_on_cpu = _arrays.check_same_device({"tokens": own, **tensors}) == "cpu"
    if offs is not None:
        if sizes is not None:
            raise ValueError("offs: given beside sizes; give one of them")
        check_operands(tokens, named)
        groups = groups_of(next(iter(named.values())).shape)
        _arrays.check("offs", offs, ("int32",), [groups])
        _arrays.check_same_device({"tokens": own, "offs": offs})
    if not is_on_cpu:
        counts = offs if offs is not None else checked_sizes(tokens, named, sizes)
        return on_gpu().product(tokens, named, counts, dtype)
    if offs is not None:
        return _product_of_ends(tokens, weights, second, offs, dtype)
    counts = checked_sizes(tokens, named, sizes)
    layers = [registered(one).on_cpu for one in named.values()]
    pair = layers[0], layers[1] if second is not None else None
    if is_float:
        elements = _arrays.flat_bytes(tokens)
        data = _native.grouped_mm_of_floats(elements, _arrays.dtype_name(tokens), counts, *pair, dtype)
    else:
        data = _native.grouped_mm(matrices(tokens, counts), *pair, dtype)
    return _arrays.from_bytes(data, dtype, (tokens.shape[0], weights.shape[-2]), own)


def _product_of_ends(
    tokens: Any, weights: Tensor | Weights, second: Tensor | Weights | None, offs: Any, dtype: str
) -> Any:
    """On the CPU, where ends are sizes. Rows beyond the last end become zero."""
    ends, rows = [int(end) for end in offs.tolist()], int(tokens.shape[0])
    last = 0
    for group, end in enumerate(ends):
        if not last <= end <= rows:
            raise ValueError(f"offs: the tokens of group {group} end at {end}; ends rise from {last} to at most {rows}")
        last = end
    sizes = [end - begin for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
    if last == rows:
        return _product(tokens, weights, second, (sizes, None), dtype)
    if isinstance(tokens, Tensor):
        kept: Any = Tensor(tokens.values[:last], tokens.scales[:last], tokens.tensor_scale)
    else:
        kept = tokens[:last]
    result = _product(kept, weights, second, (sizes, None), dtype)
    return _arrays.with_zero_rows(result, rows)


FLOATS = ("bfloat16", "float16", "float32")
"""Types of tokens that are multiplied as they are."""


def check_floats(name: str, tokens: Any) -> None:
    """Raises TypeError unless these are tokens without scales that the kernels of their device multiply."""
    if not _arrays.is_array(tokens):
        raise TypeError(
            f"{name}: it is a {type(tokens).__name__}; give an nvfp4.Tensor, as nvfp4.quantize makes it, or an array of "
            "floats"
        )
    _arrays.check(name, tokens, FLOATS)
    if _arrays.dtype_name(tokens) == "float32" and _arrays.device_name(tokens) != "cpu":
        raise TypeError(f"{name}: float32 on {tokens.device}, where the kernels multiply bfloat16 and float16; convert them")


def check_operands(tokens: Any, named: dict[str, Tensor | Weights]) -> None:
    """Raises unless tokens and weights fit each other."""
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


def checked_sizes(
    tokens: Any, named: dict[str, Tensor | Weights], sizes: Sequence[int] | None
) -> list[int]:
    """The tokens of each group, once everything fits."""
    check_operands(tokens, named)
    groups = groups_of(next(iter(named.values())).shape)
    if sizes is None:
        if groups != 1:
            raise ValueError(f"sizes: left out for weights of {groups} groups; give the tokens of each group")
        return [tokens.shape[0]]
    if hasattr(sizes, "tolist"):
        sizes = sizes.tolist()
    try:
        counts = [operator.index(size) for size in sizes]
    except TypeError:
        raise TypeError(f"sizes: {sizes!r} are not whole numbers; give the number of tokens of each group") from None
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
    """A copy of a tensor on the CPU, cut into one matrix for each number in ``rows``, which has that many rows."""
    scales = tensor.tensor_scales
    if len(scales) != len(rows):
        scales = scales * len(rows)
    return _native.Matrices(
        _arrays.flat_bytes(tensor.values), _arrays.flat_bytes(tensor.scales), rows, tensor.shape[-1], scales
    )


def registered(weights: Tensor | Weights) -> Weights:
    return weights if isinstance(weights, Weights) else Weights(weights)


def _check_tensor(name: str, tensor: object) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"{name}: it is a {type(tensor).__name__}; give an nvfp4.Tensor, as nvfp4.quantize and nvfp4.load make them"
        )
