"""PyTorch's operators. Where there are several, the first call times them, and the quickest is kept."""

import functools
import math
import statistics
import time

import torch
from shapes import is_causal, mixture, product
from stacks import bf16, stack
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention, silu

TRIALS = 9
SPIN_CYCLES = 2_000_000
quickest = {}


def best(key, calls):
    """The result of the quickest of these calls."""
    if key not in quickest:
        quickest[key] = min(calls, key=lambda name: seconds(calls[name]))
    return calls[quickest[key]]()


def seconds(call):
    """The median of a few calls; infinite if it refuses."""
    clock = on_device if torch.cuda.is_available() else on_host
    try:
        call()
        return statistics.median(clock(call) for _ in range(TRIALS))
    except RuntimeError:
        return math.inf


def on_device(call):
    """Behind a kernel that spins, so that launches do not wait for the host, as in `gauntlet`."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(SPIN_CYCLES)
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def on_host(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def grouped(tokens, weights, offs):
    return torch._grouped_mm(tokens, weights.transpose(-2, -1), offs=offs)


def loop(tokens, weights, lengths):
    """A product a group, into one result."""
    result = torch.empty(len(tokens), weights.shape[1], device=tokens.device, dtype=tokens.dtype)
    for group, (rows, out) in enumerate(zip(tokens.split(lengths), result.split(lengths), strict=True)):
        torch.mm(rows, weights[group].t(), out=out)
    return result


def sizes(tokens, offs):
    """bf16 weights: grouped_mm, or a product a group."""
    case = product(len(offs), *tokens.shape)
    weights = bf16(len(offs), case["n"], case["k"])
    calls = {"grouped_mm": lambda: grouped(tokens, weights, offs), "mm": lambda: loop(tokens, weights, case["lengths"])}
    return best((len(offs), *tokens.shape), calls)


def routed(tokens, offs):
    """bf16 weights, by grouped_mm: a loop would have to wait for the sizes."""
    case = product(len(offs), *tokens.shape)
    return grouped(tokens, bf16(len(offs), case["n"], case["k"]), offs)


@functools.cache
def fp8_weights(groups, n, k):
    """Weights in e4m3 with a scale a row, as scaled_grouped_mm takes them."""
    own = stack(groups, n, k)
    values = torch.stack([(own.exact(group, torch.float32) / own.unit).to(torch.float8_e4m3fn) for group in range(groups)])
    return values, torch.full((groups, n), own.unit, device=values.device)


def fp8(tokens8, offs):
    """fp8 weights: scaled_grouped_mm, or a scaled_mm a group."""
    case = product(len(offs), *tokens8.shape)
    weights, scales = fp8_weights(len(offs), case["n"], case["k"])
    rows = torch.ones(len(tokens8), device=tokens8.device)

    def at_once():
        return torch._scaled_grouped_mm(
            tokens8, weights.transpose(-2, -1), rows, scales, offs=offs, out_dtype=torch.bfloat16, use_fast_accum=True
        )

    def one_by_one():
        result = torch.empty(len(tokens8), case["n"], device=tokens8.device, dtype=torch.bfloat16)
        parts = zip(tokens8.split(case["lengths"]), result.split(case["lengths"]), strict=True)
        for group, (part, out) in enumerate(parts):
            one = rows[:1, None].expand(len(part), 1).contiguous(), scales[group][None]
            torch._scaled_mm(part, weights[group].t(), *one, out_dtype=torch.bfloat16, use_fast_accum=True, out=out)
        return result

    return best(("fp8", len(offs), *tokens8.shape), {"scaled_grouped_mm": at_once, "loop": one_by_one})


@functools.cache
def mask(queries, keys, device):
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def attention(query, key, value):
    """scaled_dot_product_attention: cuDNN or FlashAttention-2; on the CPU whatever it takes."""
    queries, keys, masked = query.shape[2], key.shape[2], is_causal(query, key)
    named = {"enable_gqa": query.shape[1] != key.shape[1]}
    # `is_causal` begins where queries and keys begin, which is another mask unless they are equally many.
    of_cudnn = of_flash = {"is_causal": masked}
    if masked and queries != keys:
        of_cudnn, of_flash = {"attn_mask": mask(queries, keys, query.device)}, {"attn_mask": causal_lower_right(queries, keys)}

    def by(backend, options):
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(query, key, value, **options, **named)

    if not query.is_cuda:
        return scaled_dot_product_attention(query, key, value, **of_cudnn, **named)
    calls = {"cudnn": lambda: by(SDPBackend.CUDNN_ATTENTION, of_cudnn), "flash": lambda: by(SDPBackend.FLASH_ATTENTION, of_flash)}
    return best((*query.shape, *key.shape), calls)


@functools.cache
def experts_bf16(experts, width, between):
    """Both weights of the first product as one, and those of the second."""
    first = torch.cat((bf16(experts, between, width, 0), bf16(experts, between, width, 1)), 1)
    return first, bf16(experts, width, between, 2)


def moe(hidden, ids, weights):
    """grouped_mm in bf16, with PyTorch's operators around it."""
    both = experts_bf16(*mixture(hidden, ids))
    return by_products(hidden, ids, weights, *(lambda x, offs, own=own: grouped(x, own, offs) for own in both))


def by_products(hidden, ids, weights, first, second):
    """Sorts tokens by experts, multiplies, and sums what each token's experts give."""
    experts = mixture(hidden, ids)[0]
    sorted_ids, order = ids.flatten().sort(stable=True)
    offs = torch.searchsorted(sorted_ids, torch.arange(experts, device=ids.device, dtype=ids.dtype), right=True, out_int32=True)
    gate, up = first(hidden[order // ids.shape[1]], offs).chunk(2, -1)
    results = second(silu(gate) * up, offs)
    places = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
    return (results[places].view(*ids.shape, -1).float() * weights.unsqueeze(-1)).sum(1).to(hidden.dtype)
