"""Attention on PyTorch tensors: the operator on the CPU, what a GPU is asked for, and, on a Hopper GPU, its results."""

import math
import re
import types

import pytest

torch = pytest.importorskip("torch")

from messages import error  # noqa: E402
from recorder import recorder  # noqa: E402, F401
from tensors import DEVICES, needs_hopper  # noqa: E402

from gauntlet import _native, nvfp4  # noqa: E402
from gauntlet.nvfp4 import _attention, _cuda_attention, torch_ops  # noqa: E402

FORMATS = [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.int8]
SCALED = [torch.float8_e4m3fn, torch.int8]
SCALINGS = ["number", "tensor", "head", "block"]


def drawn(dtype, *shape, seed=1):
    values = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return (values * 30).round().clamp(-127, 127).to(dtype) if dtype is torch.int8 else values.to(dtype)


def operands(dtype, batch, heads, kv_heads, queries, keys, head_size, device="cpu"):
    query = drawn(dtype, batch, heads, queries, head_size)
    key, value = (drawn(dtype, batch, kv_heads, keys, head_size, seed=seed) for seed in (2, 3))
    return query.to(device), key.to(device), value.to(device)


def scales(kind, tensors, device="cpu"):
    """Scales of query, key and value by name, for `nvfp4.attention`; none of a type without them."""
    if kind is None:
        return {}
    unit = 1 / 30 if tensors[0].dtype is torch.int8 else 1.0
    found = {}
    for index, (name, tensor) in enumerate(zip(("query_scale", "key_scale", "value_scale"), tensors)):
        batch, heads, positions, _ = tensor.shape
        shape = {"number": (), "tensor": (1,), "head": (batch, heads), "block": (batch, heads, math.ceil(positions / 64))}[kind]
        scale = unit * (0.5 + torch.rand(shape, generator=torch.Generator().manual_seed(10 + index)))
        found[name] = float(scale) if kind == "number" else scale.to(device)
    return found


def dequantised(tensor, scale):
    values = tensor.double()
    if isinstance(scale, float) or scale.numel() == 1:
        return values * float(scale)
    if scale.ndim == 3:
        return values * scale.double().repeat_interleave(64, -1)[..., : tensor.shape[2], None]
    return values * scale.double()[..., None, None]


def exact(tensors, named, is_causal):
    """Attention in float64, by its definition."""
    query, key, value = tensors if not named else map(dequantised, tensors, named.values())
    query, key, value = (tensor.double() for tensor in (query, key, value))
    shared = query.shape[1] // key.shape[1]
    key, value = (tensor.repeat_interleave(shared, 1) for tensor in (key, value))
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if is_causal:
        queries, keys = scores.shape[-2:]
        seen = torch.ones(queries, keys, dtype=torch.bool, device=scores.device).tril(keys - queries)
        scores = scores.masked_fill(~seen, -math.inf)
    return scores.softmax(-1).nan_to_num(0.0) @ value


def relative_rms(found, expected):
    return ((found.double() - expected).pow(2).mean().sqrt() / expected.pow(2).mean().sqrt()).item()


def arguments(kind, dtype=torch.int8):
    """Of the operator: with numbers, tensors, or without scales."""
    tensors = operands(dtype, 2, 4, 2, 5, 9, 64)
    named = list(scales(kind, tensors).values())
    numbers, given = ([], named or [None] * 3) if kind != "number" else (named, [None] * 3)
    return (*tensors, *given, numbers, True, torch.float32)


@pytest.mark.parametrize(("kind", "dtype"), [(None, torch.float16), (None, torch.bfloat16), *((kind, torch.int8) for kind in SCALINGS)])
def test_the_operator_passes_pytorchs_own_checks(kind, dtype):
    torch.library.opcheck(torch.ops.gauntlet.attention.default, arguments(kind, dtype))


@pytest.mark.parametrize("dtype", FORMATS)
def test_the_operator_is_the_function(dtype):
    tensors = operands(dtype, 2, 4, 2, 5, 70, 64)
    for kind in SCALINGS if dtype in SCALED else [None]:
        named = scales(kind, tensors)
        expected = nvfp4.attention(*tensors, **named, is_causal=True)
        found = torch_ops.attention(*tensors, **named, is_causal=True)
        assert found.dtype == expected.dtype == (torch.float16 if dtype in SCALED else dtype)
        assert torch.equal(found, expected)
        assert relative_rms(expected, exact(tensors, named, True)) < 0.01


def test_tensors_without_memory_have_results_of_their_shape():
    query = torch.empty(2, 8, 5, 64, device="meta", dtype=torch.float8_e4m3fn)
    key = torch.empty(2, 2, 100, 64, device="meta", dtype=torch.float8_e4m3fn)
    scale = torch.empty(1, device="meta")
    result = torch_ops.attention(query, key, key, query_scale=scale, key_scale=scale, value_scale=scale)
    assert (result.device.type, result.dtype, result.shape) == ("meta", torch.float16, query.shape)


@pytest.mark.parametrize("device", DEVICES)
def test_a_compiled_function_has_the_operator_in_one_graph(device):
    tensors = operands(torch.float16, 2, 4, 2, 5, 70, 64, device)

    def layer(query, key, value):
        return torch_ops.attention(query * 2, key, value, is_causal=True) + 1

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(*tensors), layer(*tensors))


def test_wrong_arguments_are_named():
    tensors = operands(torch.int8, 2, 4, 2, 5, 70, 64)
    by_head = scales("head", tensors)
    for change, kind, words in (
        ({"query_scale": 1.0}, TypeError, "only some are numbers"),
        ({"key_scale": None}, ValueError, "key_scale: it is left out"),
        ({"key_scale": torch.ones(2, 4)}, ValueError, "key_scale: its shape is (2, 4); it must be (2, 2), or one number"),
        ({"value_scale": torch.ones(2, 2, 2)}, ValueError, "value_scale: it has 3 dimensions, and query_scale 2"),
    ):
        assert words in error(lambda named={**by_head, **change}: torch_ops.attention(*tensors, **named), kind)
    halves = operands(torch.float16, 1, 2, 2, 5, 70, 64)
    assert "query_scale: float16 has no scales" in error(lambda: nvfp4.attention(*halves, query_scale=1.0), ValueError)


class Foreign:
    """An array of another library, which PyTorch sees through DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __array_namespace__(self):
        return types.SimpleNamespace(from_dlpack=lambda array: Foreign(torch.from_dlpack(array)))


class Plain(Foreign):
    """One of a library that imports nothing."""

    __array_namespace__ = None


@pytest.mark.parametrize("device", DEVICES)
def test_arrays_of_other_libraries_are_seen_through_dlpack(device):
    tensors = operands(torch.int8, 2, 4, 2, 5, 70, 64, device)
    named = scales("head", tensors, device)
    expected = nvfp4.attention(*tensors, **named)
    foreign = [Foreign(tensor) for tensor in tensors]
    result = nvfp4.attention(*foreign, **{name: Foreign(scale) for name, scale in named.items()})
    assert type(result) is Foreign and torch.equal(result.tensor, expected)
    plain = nvfp4.attention(*[Plain(tensor) for tensor in tensors], **named)
    assert torch.equal(plain, expected)

    weights = nvfp4.stack([nvfp4.quantize(drawn(torch.float32, 64, 256, seed=seed)) for seed in range(2)]).to(device)
    tokens = drawn(torch.bfloat16, 7, 256).to(device)
    offs = torch.tensor([3, 7], dtype=torch.int32, device=device)
    for routing in ({"sizes": [3, 4]}, {"offs": offs}):
        expected = nvfp4.grouped_mm(tokens, weights, **routing)
        if "offs" in routing:
            routing = {"offs": Foreign(offs)}
        result = nvfp4.grouped_mm(Foreign(tokens), weights, **routing)
        assert type(result) is Foreign and torch.equal(result.tensor, expected)


WORDS = {"number": "per-tensor", "tensor": "per-tensor", "head": "per-head", "block": "per-block"}


@pytest.mark.parametrize("kind", [None, *SCALINGS])
def test_a_gpu_is_asked_for_the_same_by_few_comparisons_and_by_many(recorder, kind):
    tensors = operands(torch.bfloat16 if kind is None else torch.float8_e4m3fn, 2, 4, 2, 5, 130, 64)
    named = scales(kind, tensors)
    given = tuple(named.values()) or (None, None, None)
    quick = _cuda_attention.quick(*tensors, given, True, None)
    dtype = torch.bfloat16 if kind is None else torch.float16
    assert (quick.shape, quick.dtype) == (tensors[0].shape, dtype)
    [(name, stream, is_capturing, shape, buffers, addresses, numbers)] = recorder.calls
    assert (name, stream, is_capturing) == ("enqueue_attention", 7, False)
    operand = "bfloat16" if kind is None else "float8_e4m3fn"
    words = (operand, WORDS.get(kind, "per-head"), str(dtype).removeprefix("torch."))
    assert shape == _native.AttentionShape((2, 4, 2, 5, 130, 64), words, True)
    assert shape != _native.AttentionShape((2, 4, 2, 5, 130, 64), words, False)
    assert buffers == (*(tensor.data_ptr() for tensor in tensors), quick.data_ptr())
    is_number = kind == "number"
    assert numbers == (tuple(named.values()) if is_number else None)
    assert addresses == (None if is_number or kind is None else [scale.data_ptr() for scale in named.values()])


def test_few_comparisons_leave_what_does_not_fit_to_the_words(recorder):
    query, key, value = operands(torch.float16, 2, 4, 2, 5, 70, 64)
    none = (None, None, None)
    bytes_of_8 = operands(torch.int8, 2, 4, 2, 5, 70, 64)
    by_head = tuple(scales("head", bytes_of_8).values())
    for refused in (
        (query, key, value.float(), none, False, None),
        (query, key, value[:, :, :69], none, False, None),
        (query, key[:, :1], value, none, False, None),
        (query[:1], key, value, none, False, None),
        (query.transpose(1, 2), key, value, none, False, None),
        (query, key.numpy(), value, none, False, None),
        (query, key, value, (1.0, None, None), False, None),
        (query, key, value, none, False, "float16"),
        (query, key, value, none, False, torch.float64),
        (*operands(torch.float16, 2, 4, 2, 5, 70, 72), none, False, None),
        (*operands(torch.float16, 2, 4, 2, 5, 70, 272), none, False, None),
        (*bytes_of_8, none, False, None),
        (*bytes_of_8, (1.0, math.nan, 1.0), False, None),
        (*bytes_of_8, (1.0, *by_head[1:]), False, None),
        (*bytes_of_8, (by_head[1], *by_head[1:]), False, None),
        (*bytes_of_8, tuple(scale.double() for scale in by_head), False, None),
    ):
        assert _cuda_attention.quick(*refused) is None
    assert recorder.calls == []


def test_the_remedy_for_other_head_sizes_is_one():
    with pytest.raises(ValueError, match="272 values, and at most 256"):
        _attention.check_head_size(272)
    with pytest.raises(ValueError, match="72 values, and a GPU computes multiples of 16; .* zeros to 80, multiply query by") as raised:
        _attention.check_head_size(72)
    factor = float(re.search(r"query by ([0-9.]+),", str(raised.value))[1])
    tensors = operands(torch.float32, 2, 4, 2, 5, 70, 72)
    query, key, value = (torch.nn.functional.pad(tensor, (0, 8)) for tensor in tensors)
    found = exact((query * factor, key, value), {}, False)[..., :72]
    assert torch.allclose(found, exact(tensors, {}, False), rtol=1e-6, atol=1e-7)


def test_scales_on_the_cpu_become_numbers(recorder):
    tensors = operands(torch.int8, 2, 4, 2, 5, 70, 64)
    named = {"query_scale": torch.tensor(0.5), "key_scale": torch.tensor([0.25]), "value_scale": torch.tensor(2.0)}
    _cuda_attention.attention(*tensors, named, "per-tensor", False, "float32")
    assert recorder.calls[0][-2:] == (None, [0.5, 0.25, 2.0])
    named["key_scale"] = torch.tensor(math.inf)
    message = error(lambda: _cuda_attention.attention(*tensors, named, "per-tensor", False, "float32"), ValueError)
    assert message.startswith("key_scale: inf is not finite")


@needs_hopper
class TestOnHopper:
    """Results of a GPU against float64."""

    # Shares of the results' root mean square: half a step of the format of weights and results. Kernels that multiply e4m3
    # queries by keys have sums of 14 bits, and the one for short sequences rounds weights to e4m3.
    LIMITS = {torch.float16: 1e-3, torch.bfloat16: 6e-3, torch.float8_e4m3fn: 6.4e-2, torch.int8: 1e-3}

    # Batch, heads, key heads, queries, keys, head size, mask: for each kernel, with parts of keys and without.
    CASES = [
        (2, 8, 2, 333, 333, 128, True),
        (4, 8, 8, 300, 70, 64, True),
        (1, 8, 4, 500, 512, 64, False),
        (1, 4, 2, 200, 70, 128, True),
        (1, 32, 8, 1, 8192, 128, True),
        (3, 16, 4, 5, 1000, 64, False),
    ]

    def check(self, tensors, named, is_causal, **options):
        found = nvfp4.attention(*tensors, **named, is_causal=is_causal, **options)
        expected = exact(tensors, named, is_causal)
        assert found.shape == expected.shape
        assert relative_rms(found, expected) < self.LIMITS[tensors[0].dtype]

    @pytest.mark.parametrize("case", CASES)
    @pytest.mark.parametrize("dtype", FORMATS)
    def test_results_are_right(self, dtype, case):
        *sizes, is_causal = case
        tensors = operands(dtype, *sizes, "cuda")
        for kind in SCALINGS if dtype in SCALED else [None]:
            self.check(tensors, scales(kind, tensors, "cuda"), is_causal)

    @pytest.mark.parametrize("keys", [1, 63, 64, 65, 8192])
    @pytest.mark.parametrize("batch", [1, 8])
    def test_one_query_sees_all_keys(self, batch, keys):
        self.check(operands(torch.bfloat16, batch, 32, 8, 1, keys, 128, "cuda"), {}, True)

    def test_results_have_the_type_that_is_asked_for(self):
        tensors = operands(torch.float16, 1, 4, 2, 33, 300, 64, "cuda")
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            found = nvfp4.attention(*tensors, out_dtype=dtype)
            assert found.dtype == dtype
            assert relative_rms(found, exact(tensors, {}, False)) < 6e-3

    def test_scales_on_the_cpu_count_as_those_on_the_gpu(self):
        tensors = operands(torch.int8, 2, 8, 2, 40, 200, 64, "cuda")
        for kind in ("tensor", "head", "block"):
            expected = nvfp4.attention(*tensors, **scales(kind, tensors, "cuda"))
            assert torch.equal(nvfp4.attention(*tensors, **scales(kind, tensors)), expected)
        on_gpu, on_cpu = scales("tensor", tensors, "cuda"), scales("tensor", tensors)
        mixed = {**on_gpu, "key_scale": float(on_cpu["key_scale"])}
        assert torch.equal(nvfp4.attention(*tensors, **mixed), nvfp4.attention(*tensors, **on_gpu))

    def test_calls_wait_neither_for_scales_nor_for_results(self):
        tensors = operands(torch.float8_e4m3fn, 2, 8, 2, 40, 200, 64, "cuda")
        for kind in SCALINGS:
            named = scales(kind, tensors, "cuda")
            nvfp4.attention(*tensors, **named)
            torch.cuda.set_sync_debug_mode("error")
            try:
                nvfp4.attention(*tensors, **named)
            finally:
                torch.cuda.set_sync_debug_mode("default")

    def test_calls_follow_the_current_stream(self):
        tensors = operands(torch.float16, 1, 32, 8, 1, 4000, 128, "cuda")
        expected = nvfp4.attention(*tensors)
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(200_000_000)
            copies = [tensor * 1 for tensor in tensors]
            found = nvfp4.attention(*copies)
            assert not stream.query()
            found = found * 1
        stream.synchronize()
        assert torch.equal(found, expected)

    @pytest.mark.parametrize(
        "sizes", [(1, 32, 8, 1, 3000, 128), (2, 8, 2, 260, 260, 128), (1, 8, 8, 100, 400, 64)], ids=["unified", "specialised", "resident"]
    )
    def test_a_call_is_captured_that_was_never_made_before(self, sizes):
        tensors = operands(torch.float8_e4m3fn, *sizes, "cuda")
        named = scales("head", tensors, "cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = nvfp4.attention(*tensors, **named, is_causal=True)
            # Again at another address, with numbers.
            again = nvfp4.attention(*tensors, query_scale=0.5, key_scale=1.0, value_scale=2.0, is_causal=True)
        numbers = {"query_scale": 0.5, "key_scale": 1.0, "value_scale": 2.0}
        for turn in range(3):
            graph.replay()
            assert torch.equal(captured, nvfp4.attention(*tensors, **named, is_causal=True))
            assert torch.equal(again, nvfp4.attention(*tensors, **numbers, is_causal=True))
            # The graph reads operands and scales at each replay, so changed values must change its result.
            for tensor in (*tensors, *named.values()):
                changed = tensor.float().flip(-1) * (1.25 if turn else 0.5)
                tensor.copy_(changed.to(tensor.dtype))

    def test_many_addresses_and_sizes_have_results_of_their_own(self):
        """More than the encoded maps that a kernel keeps, and than the plans that a library keeps."""
        keys = operands(torch.float16, 300, 1, 1, 128, 512, 64, "cuda")
        for turn in range(2):
            for index in range(300):
                own = [tensor[index : index + 1] for tensor in keys]
                length = 200 + index
                own[1:] = [tensor[:, :, :length].contiguous() for tensor in own[1:]]
                assert relative_rms(nvfp4.attention(*own), exact(own, {}, False)) < 1e-3, (turn, index)
        rows = [nvfp4.attention(*[tensor[index : index + 1] for tensor in keys]) for index in range(300)]
        assert relative_rms(torch.cat(rows), exact(keys, {}, False)) < 1e-3

    def test_no_queries_give_no_results(self):
        assert nvfp4.attention(*operands(torch.float16, 2, 4, 2, 0, 9, 64, "cuda")).shape == (2, 4, 0, 64)

    def test_what_a_gpu_does_not_compute_is_refused_by_name(self):
        def refused(tensors, **named):
            return error(lambda: nvfp4.attention(*tensors, **named), ValueError)

        assert "head sizes 64 and 128, not 96" in refused(operands(torch.float16, 1, 2, 2, 5, 9, 96, "cuda"))
        assert "4 query heads over 3 key heads" in refused(operands(torch.float16, 1, 4, 3, 5, 9, 64, "cuda"))
        tensors = operands(torch.float16, 1, 2, 2, 5, 9, 64, "cuda")
        shifted = torch.empty(tensors[0].numel() + 1, dtype=torch.float16, device="cuda")[1:].view(tensors[0].shape)
        assert refused((shifted, *tensors[1:])).startswith("query: the address")
        strided = tensors[0].transpose(1, 2)
        assert "make it contiguous with .contiguous()" in refused((strided, *tensors[1:]))
        assert "key: it is on cpu" in refused((tensors[0], tensors[1].cpu(), tensors[2]))
