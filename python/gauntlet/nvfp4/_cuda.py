"""Products on NVIDIA GPUs, on PyTorch's current stream. Imports torch."""

from __future__ import annotations

import functools
import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from gauntlet import _native
from gauntlet.nvfp4._tensor import BLOCK, Tensor

STEP = 256
"""Values in memory along k are a multiple of this."""

ROWS = 16
"""Rows of weights are repacked so many at a time."""

HOPPER = 9
"""The major compute capability of the GPUs whose kernels read repacked weights."""


BEFOREHAND = Path(__file__).parent / "kernels"
"""Kernels that were compiled when the package was built; a package that was built without a CUDA compiler has none."""


@functools.cache
def is_hopper(device: torch.device) -> bool:
    major: int = torch.cuda.get_device_capability(device)[0]
    return major == HOPPER


class _ByDevice(dict[int, _native.CudaLibrary]):
    def __missing__(self, device: int) -> _native.CudaLibrary:
        library = self[device] = _native.CudaLibrary(device, BEFOREHAND if BEFOREHAND.is_dir() else None)
        return library


class _Libraries(threading.local):
    """The GPUs that a thread uses: the objects of a CUDA library stay in the thread that made them."""

    def __init__(self) -> None:
        self.of = _ByDevice()
        self.mixtures: set[tuple[Any, ...]] = set()
        """The kinds of mixtures whose kernels are loaded."""


libraries = _Libraries()

_SCALES = (torch.uint8, torch.float8_e4m3fn)
_HALVES = (torch.bfloat16, torch.float16)
NAMES = {torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32"}


def _wrapped_stream(device: int) -> int:
    return int(torch.cuda.current_stream(device).cuda_stream)


# PyTorch's own compiler uses the private function in the code that it generates: it spares an object in each call.
current_stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", _wrapped_stream)


def product(tokens: Any, named: dict[str, Any], routing: Sequence[int] | torch.Tensor, dtype: str) -> torch.Tensor:
    """A grouped product whose operands lie on one GPU; everything fits. Tokens are an `nvfp4.Tensor`, or 16-bit floats.
    `routing` has the tokens of each group, or is a tensor on the GPU with the ends of each group's."""
    if isinstance(tokens, Tensor):
        first, second = matrices(named, tokens.shape[1], tokens.device, packing_of(named, "NVFP4"))
        tokens = padded(tokens)
        operands = tokens.values, tokens.scales, tokens.tensor_scales
    else:
        first, second = matrices(named, tokens.shape[1], str(tokens.device), packing_of(named, NAMES[tokens.dtype]))
        operands = tokens, None, ()
    return enqueue(*operands, first, second, routing, getattr(torch, dtype))


CANONICAL, STEPS = "canonical", "steps"
"""How weights lie in memory: as in checkpoints, or repacked for 16-bit tokens."""


def packing_of(named: dict[str, Any], tokens: str) -> str:
    """How all of the weights are packed; raises ValueError if they differ, or are packed for other tokens."""
    kinds = {name: getattr(weights, "tokens", None) for name, weights in named.items()}
    for name, kind in kinds.items():
        if kind is not None and kind != tokens:
            raise ValueError(f"{name}: they were repacked for {kind} tokens, and these are {tokens}; prepare them for those")
    if len(set(kinds.values())) > 1:
        raise ValueError(f"{', '.join(kinds)}: only some of them were repacked; prepare all with the same `tokens`, or none")
    return CANONICAL if None in kinds.values() else STEPS


def packed(tensor: Tensor, tokens: str) -> Tensor:
    """The weights repacked for tokens of this type: as many bytes in another order, which only the kernels read."""
    *outer, n, k = tensor.shape
    if not is_hopper(tensor.values.device):
        raise ValueError("tokens: only kernels of Hopper GPUs read weights that were repacked for them; leave it out")
    if n % ROWS:
        raise ValueError(f"tokens: weights of {n} rows are not repacked; rows must be a multiple of {ROWS}, so leave it out")
    device = tensor.values.get_device()
    parts = [array.contiguous().view(torch.uint8) for array in (tensor.values, tensor.scales)]
    values, scales = (torch.empty_like(part) for part in parts)
    addresses = (parts[0].data_ptr(), parts[1].data_ptr(), values.data_ptr(), scales.data_ptr())
    libraries.of[device].repack(current_stream(device), (outer[0] if outer else 1, n, k), addresses, tokens)
    return Tensor(values, scales, tensor.tensor_scale)


class Matrices(NamedTuple):
    """Weights on a GPU as `enqueue` takes them."""

    values: torch.Tensor
    scales: torch.Tensor
    stack: _native.Stack

    @classmethod
    def of(
        cls, values: torch.Tensor, scales: torch.Tensor, tensor_scales: Sequence[float], packing: str = CANONICAL
    ) -> Matrices:
        *outer, n, half = values.shape
        return cls(values, scales, _native.Stack((outer[0] if outer else 1, n, 2 * half), tensor_scales, packing))


def matrices(named: dict[str, Any], k: int, device: str, packing: str) -> tuple[Matrices, Matrices | None]:
    """The first and the second weights as `enqueue` takes them."""
    found = []
    for name, weights in named.items():
        own = weights if isinstance(weights, Tensor) else weights.on_gpu
        if own.device != device:
            raise ValueError(f"{name}: they are on {own.device}, and tokens on {device}; move them with .to({device!r})")
        if own.shape[-1] % STEP:
            raise ValueError(
                f"{name}: rows of {k} values; a GPU takes rows of a multiple of {STEP} as they are, and others prepared once "
                "by nvfp4.Weights(…)"
            )
        found.append(Matrices.of(own.values, own.scales, own.tensor_scales, packing))
    first, *others = found
    return first, others[0] if others else None


def padded(tensor: Tensor) -> Tensor:
    """The tensor with rows filled up with zeros to a multiple of `STEP` values; itself if they are."""
    extra = -tensor.shape[-1] % STEP
    if extra == 0:
        return tensor

    def filled(array: torch.Tensor, values_of_each: int) -> torch.Tensor:
        padding = (0, extra // values_of_each)
        return torch.nn.functional.pad(array.view(torch.uint8), padding).view(array.dtype)

    return Tensor(filled(tensor.values, 2), filled(tensor.scales, BLOCK), tensor.tensor_scale)


class _Ready(NamedTuple):
    """Weights on a GPU with what each call compares."""

    matrices: Matrices
    device: torch.device
    shape: tuple[int, ...]
    groups: int
    tokens: torch.dtype | None
    """What they were repacked for."""

    def __reduce__(self) -> Any:
        """Copies of the weights, which may be on another device, begin without it."""
        return type(None), ()


def _ready(weights: Any) -> _Ready | None:
    """The same for every call with an `nvfp4.Tensor` or `nvfp4.Weights`, so it is kept beside its fields; None for weights that
    have to be prepared or are not on a GPU."""
    kept: _Ready | None = getattr(weights, "__dict__", {}).get("_ready")
    if kept is None and hasattr(weights, "shape"):
        own = weights if isinstance(weights, Tensor) else getattr(weights, "_padded", None)
        if own is not None and getattr(own.values, "is_cuda", False) and own.shape[-1] % STEP == 0:
            tokens = getattr(weights, "tokens", None)
            packing, for_tokens = (CANONICAL, None) if tokens is None else (STEPS, getattr(torch, tokens))
            parts = Matrices.of(own.values, own.scales, own.tensor_scales, packing)
            groups = own.shape[0] if len(own.shape) == 3 else 1
            kept = _Ready(parts, own.values.device, tuple(weights.shape), groups, for_tokens)
            weights.__dict__["_ready"] = kept
    return kept


Product = tuple[int, _native.Stack, _native.Stack | None, tuple[str, str], bool]
"""A product whose kernels are to be loaded: k, the weights, the formats of the tokens and the result, and whether its routing is on
the GPU."""


def products_of_mixture(tokens: str, gate: _native.Stack, down: _native.Stack) -> list[Product]:
    """The products of a mixture with SwiGLU."""
    return [(down.n, gate, gate, (tokens, tokens), True), (gate.n, down, None, (tokens, "float32"), True)]


def load_mixture(tokens: torch.Tensor, gate: Any, up: Any, down: Any) -> None:
    """Loads the kernels of both products of a mixture with SwiGLU, before the first is called: compiled side by side, they take
    the time of one. Does nothing for operands that do not fit, which the products name."""
    ready = [_ready(one) for one in (gate, up, down)]
    stacks = [one.matrices.stack for one in ready if one is not None and one.tokens in (None, tokens.dtype)]
    if len(stacks) < len(ready) or tokens.dtype not in _HALVES:
        return
    device = tokens.get_device()
    kind = device, tokens.dtype, *(one.tokens for one in ready if one is not None)
    if kind not in libraries.mixtures:
        libraries.of[device].load(products_of_mixture(NAMES[tokens.dtype], stacks[0], stacks[2]))
        libraries.mixtures.add(kind)


Epilogue = tuple[tuple[int, int], str, tuple[float, float, float]]
"""What follows the sums of a product with ends: addresses of the biases of both weights or 0, their type, and alpha, beta and limit."""


def epilogue_of(
    experts: int, biases: Sequence[torch.Tensor | None], numbers: tuple[float, float, float] = (1.0, 0.0, math.inf)
) -> Epilogue | None:
    """None if the kernels do not read these biases, of one type and `[experts, n]`."""
    given = [bias for bias in biases if bias is not None]
    types = {bias.dtype for bias in given}
    if len(types) > 1 or not types <= set(NAMES) or not all(bias.is_cuda and bias.is_contiguous() for bias in given):
        return None
    if any(bias.ndim != 2 or bias.shape[0] != experts for bias in given):
        return None
    first, second = (0 if bias is None else bias.data_ptr() for bias in (*biases, None)[:2])
    return (first, second), NAMES[types.pop()] if types else "float32", numbers


_NEW_CALLS = 8
"""The host plans a list of sizes when it comes back so often: that takes it a millisecond."""

_MAX_NEW_GROUPS, _MAX_NEW_ROWS = 1024, 1 << 17


class _Counts(NamedTuple):
    """The tokens of each group, and the calls that had them."""

    sizes: tuple[int, ...]
    calls: Iterator[int]

    def routing(self, device: torch.device) -> Sequence[int] | torch.Tensor:
        """As `enqueue` takes it: while the list is new, the ends of the groups, by which the device plans. A captured call is
        replayed, so the host plans it."""
        if next(self.calls) >= _NEW_CALLS or not is_hopper(device) or torch.cuda.is_current_stream_capturing():
            return self.sizes
        ends = list(itertools.accumulate(self.sizes))
        if not 1 < len(ends) <= _MAX_NEW_GROUPS or ends[-1] > _MAX_NEW_ROWS:
            return self.sizes
        return torch.tensor(ends, dtype=torch.int32).to(device, non_blocking=True)


@functools.lru_cache(maxsize=1024)
def _counts(rows: int, groups: int, sizes: tuple[Any, ...]) -> _Counts | None:
    """None unless they are integers that fit."""
    is_fit = len(sizes) == groups and set(map(type, sizes)) == {int} and sum(sizes) == rows and min(sizes) >= 0
    return _Counts(sizes, itertools.count()) if is_fit else None


def quick(
    tokens: torch.Tensor,
    weights: Any,
    second: Any,
    sizes: Sequence[int] | None,
    offs: torch.Tensor | None,
    out_dtype: torch.dtype | None,
    ndim: int = 2,
    ends_are_ready: bool = False,
    epilogue: Epilogue | None = None,
) -> torch.Tensor | None:
    """The product of 16-bit tokens, if a few comparisons show that everything fits; otherwise None, and `_products` checks each
    argument with words. Those checks took 8 of the 28 us of a call with sizes and 46 of 66 with offs (H100s, 2026-11-25)."""
    first = _ready(weights)
    if first is None:
        return None
    dtype, shape = tokens.dtype, tokens.shape
    wanted = torch.bfloat16 if out_dtype is None else out_dtype
    if (
        dtype not in _HALVES
        or first.tokens not in (None, dtype)
        or len(shape) != ndim
        or shape[-1] != first.shape[-1]
        or tokens.device != first.device
        or not tokens.is_contiguous()
        or wanted not in NAMES
    ):
        return None
    other = None
    if second is not None:
        ready = _ready(second)
        if ready is None or (ready.device, ready.shape, ready.tokens) != (first.device, first.shape, first.tokens):
            return None
        other = ready.matrices
    routing: Any = None
    if offs is not None:
        is_plain = sizes is None and isinstance(offs, torch.Tensor)
        if is_plain and offs.dtype is torch.int32 and offs.shape == (first.groups,) and offs.device == first.device:
            routing = offs if offs.is_contiguous() else None
    elif sizes is None:
        rows = shape[0] if ndim == 2 else math.prod(shape[:-1])
        routing = [rows] if first.groups == 1 else None
    elif type(sizes) is list:
        counts = _counts(shape[0], first.groups, tuple(sizes))
        routing = None if counts is None else counts.routing(first.device)
    if routing is None:
        return None
    return enqueue(tokens, None, (), first.matrices, other, routing, wanted, ends_are_ready, epilogue)


def linear(x: torch.Tensor, weight: Any, out_dtype: torch.dtype | None) -> torch.Tensor | None:
    """As `quick`, for a dense layer without a bias."""
    first, ndim, dtype = _ready(weight), x.ndim, out_dtype or x.dtype
    if first is None or len(first.shape) != 2 or ndim < 2:
        return None
    if ndim == 2 or x.is_contiguous():
        return quick(x, weight, None, None, None, dtype, ndim)
    if x.shape[-1] != first.shape[1]:
        return None
    result = quick(x.reshape(-1, first.shape[1]), weight, None, None, None, dtype)
    return None if result is None else result.view(*x.shape[:-1], result.shape[1])


def fits(values: torch.Tensor, scales: torch.Tensor, matrices: Sequence[torch.Tensor], sizes: Sequence[int]) -> bool:
    """Whether operands may be enqueued as they are: a quick yes to everything that `Tensor` and `_products` check with
    words. Weights and their scales alternate in `matrices`."""
    device = values.device
    rows, half = values.shape if values.ndim == 2 else (0, 0)
    stacks = matrices[0].shape
    return (
        device.type == "cuda"
        and half > 0
        and 2 * half % STEP == 0
        and values.dtype is torch.uint8
        and values.is_contiguous()
        and scales.shape == (rows, half // 8)
        and len(stacks) == 3
        and len(sizes) == stacks[0]
        and sum(sizes) == rows
        and min(sizes, default=0) >= 0
        and all(array.shape == (*stacks[:2], half if at % 2 == 0 else half // 8) for at, array in enumerate(matrices))
        and all(array.dtype is torch.uint8 for array in matrices[::2])
        and all(
            array.device == device and array.is_contiguous() for array in (scales, *matrices)
        )
        and all(array.dtype in _SCALES for array in (scales, *matrices[1::2]))
    )


def are_scales(*factors: tuple[Sequence[float], int]) -> bool:
    """Whether all tensor scales are finite, and each operand has one for all its groups or one for each."""
    return all(len(scales) in (1, groups) and math.isfinite(sum(scales)) for scales, groups in factors)


def enqueue(
    values: torch.Tensor,
    scales: torch.Tensor | None,
    token_scales: Sequence[float],
    first: Matrices,
    second: Matrices | None,
    routing: Sequence[int] | torch.Tensor,
    dtype: torch.dtype,
    ends_are_ready: bool = False,
    epilogue: Epilogue | None = None,
) -> torch.Tensor:
    """Enqueues a product on the current stream of its device. Tokens of 16-bit floats have no scales. For `routing` see
    `product`; `ends_are_ready` says that the stream's last launch is that of another product with these ends.
    Only a product with ends has an epilogue."""
    *outer, width = values.shape
    device = values.get_device()
    # PyTorch takes 0.4 us longer for sizes in a tuple, and 1.1 us for a `torch.Size` (on a CPU, 2026-11-26).
    output = torch.empty(*outer, first.stack.n, dtype=dtype, device=values.device)
    library, counts = libraries.of[device], routing
    work: Callable[..., None] = library.enqueue
    more: tuple[Epilogue | None, ...] = ()
    if isinstance(routing, torch.Tensor):
        work, counts = library.enqueue_routed, (outer[0], routing.data_ptr(), ends_are_ready)
        more = (epilogue,)
    work(
        current_stream(device),
        torch.cuda.is_current_stream_capturing(),
        width if scales is None else 2 * width,
        first.stack,
        None if second is None else second.stack,
        (
            first.values.data_ptr(),
            first.scales.data_ptr(),
            0 if second is None else second.values.data_ptr(),
            0 if second is None else second.scales.data_ptr(),
        ),
        token_scales,
        ("nvfp4" if scales is not None else NAMES[values.dtype], NAMES[dtype]),
        counts,
        (values.data_ptr(), 0 if scales is None else scales.data_ptr(), output.data_ptr()),
        *more,
    )
    return output
