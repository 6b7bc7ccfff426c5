"""NVFP4 tensors and products on numpy arrays, held against definitions written here."""

import os
import signal
import threading

import numpy as np
import pytest
from messages import error

from gauntlet import nvfp4

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def e4m3(codes):
    """The values of e4m3 codes by definition."""
    codes = codes.astype(np.int64)
    sign = np.where(codes & 0x80, -1.0, 1.0)
    exponent, mantissa = (codes >> 3) & 0xF, codes & 7
    normal = (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return sign * np.where(exponent == 0, mantissa / 8 * 2.0**-6, normal)


def by_definition(tensor):
    """The elements of a matrix in float64."""
    values = np.asarray(tensor.values)
    codes = np.stack([values & 0xF, values >> 4], axis=-1).reshape(values.shape[0], -1)
    scales = np.repeat(e4m3(np.asarray(tensor.scales)), nvfp4.BLOCK, axis=1)
    return E2M1[codes] * scales * np.float64(np.float32(tensor.tensor_scale))


def drawn(rows, columns, seed):
    return np.random.default_rng(seed).standard_normal((rows, columns), np.float32)


def quantized_by_definition(x):
    """The recipe of the documentation, element by element."""
    scale = np.float32(np.abs(x).max() / np.float32(2688))
    blocks = x.reshape(-1, nvfp4.BLOCK).astype(np.float64)
    numbers = e4m3(np.arange(0x7F))
    wanted = np.abs(blocks).max(axis=1) / 6 / np.float64(scale)
    block_scales = nearest(np.minimum(wanted, 448), numbers)
    quotients = blocks / (numbers[block_scales] * np.float64(scale))[:, None]
    codes = nearest(np.minimum(np.abs(quotients), 6), E2M1[:8]) | np.where(np.signbit(quotients), 8, 0)
    packed = (codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8)
    return packed.reshape(x.shape[0], -1), block_scales.astype(np.uint8).reshape(x.shape[0], -1), scale


def nearest(wanted, numbers):
    """The place of the nearest of ascending numbers, ties to the even place."""
    above = np.clip(np.searchsorted(numbers, wanted), 1, len(numbers) - 1)
    below = above - 1
    up, down = numbers[above] - wanted, wanted - numbers[below]
    return np.where((up < down) | ((up == down) & (above % 2 == 0)), above, below)


def test_quantizing_follows_the_recipe_to_the_bit():
    x = drawn(32, 256, 1)
    tensor = nvfp4.quantize(x)
    values, scales, scale = quantized_by_definition(x)
    np.testing.assert_array_equal(tensor.values, values)
    np.testing.assert_array_equal(tensor.scales, scales)
    assert np.float32(tensor.tensor_scale) == scale


def test_dequantizing_is_exact():
    tensor = nvfp4.quantize(drawn(8, 64, 2))
    exact = by_definition(tensor)
    np.testing.assert_array_equal(nvfp4.dequantize(tensor, "float64"), exact)
    np.testing.assert_array_equal(nvfp4.dequantize(tensor), exact.astype(np.float32))
    np.testing.assert_array_equal(nvfp4.dequantize(tensor, np.float16), exact.astype(np.float16))


def test_ml_dtypes_reads_the_same_codes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    tensor = nvfp4.quantize(drawn(8, 64, 3))
    codes = np.stack([tensor.values & 0xF, tensor.values >> 4], axis=-1).reshape(8, 64)
    values = codes.astype(np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    scales = np.repeat(tensor.scales.view(ml_dtypes.float8_e4m3fn).astype(np.float64), 16, axis=1)
    np.testing.assert_array_equal(nvfp4.dequantize(tensor, "float64"), values * scales * np.float64(np.float32(tensor.tensor_scale)))
    rounded = nvfp4.dequantize(tensor, "bfloat16")
    np.testing.assert_array_equal(rounded, nvfp4.dequantize(tensor, "float64").astype(ml_dtypes.bfloat16))


def test_a_stack_has_a_scale_for_each_matrix():
    matrices = [nvfp4.quantize(drawn(4, 32, seed) * 10**seed) for seed in range(3)]
    stack = nvfp4.stack(matrices)
    assert stack.shape == (3, 4, 32)
    expected = np.stack([nvfp4.dequantize(matrix, "float64") for matrix in matrices])
    np.testing.assert_array_equal(nvfp4.dequantize(stack, "float64"), expected)


def test_grouped_products_are_right():
    sizes, n, k = [5, 0, 12], 40, 128
    weights = nvfp4.stack([nvfp4.quantize(drawn(n, k, seed)) for seed in range(3)])
    tokens = nvfp4.quantize(drawn(17, k, 9))
    result = nvfp4.grouped_mm(tokens, weights, sizes)
    assert result.shape == (17, n) and result.dtype == np.float32
    a, b = nvfp4.dequantize(tokens, "float64"), nvfp4.dequantize(weights, "float64")
    expected = np.concatenate([a[:5] @ b[0].T, a[5:] @ b[2].T])
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-4)
    registered = nvfp4.grouped_mm(tokens, nvfp4.Weights(weights), np.array(sizes))
    np.testing.assert_array_equal(registered, result)
    halves = nvfp4.grouped_mm(tokens, weights, sizes, out_dtype=np.float16)
    np.testing.assert_allclose(halves, expected, rtol=2e-3, atol=1e-3)


def test_results_do_not_depend_on_the_number_of_threads():
    tokens, weights = nvfp4.quantize(drawn(33, 256, 1)), nvfp4.quantize(drawn(96, 256, 2))
    before = nvfp4.get_num_threads()
    first = nvfp4.grouped_mm(tokens, weights)
    try:
        nvfp4.set_num_threads(1)
        assert nvfp4.get_num_threads() == 1
        np.testing.assert_array_equal(nvfp4.grouped_mm(tokens, weights), first)
    finally:
        nvfp4.set_num_threads(before)


def test_swiglu_is_fused():
    tokens = nvfp4.quantize(drawn(7, 64, 1))
    gate, up = nvfp4.quantize(drawn(24, 64, 2)), nvfp4.quantize(drawn(24, 64, 3))
    a, g, u = (nvfp4.dequantize(tensor, "float64") for tensor in (tokens, gate, up))
    x = a @ g.T
    expected = x / (1 + np.exp(-x)) * (a @ u.T)
    np.testing.assert_allclose(nvfp4.swiglu_grouped_mm(tokens, gate, up), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_tokens_without_scales_are_multiplied_as_they_are(dtype):
    dtype = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype
    sizes, n, k = [5, 0, 12], 40, 144
    weights = nvfp4.stack([nvfp4.quantize(drawn(n, k, seed)) for seed in range(3)])
    tokens = drawn(17, k, 9).astype(dtype)
    a, b = tokens.astype("float64"), nvfp4.dequantize(weights, "float64")
    expected = np.concatenate([a[:5] @ b[0].T, a[5:] @ b[2].T])
    result = nvfp4.grouped_mm(tokens, nvfp4.Weights(weights), sizes)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-4)
    gated = nvfp4.swiglu_grouped_mm(tokens, weights, weights, sizes)
    np.testing.assert_allclose(gated, expected / (1 + np.exp(-expected)) * expected, rtol=1e-4, atol=1e-3)


def test_ends_of_groups_are_sizes():
    sizes, tokens = [5, 0, 12], drawn(17, 48, 9).astype(np.float16)
    weights = nvfp4.stack([nvfp4.quantize(drawn(24, 48, seed)) for seed in range(3)])
    ends = np.cumsum(sizes).astype(np.int32)
    expected = nvfp4.grouped_mm(tokens, weights, sizes)
    np.testing.assert_array_equal(nvfp4.grouped_mm(tokens, weights, offs=ends), expected)
    quantized = nvfp4.quantize(drawn(17, 48, 9))
    fewer = nvfp4.grouped_mm(quantized, weights, offs=np.array([2, 2, 9], np.int32))
    np.testing.assert_array_equal(fewer[:2], nvfp4.grouped_mm(quantized, weights, sizes)[:2])
    assert fewer.shape == (17, 24) and not fewer[9:].any()
    assert [
        error(lambda: nvfp4.grouped_mm(tokens, weights, offs=ends.astype(np.int64)), TypeError),
        error(lambda: nvfp4.grouped_mm(tokens, weights, offs=ends[:2]), ValueError),
        error(lambda: nvfp4.grouped_mm(tokens, weights, offs=ends[::-1].copy()), ValueError),
        error(lambda: nvfp4.grouped_mm(tokens, weights, sizes, offs=ends), ValueError),
    ] == [
        "offs: its dtype is int64; use int32",
        "offs: its shape is (2,); it must be (3)",
        "offs: the tokens of group 1 end at 5; ends rise from 17 to at most 17",
        "offs: given beside sizes; give one of them",
    ]


def mixture(dtype):
    """The arguments of a layer of six experts, two a token."""
    gate, up, down = (
        nvfp4.stack([nvfp4.quantize(drawn(*shape, 10 * at + seed)) for seed in range(6)])
        for at, shape in enumerate([(32, 48), (32, 48), (48, 32)])
    )
    ids = np.random.default_rng(5).integers(0, 6, (11, 2))
    return drawn(11, 48, 90).astype(dtype), ids, drawn(11, 2, 91), gate, up, down


def mixture_by_definition(hidden, ids, weights, *experts):
    gate, up, down = (nvfp4.dequantize(one, "float64") for one in experts)
    result = np.zeros(hidden.shape)
    for (token, place), expert in np.ndenumerate(ids):
        x = hidden[token].astype("float64")
        g = gate[expert] @ x
        between = (g / (1 + np.exp(-g)) * (up[expert] @ x)).astype(hidden.dtype).astype("float64")
        result[token] += float(weights[token, place]) * (down[expert] @ between)
    return result


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float16", 1e-3), ("bfloat16", 8e-3)])
def test_a_mixture_of_experts_follows_the_definition(dtype, tolerance):
    dtype = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype
    layer = mixture(dtype)
    expected = mixture_by_definition(*layer)
    found = nvfp4.moe(*layer, out_dtype="float32")
    assert found.shape == (11, 48) and found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())
    assert nvfp4.moe(*layer).dtype == layer[0].dtype
    prepared = [nvfp4.Weights(one) for one in layer[3:]]
    np.testing.assert_array_equal(nvfp4.moe(*layer[:3], *prepared, out_dtype="float32"), found)


def test_the_experts_of_all_ranks_add_up():
    hidden, ids, weights, *experts = mixture("float32")
    whole, sums = nvfp4.moe(hidden, ids, weights, *experts), np.zeros_like(hidden)
    for rank in range(2):
        places = np.array([at // 2 if at % 2 == rank else -1 for at in range(6)], np.int32)
        own = [
            nvfp4.Tensor(one.values[rank::2].copy(), one.scales[rank::2].copy(), one.tensor_scale[rank::2])
            for one in experts
        ]
        sums += nvfp4.moe(hidden, ids, weights, *own, expert_map=places)
    np.testing.assert_allclose(sums, whole, rtol=1e-4, atol=1e-5 * np.abs(whole).max())


def test_wrong_mixtures_are_named():
    hidden, ids, weights, gate, up, down = mixture("float32")
    assert [
        error(lambda: nvfp4.moe(hidden, ids + 5, weights, gate, up, down), ValueError)[:26],
        error(lambda: nvfp4.moe(hidden, ids[:3], weights, gate, up, down), ValueError),
        error(lambda: nvfp4.moe(hidden, ids, weights, gate, up, gate), ValueError),
        error(lambda: nvfp4.moe(hidden, ids.astype("float32"), weights, gate, up, down), TypeError),
    ] == [
        f"expert {ids[ids > 0][0] + 5} of token {np.argwhere(ids > 0)[0, 0]}: there"[:26],
        "topk_ids: its shape is (3, 2); it must be (11, any)",
        "down: its shape is (6, 32, 48); for these tokens and experts it must be (6, 48, 32)",
        "topk_ids: its dtype is float32; use int32 or int64",
    ]


def test_a_linear_layer_is_a_product_and_a_bias():
    x, bias = drawn(6, 48, 1).reshape(2, 3, 48), drawn(1, 24, 2)[0]
    weight = nvfp4.quantize(drawn(24, 48, 3))
    exact = x.astype("float64") @ nvfp4.dequantize(weight, "float64").T
    np.testing.assert_allclose(nvfp4.linear(x, weight), exact, rtol=1e-5, atol=1e-4)
    with_bias = nvfp4.linear(x.astype("float16"), nvfp4.Weights(weight), bias.astype("float16"))
    assert with_bias.dtype == np.float16 and with_bias.shape == (2, 3, 24)
    np.testing.assert_allclose(with_bias, exact + bias, rtol=2e-3, atol=2e-2)
    assert error(lambda: nvfp4.linear(x, weight, bias[:3]), ValueError) == (
        "bias: its shape is (3,); it must be (24)"
    )


def attention_by_definition(query, key, value, is_causal):
    groups = query.shape[1] // key.shape[1]
    key, value = np.repeat(key, groups, axis=1), np.repeat(value, groups, axis=1)
    scores = query @ key.swapaxes(2, 3) / np.sqrt(query.shape[-1])
    if is_causal:
        queries, keys = scores.shape[2:]
        visible = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
        scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ value


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_on_halves(is_causal):
    draw = np.random.default_rng(1).standard_normal
    query, key, value = draw((2, 4, 10, 32)), draw((2, 2, 70, 32)), draw((2, 2, 70, 32))
    query, key, value = (array.astype(np.float16) for array in (query, key, value))
    result = nvfp4.attention(query, key, value, is_causal=is_causal, out_dtype=np.float32)
    expected = attention_by_definition(*(array.astype(np.float64) for array in (query, key, value)), is_causal)
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", [(), (2, 2), (2, 2, 2)])
def test_attention_on_scaled_integers(shape):
    rng = np.random.default_rng(2)
    query, key, value = (rng.integers(-127, 128, (2, 2, 100, 16), np.int8) for _ in range(3))
    scales = [np.float32(rng.random(shape) * 0.02 + 0.01) for _ in range(3)]
    result = nvfp4.attention(
        query, key, value, query_scale=scales[0], key_scale=scales[1], value_scale=scales[2], out_dtype="float32"
    )

    def scaled(array, scale):
        if scale.ndim == 3:
            spread = np.repeat(scale, 64, axis=2)[:, :, :100, None]
        else:
            spread = np.broadcast_to(scale.reshape(*scale.shape, *[1] * (4 - scale.ndim)), array.shape)
        return array * spread.astype(np.float64)

    expected = attention_by_definition(*(scaled(*pair) for pair in zip((query, key, value), scales, strict=True)), False)
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3)


def test_wrong_arguments_are_named_with_value_and_remedy():
    tensor = nvfp4.quantize(drawn(4, 32, 1))
    said = [
        error(lambda: nvfp4.quantize([1.0]), TypeError),
        error(lambda: nvfp4.quantize(np.ones((2, 16))), TypeError),
        error(lambda: nvfp4.quantize(np.ones(16, np.float32)), ValueError),
        error(lambda: nvfp4.quantize(np.ones((2, 24), np.float32)), ValueError),
        error(lambda: nvfp4.quantize(np.ones((32, 4), np.float32).T), ValueError),
        error(lambda: nvfp4.quantize(np.full((1, 16), np.inf, np.float32)), ValueError),
        error(lambda: nvfp4.Tensor(tensor.values, tensor.scales[:3]), ValueError),
        error(lambda: nvfp4.Tensor(tensor.values, tensor.scales, float("nan")), ValueError),
        error(lambda: nvfp4.dequantize(tensor, np.int8), TypeError),
        error(lambda: nvfp4.grouped_mm(np.ones(3), tensor), TypeError),
        error(lambda: nvfp4.grouped_mm([1.0], tensor), TypeError),
        error(lambda: nvfp4.grouped_mm(np.ones(3, np.float16), tensor), ValueError),
        error(lambda: nvfp4.grouped_mm(tensor, nvfp4.quantize(drawn(4, 48, 1))), ValueError),
        error(lambda: nvfp4.grouped_mm(tensor, tensor, [3]), ValueError),
        error(lambda: nvfp4.grouped_mm(tensor, tensor, [-1]), ValueError),
        error(lambda: nvfp4.grouped_mm(tensor, tensor, [2, 2]), ValueError),
        error(lambda: nvfp4.grouped_mm(tensor, tensor, [3.9]), TypeError),
        error(lambda: nvfp4.grouped_mm(tensor, tensor, np.array([4.0])), TypeError),
        error(lambda: nvfp4.set_num_threads(0), ValueError),
        error(lambda: nvfp4.set_num_threads(-1), ValueError),
        error(lambda: nvfp4.set_num_threads(2**70), ValueError),
    ]
    assert said == [
        "values: it is a list; give a numpy array or a PyTorch tensor",
        "values: its dtype is float64; use float32 or float16 or bfloat16",
        "values: its shape is (16,); it must be (any, any)",
        "24 columns: one scale covers 16 values along a row, so the number must be a multiple of 16; pad the rows with "
        "zeros to 32",
        "values: its strides are (4, 16) bytes; make it contiguous with np.ascontiguousarray",
        "the value at row 0, column 0 is inf; only finite values can be quantised",
        "scales: its shape is (3, 2); it must be (4, 2)",
        "tensor_scale: it is nan; it must be finite, and 1 where there is none",
        "dtype: <class 'numpy.int8'> is not supported; use float32, float16 or bfloat16",
        "tokens: its dtype is float64; use bfloat16 or float16 or float32",
        "tokens: it is a list; give an nvfp4.Tensor, as nvfp4.quantize makes it, or an array of floats",
        "tokens: its shape is (3,); give [m, k], the groups one after another",
        "weights: its rows have 48 values, and those of tokens 32; both must have k",
        "sizes: they add up to 3, and tokens has 4 rows",
        "sizes: -1 is negative; give the number of tokens, 0 for none",
        "sizes: 2 sizes for weights of 1 groups; give one for each",
        "sizes: [3.9] are not whole numbers; give the number of tokens of each group",
        "sizes: [4.0] are not whole numbers; give the number of tokens of each group",
        "threads = 0: an engine needs at least 1 thread",
        "threads: it is -1; give 1 to 4096",
        "threads: it is 1180591620717411303424; give 1 to 4096",
    ]


def test_arrays_may_begin_at_any_byte():
    def moved(array):
        bytes_ = np.empty(array.nbytes + 1, np.uint8)
        other = bytes_[1:].view(array.dtype).reshape(array.shape)
        other[...] = array
        assert not other.flags.aligned
        return other

    values = drawn(4, 32, 1)
    expected, found = nvfp4.quantize(values), nvfp4.quantize(moved(values))
    np.testing.assert_array_equal(found.values, expected.values)
    square = nvfp4.stack([nvfp4.quantize(drawn(32, 32, 2))] * 2)
    ids, weights = np.array([[0], [1], [1], [0]]), drawn(4, 1, 3)
    layer = values, ids, weights, square, square, square
    np.testing.assert_array_equal(nvfp4.moe(*map(moved, layer[:3]), *layer[3:]), nvfp4.moe(*layer))


def test_attention_of_more_sequences_than_a_list_holds_is_refused():
    # Without elements the arrays take no memory, whatever their batch is.
    many = np.empty((2**31, 1, 0, 64), np.float16)
    said = error(lambda: nvfp4.attention(many, many, many), ValueError)
    assert "2147483648 sequences of 1 heads are more than 1048576 heads in all" in said, said


def test_attention_of_many_sequences_is_planned_in_time():
    """If each sequence were searched for from the first one, this would take minutes."""
    query = np.ones((300_000, 1, 1, 8), np.float16)
    assert (nvfp4.attention(query, query, query) == 1).all()


def test_a_nan_scale_is_refused():
    tensor = nvfp4.Tensor(np.zeros((1, 8), np.uint8), np.full((1, 1), 0x7F, np.uint8))
    assert "is 0x7f, which is NaN in e4m3" in error(lambda: nvfp4.dequantize(tensor), ValueError)
    assert "is 0x7f, which is NaN in e4m3" in error(lambda: nvfp4.grouped_mm(tensor, tensor), ValueError)


def in_child(work):
    """Whether it is true in a forked child, which ends by itself if it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_computes_too():
    tensor = nvfp4.quantize(drawn(4, 32, 1))
    expected = nvfp4.grouped_mm(tensor, tensor)
    before = nvfp4.get_num_threads()
    nvfp4.set_num_threads(3)
    try:
        works = lambda: np.array_equal(nvfp4.grouped_mm(tensor, tensor), expected)  # noqa: E731
        assert in_child(lambda: works() and nvfp4.get_num_threads() == 3)
        # Another thread is in a call.
        is_over = threading.Event()

        def busy():
            large = nvfp4.quantize(drawn(256, 1024, 2))
            while not is_over.is_set():
                nvfp4.grouped_mm(large, large)

        thread = threading.Thread(target=busy)
        thread.start()
        try:
            assert all(in_child(works) for _ in range(5))
        finally:
            is_over.set()
            thread.join()
    finally:
        nvfp4.set_num_threads(before)
