"""Attention on sequences of several lengths, and on keys and values in pages."""

import math

import pytest

torch = pytest.importorskip("torch")

from tensors import DEVICES  # noqa: E402

from gauntlet.nvfp4 import torch_ops  # noqa: E402

# More queries than keys, one key, none of either, and a length that fills whole pages.
QUERIES = [1, 9, 0, 20, 3]
KEYS = [33, 5, 7, 64, 0]
PAGE = 16


def begins(lengths, device):
    return torch.tensor([sum(lengths[:index]) for index in range(len(lengths) + 1)], dtype=torch.int32, device=device)


def drawn(dtype, *shape, device):
    values = torch.randn(*shape, device=device)
    return (values * 32).clamp(-127, 127).round().to(dtype) if dtype is torch.int8 else values.to(dtype)


def case(dtype, device, paged, heads=4, kv_heads=2, size=80):
    """Operands and arguments; keys and values by sequence."""
    torch.manual_seed(7)
    # As an engine's: queries, keys and values of a position side by side, of which these are views.
    rows = drawn(dtype, sum(QUERIES) + 2, heads + kv_heads, size, device=device)
    query = rows[:, :heads]
    named = {"cu_seqlens_q": begins(QUERIES, device), "max_seqlen_q": max(QUERIES), "max_seqlen_k": 100, "is_causal": True}
    if dtype is torch.int8:
        named |= {name: 1 / 32 for name in ("query_scale", "key_scale", "value_scale")}
    if not paged:
        key, value = (drawn(dtype, sum(KEYS), kv_heads, size, device=device) for _ in range(2))
        named["cu_seqlens_k"] = begins(KEYS, device)
        ends = named["cu_seqlens_k"].tolist()
        return (query, key, value), named, [[one[begin:end] for one in (key, value)] for begin, end in zip(ends, ends[1:])]
    pages = [math.ceil(length / PAGE) for length in KEYS]
    cache = drawn(dtype, sum(pages) + 1, 2, PAGE, kv_heads, size, device=device)
    key, value = cache[:, 0], cache[:, 1]
    table = torch.full((len(KEYS), max(pages) + 1), -1, dtype=torch.int32, device=device)
    free, by_sequence = sum(pages), []
    for index, (count, length) in enumerate(zip(pages, KEYS)):
        own = list(range(free, free - count, -1))
        free -= count
        table[index, :count] = torch.tensor(own, dtype=torch.int32)
        by_sequence.append([one[own].flatten(0, 1)[:length] for one in (key, value)])
    counts = torch.tensor(KEYS, dtype=torch.int32, device=device)
    return (query, key, value), named | {"seqused_k": counts, "block_table": table}, by_sequence


def exact(query, key, value, dtype):
    """One sequence in float64, with a mask aligned at the end; rows that see no key are 0."""
    scale = 1 / 32 if dtype is torch.int8 else 1
    query, key, value = (one.double().transpose(0, 1) * scale for one in (query, key, value))
    shared = query.shape[0] // key.shape[0]
    scores = query @ key.repeat_interleave(shared, 0).transpose(1, 2) / math.sqrt(query.shape[2])
    queries, keys = scores.shape[1:]
    place = torch.arange(queries, device=query.device)[:, None] + keys - queries
    scores = scores.masked_fill(torch.arange(keys, device=query.device)[None] > place, -math.inf)
    return (scores.softmax(-1).nan_to_num(0) @ value.repeat_interleave(shared, 0)).transpose(0, 1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int8])
def test_each_sequence_has_the_attention_of_its_own(dtype, paged, device):
    operands, named, keys = case(dtype, device, paged)
    found = torch_ops.varlen_attention(*operands, **named, out_dtype=torch.float32)
    first = 0
    for count, own in zip(QUERIES, keys):
        of = slice(first, first + count)
        first += count
        expected = exact(operands[0][of], *own, dtype)
        assert torch.allclose(found[of].double(), expected, atol=2e-2, rtol=2e-2)
        assert (found[of].double() - expected).norm() <= 5e-3 * expected.norm()


@pytest.mark.parametrize("device", DEVICES)
def test_positions_that_do_not_count_are_not_read(device):
    (query, key, value), named, _ = case(torch.float16, device, False)
    expected = torch_ops.varlen_attention(query, key, value, **named)
    apart = [length + 3 for length in KEYS]
    wide = []
    for one in (key, value):
        rows = torch.full((sum(apart), *one.shape[1:]), math.nan, dtype=one.dtype, device=device)
        for index, length in enumerate(KEYS):
            begin, own = sum(apart[:index]), sum(KEYS[:index])
            rows[begin : begin + length] = one[own : own + length]
        wide.append(rows)
    named["cu_seqlens_k"] = begins(apart, device)
    counts = torch.tensor(KEYS, dtype=torch.int32, device=device)
    found = torch_ops.varlen_attention(query, *wide, **named, seqused_k=counts)
    assert torch.equal(found[: sum(QUERIES)], expected[: sum(QUERIES)])


def test_the_operator_passes_pytorchs_own_checks():
    (query, key, value), named, _ = case(torch.int8, "cpu", True)
    lengths = (named["cu_seqlens_q"], None, named["seqused_k"], named["block_table"], 20, 100)
    # Only positions of sequences are written.
    query = query[: sum(QUERIES)].contiguous()
    arguments = (query, key.contiguous(), value.contiguous(), *lengths, None, None, None, [0.5] * 3, True, torch.float32)
    torch.library.opcheck(torch.ops.gauntlet.varlen_attention.default, arguments)


def test_wrong_arguments_are_named():
    (query, key, value), named, _ = case(torch.float16, "cpu", False)
    (_, pages, _), paged, _ = case(torch.float16, "cpu", True)

    def message(error, *operands, **changed):
        with pytest.raises(error) as refused:
            torch_ops.varlen_attention(*operands, **changed)
        return str(refused.value)

    assert message(ValueError, query, key, value, **(named | {"cu_seqlens_k": None})).startswith("cu_seqlens_k: it is left out")
    assert message(ValueError, query, pages, pages, **(paged | {"seqused_k": None})).startswith("block_table: with pages, give seqused_k")
    assert message(TypeError, query, key.bfloat16(), value, **named).startswith("key: its dtype is torch.bfloat16")
    assert message(ValueError, query, key, value[1:], **named).startswith("value: its shape is")
    assert message(ValueError, query, key[..., :64], value, **named).startswith("key: its shape is")
    assert message(TypeError, query, key, value, **(named | {"cu_seqlens_q": named["cu_seqlens_q"].long()})).startswith("cu_seqlens_q: its dtype")
    assert message(ValueError, query, key, value, **(named | {"cu_seqlens_k": named["cu_seqlens_k"][1:]})).startswith("cu_seqlens_k: its shape")
    assert message(ValueError, query, key, value, **named, key_scale=1.0, query_scale=1.0, value_scale=1.0).startswith("query_scale: torch.float16 has no scales")
    odd = [one[:, :12] for one in (pages, pages)]
    assert "power of two" in message(ValueError, query, *odd, **paged)
    assert message(TypeError, query, key, value, **named, key_scale=1.0).startswith("query_scale, key_scale, value_scale: only some")
