"""Whole layers: a dense one, and a mixture of experts."""

from __future__ import annotations

from typing import Any

import numpy as np

from gauntlet import _native
from gauntlet.nvfp4 import _arrays
from gauntlet.nvfp4._activations import Activation
from gauntlet.nvfp4._products import E4M3, FLOATS, Weights, check_floats, check_is_exact, grouped_mm, on_gpu, registered
from gauntlet.nvfp4._tensor import Tensor


def linear(x: Any, weight: Tensor | Weights, bias: Any = None, *, out_dtype: Any = None) -> Any:
    """A dense layer: ``x @ weight.T + bias``.

    Args:
        x: ``[..., k]``, bfloat16 or float16, on the CPU also float32: numpy arrays and PyTorch tensors.
        weight: ``[n, k]``; `Weights` spare the CPU a copy in each call. Those for float8_e4m3fn tokens give results that are not
            exact: tokens are rounded to e4m3 too, each relative to its largest magnitude.
        bias: ``[n]``, of any of these types.
        out_dtype: float16, bfloat16 or float32; by default the type of `x`.

    Returns:
        ``[..., n]``, of the library and device of `x`. The sum with the bias is rounded once to `out_dtype`.

    Raises:
        As `grouped_mm`.
    """
    if bias is None and getattr(x, "is_cuda", False):
        quick = on_gpu().linear(x, weight, out_dtype)
        if quick is not None:
            return quick
    check_floats("x", x)
    if len(getattr(weight, "shape", ())) != 2:
        raise ValueError(f"weight: its shape is {getattr(weight, 'shape', None)}; give [n, k]")
    n, dtype = weight.shape[0], _arrays.dtype_argument("out_dtype", out_dtype, _arrays.dtype_name(x), x)
    if getattr(weight, "tokens", None) == E4M3:
        from gauntlet.nvfp4 import _eights

        if bias is not None:
            _arrays.check("bias", bias, FLOATS, [n])
            _arrays.check_same_device({"x": x, "bias": bias})
        return _eights.layer(x, weight, bias, dtype)
    flat = x.reshape(-1, x.shape[-1]) if x.ndim else x
    if bias is None:
        result = grouped_mm(flat, weight, out_dtype=dtype)
    else:
        _arrays.check("bias", bias, FLOATS, [n])
        _arrays.check_same_device({"x": x, "bias": bias})
        exact = grouped_mm(flat, weight, out_dtype="float32")
        result = _arrays.converted(exact + _arrays.converted(bias, "float32"), dtype)
    return result.reshape(*x.shape[:-1], n)


def moe(
    hidden: Any,
    topk_ids: Any,
    topk_weights: Any,
    gate: Tensor | Weights,
    up: Tensor | Weights,
    down: Tensor | Weights,
    *,
    activation: str = "silu",
    alpha: float = 1.0,
    beta: float = 0.0,
    limit: float | None = None,
    gate_bias: Any = None,
    up_bias: Any = None,
    down_bias: Any = None,
    expert_map: Any = None,
    out_dtype: Any = None,
) -> Any:
    """A mixture of experts: for each token the weighted sum of ``(f(x @ gate.T) * (x @ up.T)) @ down.T`` over its experts.

    On a Hopper GPU the kernels of the products also compute the activation `silu` with alpha, beta and limit, and add the biases.
    Other activations, and all but plain `silu` elsewhere, are computed by PyTorch from their sums in float32.
    Results between the two products have the type of `hidden`; the experts' results are float32 and summed in the order of
    `topk_ids`, so equal calls give equal bits. On the CPU the sums are float64. On a GPU the routing stays on the device:
    the call does not wait for it and may be captured.

    Args:
        hidden: ``[tokens, hidden]``, bfloat16 or float16, on the CPU also float32.
        topk_ids: ``[tokens, k]``, int32 or int64: the experts of each token. -1 stands for no expert and adds nothing. Any other
            number that stands for none is an error on the CPU; a GPU cannot raise one without a wait, and the results of that
            token are NaN.
        topk_weights: ``[tokens, k]``, float32, bfloat16 or float16.
        gate: ``[experts, intermediate, hidden]``: the weights under `silu`.
        up: ``[experts, intermediate, hidden]``.
        down: ``[experts, hidden, intermediate]``.
        activation: The function f: ``"silu"``, ``"gelu"``, ``"gelu_tanh"``, or ``"relu2"``, the square of the positive part.
        alpha: ``silu`` is ``s * sigmoid(alpha * s)``.
        beta: It is added to ``x @ up.T``.
        limit: Sums with `gate` count as at most this, those with `up` as within it on both sides. gpt-oss has alpha 1.702,
            beta 1 and limit 7.
        gate_bias: ``[experts, intermediate]``, of any of these types, added to ``x @ gate.T``.
        up_bias: As `gate_bias`, for `up`.
        down_bias: ``[experts, hidden]``, added to each expert's result before it is weighted.
        expert_map: ``[all experts]``, int32 or int64, if only some experts are here: the place of each expert in `gate`, `up`
            and `down`, or -1. Those elsewhere add nothing, so the results of all ranks add up to the layer's. Other places are an
            error as in `topk_ids`.
        out_dtype: float16, bfloat16 or float32; by default the type of `hidden`.

    Returns:
        ``[tokens, hidden]``, of the library and device of `hidden`.

    Raises:
        TypeError: An argument is of another type.
        ValueError: Shapes or devices do not fit; on the CPU also, an id other than -1 stands for no expert.
        MemoryError: There is no memory for the call.
    """
    check_floats("hidden", hidden)
    if hidden.ndim != 2:
        raise ValueError(f"hidden: its shape is {tuple(hidden.shape)}; give [tokens, hidden]")
    tokens, width = (int(size) for size in hidden.shape)
    _arrays.check("topk_ids", topk_ids, ("int32", "int64"), [tokens, None])
    count = int(topk_ids.shape[1])
    _arrays.check("topk_weights", topk_weights, FLOATS, [tokens, count])
    arrays = {"hidden": hidden, "topk_ids": topk_ids, "topk_weights": topk_weights}
    if expert_map is not None:
        _arrays.check("expert_map", expert_map, ("int32", "int64"), [None])
        arrays["expert_map"] = expert_map
    _check_experts(width, gate, up, down)
    for name, weights in (("gate", gate), ("up", up), ("down", down)):
        check_is_exact(name, weights)
    function = Activation.checked(activation, alpha, beta, limit)
    biases = {"gate_bias": gate_bias, "up_bias": up_bias, "down_bias": down_bias}
    for name, weights in zip(biases, (gate, up, down), strict=True):
        if biases[name] is not None:
            _arrays.check(name, biases[name], FLOATS, list(weights.shape[:2]))
            arrays[name] = biases[name]
    is_plain = function.is_plain and not arrays.keys() & biases.keys()
    if not is_plain and not _arrays.is_torch(hidden):
        raise TypeError("hidden: numpy arrays have the activation silu without alpha, beta, limit or bias; use PyTorch tensors")
    dtype = _arrays.dtype_argument("out_dtype", out_dtype, _arrays.dtype_name(hidden), hidden)
    if dtype == "float64":
        raise TypeError("out_dtype: float64 is not supported; use float32, float16 or bfloat16")
    named = {"gate": gate, "up": up, "down": down}
    arrays |= {name: one.values for name, one in named.items() if isinstance(one, Tensor)}
    is_on_cpu = _arrays.check_same_device(arrays) == "cpu"
    if is_on_cpu and not is_plain:
        _check_ids(topk_ids, expert_map, int(gate.shape[0]))
    if not is_on_cpu or not is_plain:
        from gauntlet.nvfp4 import _routed

        more = function, _routed.Biases(gate_bias, up_bias, down_bias)
        return _routed.moe(hidden, topk_ids, topk_weights, gate, up, down, expert_map, dtype, *more)
    data = _native.moe(
        _arrays.flat_bytes(hidden),
        (_arrays.dtype_name(hidden), dtype),
        (tokens, width, count),
        _numbers(topk_ids),
        _arrays.flat_floats(topk_weights),
        (registered(gate).on_cpu, registered(up).on_cpu, registered(down).on_cpu),
        None if expert_map is None else _numbers(expert_map),
    )
    return _arrays.from_bytes(data, dtype, (tokens, width), hidden)


def _check_ids(topk_ids: Any, expert_map: Any, experts: int) -> None:
    """What the native layer checks on the CPU: every id stands for an expert, and every place for one that is given, or is -1."""
    known = experts if expert_map is None else int(expert_map.shape[0])
    wrong = ((topk_ids < -1) | (topk_ids >= known)).nonzero()
    if len(wrong):
        token, at = wrong[0].tolist()
        number = int(topk_ids[token, at])
        raise ValueError(f"topk_ids: {number} of token {token}: there are {known} experts; give 0 to {known - 1}, or -1 for none")
    if expert_map is not None:
        strays = ((expert_map < -1) | (expert_map >= experts)).nonzero()
        if len(strays):
            place = int(expert_map[strays[0, 0]])
            raise ValueError(f"expert_map: an expert is at {place}, and {experts} are given; give 0 to {experts - 1}, or -1")


def _check_experts(width: int, gate: Any, up: Any, down: Any) -> None:
    named = {"gate": gate, "up": up, "down": down}
    shapes: dict[str, tuple[int, ...]] = {name: getattr(one, "shape", ()) for name, one in named.items()}
    for name, shape in shapes.items():
        if len(shape) != 3:
            raise ValueError(f"{name}: its shape is {shape}; give a stack of matrices, one for each expert")
    experts, between, _ = shapes["gate"]
    for name, wanted in {
        "gate": (experts, between, width),
        "up": (experts, between, width),
        "down": (experts, width, between),
    }.items():
        if shapes[name] != wanted:
            raise ValueError(f"{name}: its shape is {shapes[name]}; for these tokens and experts it must be {wanted}")


def _numbers(array: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Integers on the CPU, flat."""
    flat = array.detach().reshape(-1).numpy() if _arrays.is_torch(array) else array.reshape(-1)
    return np.require(flat, np.int64, ("C", "A"))
