"""PyTorch's operators."""

import functools

import torch
from shapes import is_causal, mixture, product
from stacks import bf16, stack
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention, silu


def grouped(tokens, weights, offs):
    return torch._grouped_mm(tokens, weights.transpose(-2, -1), offs=offs)


def loop(tokens, offs):
    """bf16 weights, by a product a group into one result; the host knows the sizes."""
    case = product(len(offs), *tokens.shape)
    weights = bf16(len(offs), case["n"], case["k"])
    result = torch.empty(len(tokens), case["n"], device=tokens.device, dtype=tokens.dtype)
    parts = zip(tokens.split(case["lengths"]), result.split(case["lengths"]), strict=True)
    for group, (rows, out) in enumerate(parts):
        torch.mm(rows, weights[group].t(), out=out)
    return result


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
    """fp8 weights, by scaled_grouped_mm."""
    case = product(len(offs), *tokens8.shape)
    weights, scales = fp8_weights(len(offs), case["n"], case["k"])
    rows = torch.ones(len(tokens8), device=tokens8.device)
    return torch._scaled_grouped_mm(
        tokens8, weights.transpose(-2, -1), rows, scales, offs=offs, out_dtype=torch.bfloat16, use_fast_accum=True
    )


@functools.cache
def mask(queries, keys, device):
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def by_backend(backend, query, key, value, bias):
    """`is_causal` begins where queries and keys begin, which is another mask unless they are equally many."""
    masked = is_causal(query, key)
    options = {"is_causal": masked} if not masked or query.shape[2] == key.shape[2] else {"attn_mask": bias(query.shape[2], key.shape[2])}
    with sdpa_kernel(backend):
        return scaled_dot_product_attention(query, key, value, **options, enable_gqa=query.shape[1] != key.shape[1])


def cudnn(query, key, value):
    """cuDNN on a GPU, which is given other masks as tensors."""
    backend = SDPBackend.CUDNN_ATTENTION if query.is_cuda else SDPBackend.MATH
    return by_backend(backend, query, key, value, lambda *shape: mask(*shape, query.device))


def flash(query, key, value):
    """FlashAttention-2."""
    return by_backend(SDPBackend.FLASH_ATTENTION, query, key, value, causal_lower_right)


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
