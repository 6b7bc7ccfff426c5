"""Calls of the task's own library that give the same as its reference: a baseline that is far slower than such a call proves little.

A call is known by its results alone, on the task's own inputs, and only one that is far faster is told."""

import contextlib
import itertools
import math
import sys
import time
import warnings

import numpy as np
import tensors

# How many times as long as a call a reference takes that is told. References that compute in f64 take a few times as long.
_FAR = 10.0

# Seconds below which a reference's time is mostly that of calling it.
_SHORT = 1e-3

# Seconds from which one call tells its time.
_LONG = 0.5

# How far elements may be off, beside the root mean square of the result.
_NEAR = {"f64": 1e-4, "f32": 1e-4, "f16": 1e-2, "bf16": 1e-2}

# Elements below which a result may be alike by chance.
_FEW = 16

# Rows of queries up to which attention is tried, whose time grows with their square.
_MOST_QUERIES = 1 << 13

# Calls of one, two and three inputs, cheap ones first. `d` is each of the dimensions of `a`.
_CALLS = {
    "numpy": [
        ["np.maximum(a, 0)", "np.abs(a)", "np.exp(a)", "np.sqrt(a)", "np.tanh(a)"]
        + ["a.sum(d)", "a.mean(d)", "a.max(d)", "a.min(d)", "a.argmax(d)", "a.cumsum(d)", "np.sort(a, d)", "np.argsort(a, d)"]
        + ["a.sum()", "a.mean()"],
        ["a + b", "a - b", "a * b", "a / b", "a @ b", "a @ b.T", "a.T @ b"],
        ["a * b + c", "a @ b + c", "a @ b.T + c"],
    ],
    "torch": [
        [f"torch.{name}(a)" for name in ("relu", "sigmoid", "tanh", "abs", "exp", "sqrt", "sum", "mean")]
        + [f"torch.nn.functional.{name}(a)" for name in ("gelu", "silu", "softplus", "elu", "hardtanh")]
        + ["torch.nn.functional.gelu(a, approximate='tanh')"]
        + [f"torch.{name}(a, d)" for name in ("sum", "mean", "amax", "amin", "argmax", "logsumexp", "cumsum", "cumprod", "softmax")]
        + ["torch.log_softmax(a, d)", "torch.nn.functional.normalize(a, dim=d)", "torch.sort(a, d).values", "torch.argsort(a, d)"]
        + ["torch.nn.functional.layer_norm(a, a.shape[-1:])", "torch.nn.functional.rms_norm(a, a.shape[-1:])"],
        ["a + b", "a - b", "a * b", "a / b", "a @ b", "a @ b.mT", "a.mT @ b"]
        + ["torch.nn.functional.rms_norm(a, a.shape[-1:], b)"]
        + [f"torch.nn.functional.{name}(a, b)" for name in ("mse_loss", "l1_loss", "cross_entropy", "cosine_similarity")],
        ["torch.addcmul(c, a, b)", "torch.nn.functional.linear(a, b, c)", "torch.addmm(c, a, b)"]
        + ["torch.nn.functional.layer_norm(a, a.shape[-1:], b, c)", "torch.nn.functional.scaled_dot_product_attention(a, b, c)"]
        + ["torch.nn.functional.scaled_dot_product_attention(a, b, c, is_causal=True)"],
    ],
}


def faster_call(case, reference, given, expected):
    """The call that gives what ``reference()`` gave (``expected``, an array or tensor) for the inputs ``given`` by name, in words, and
    how many times as long the reference takes; None if there is none, or the reference is not far slower than it."""
    clock = _Clock(case)
    taken = clock.best(reference)
    wanted = _Wanted(expected)
    if taken < _SHORT or not wanted.says_enough or any(wanted.is_met_by(tensor) for tensor in given.values()):
        return None
    for call, names in _calls(case.library, given):
        own = dict(zip("abc", (given[name] for name in names)))
        code = compile(call, "<call>", "eval")

        def run(code=code, own=own):
            return eval(code, {"np": np, "torch": sys.modules.get("torch")}, own)

        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                is_met = _size(call, own) == wanted.values.size and wanted.is_met_by(run())
                times = taken / clock.best(run) if is_met else 0.0
        except Exception:
            # Inputs that the call does not take.
            continue
        if is_met:
            places = " and ".join(f"`{name}` for {letter}" for name, letter in zip(names, "abc"))
            return {"call": f"`{call}` of {case.library}, with {places}", "times": times} if times >= _FAR else None
    return None


def _calls(library, given):
    """Each call with the names of inputs for its letters."""
    for letters, calls in enumerate(_CALLS[library], 1):
        for names in itertools.permutations(given, letters):
            for call in calls:
                dimensions = range(given[names[0]].ndim) if "d)" in call else [None]
                yield from ((call.replace("d)", f"{dimension})"), names) for dimension in dimensions)


def _size(call, own):
    """Elements of what a call would give, which may be far more than memory holds."""
    first = next(iter(own.values()))
    if "attention" in call and first.shape[-2] > _MOST_QUERIES:
        return None
    if tensors.is_torch(first):
        forms = {letter: tensor.to("meta") for letter, tensor in own.items()}
        return eval(call, {"torch": sys.modules["torch"]}, forms).numel()
    if len(own) == 1:
        return eval(call, {"np": np}, own).size
    shapes = [(array.T if f"{letter}.T" in call else array).shape for letter, array in own.items()]
    if "@" in call:
        one, other = shapes[:2]
        columns = other[-1:] if len(other) > 1 else ()
        shapes = [(*np.broadcast_shapes(one[:-2], other[:-2]), *one[-2:-1], *columns), *shapes[2:]]
    return math.prod(np.broadcast_shapes(*shapes))


class _Clock:
    def __init__(self, case):
        on_gpu = case.device == "cuda"
        self.wait = sys.modules["torch"].cuda.synchronize if on_gpu else contextlib.nullcontext

    def best(self, run):
        """Seconds of the shortest of five calls, or of one that is so long that no other process can have made most of its time."""
        taken = []
        while len(taken) < 5 and max(taken, default=0.0) < _LONG:
            self.wait()
            start = time.perf_counter()
            run()
            self.wait()
            taken.append(time.perf_counter() - start)
        return min(taken)


class _Wanted:
    """What a call must give: the values, whatever dimensions of length 1 there are."""

    def __init__(self, expected):
        self.data_type = tensors.types_of(expected)[0]
        self.shape, self.values = _form(expected), _in_f64(expected)
        finite = self.values[np.isfinite(self.values)]
        self.size = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
        spread = float(finite.std()) if finite.size else 0.0
        # One value alone is told from others by other draws.
        self.says_enough = self.values.size == 1 or self.values.size >= _FEW and spread > 1e-2 * self.size

    def is_met_by(self, found):
        if not tensors.is_tensor(found) and not isinstance(found, np.generic):
            return False
        found = np.asarray(found) if isinstance(found, np.generic) else found
        if _form(found) != self.shape:
            return False
        near = _NEAR.get(self.data_type, 0.0)
        return bool(np.allclose(_in_f64(found), self.values, rtol=near, atol=near * self.size, equal_nan=True))


def _form(tensor):
    return [length for length in tensor.shape if length != 1]


def _in_f64(tensor):
    values = tensor.detach().double().cpu().numpy() if tensors.is_torch(tensor) else np.asarray(tensor, np.float64)
    return values.reshape(-1)
