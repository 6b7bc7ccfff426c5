"""PyTorch tensors on the CPU; on a GPU of the Hopper generation also there."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from messages import error  # noqa: E402
from tensors import DEVICES, drawn, needs_hopper  # noqa: E402

from gauntlet import nvfp4  # noqa: E402


def operands(device="cpu"):
    weights = nvfp4.stack([nvfp4.quantize(drawn(64, 256, seed=seed)) for seed in range(3)])
    return nvfp4.quantize(drawn(17, 256)).to(device), weights.to(device), [5, 0, 12]


def test_tensors_are_quantized_as_arrays_are():
    x = drawn(8, 64)
    tensor, array = nvfp4.quantize(x), nvfp4.quantize(x.numpy())
    assert tensor.scales.dtype == torch.float8_e4m3fn and tensor.tensor_scale == array.tensor_scale
    np.testing.assert_array_equal(tensor.values.numpy(), array.values)
    np.testing.assert_array_equal(tensor.scales.view(torch.uint8).numpy(), array.scales)
    assert torch.equal(nvfp4.dequantize(tensor), torch.from_numpy(nvfp4.dequantize(array)))
    brain = nvfp4.dequantize(tensor, torch.bfloat16)
    assert torch.equal(brain, nvfp4.dequantize(tensor, torch.float64).to(torch.bfloat16))
    assert torch.equal(nvfp4.quantize(x.bfloat16()).values, nvfp4.quantize(x.bfloat16().float()).values)


def test_products_have_the_type_and_library_of_the_tokens():
    tokens, weights, sizes = operands()
    result = nvfp4.grouped_mm(tokens, weights, sizes)
    assert result.dtype == torch.bfloat16 and result.shape == (17, 64)
    a, b = nvfp4.dequantize(tokens, torch.float64), nvfp4.dequantize(weights, torch.float64)
    expected = torch.cat([a[:5] @ b[0].T, a[5:] @ b[2].T])
    torch.testing.assert_close(result.double(), expected, rtol=1e-2, atol=1e-2)
    exact = nvfp4.grouped_mm(tokens, weights, torch.tensor(sizes), out_dtype=torch.float32)
    torch.testing.assert_close(exact.double(), expected, rtol=1e-5, atol=1e-4)


def test_attention_agrees_with_pytorch():
    query, key = drawn(2, 4, 33, 64).half(), drawn(2, 2, 33, 64, seed=2).half()
    expected = torch.nn.functional.scaled_dot_product_attention(
        query.float(), key.float(), key.float(), is_causal=True, enable_gqa=True
    )
    result = nvfp4.attention(query, key, key, is_causal=True)
    assert result.dtype == torch.float16
    torch.testing.assert_close(result.float(), expected, rtol=2e-3, atol=2e-3)
    e4m3 = [tensor.to(torch.float8_e4m3fn) for tensor in (query, key, key)]
    scaled = nvfp4.attention(*e4m3, query_scale=1.0, key_scale=1.0, value_scale=1.0, out_dtype=torch.float32)
    wide = [tensor.float() for tensor in e4m3]
    expected = torch.nn.functional.scaled_dot_product_attention(*wide, enable_gqa=True)
    torch.testing.assert_close(scaled, expected, rtol=1e-3, atol=1e-3)


def test_operators_pass_pytorchs_own_checks():
    from gauntlet.nvfp4 import torch_ops

    tokens, weights, sizes = operands()
    # PyTorch's check multiplies every operand, which it cannot do with float8.
    flat = [
        part
        for tensor in (tokens, weights)
        for part in (tensor.values, tensor.scales.view(torch.uint8), list(tensor.tensor_scales))
    ]
    arguments = (*flat, sizes, torch.float32)
    torch.library.opcheck(torch.ops.gauntlet.grouped_mm.default, arguments)
    assert torch.equal(torch_ops.grouped_mm(tokens, weights, sizes), nvfp4.grouped_mm(tokens, weights, sizes))
    dual = torch_ops.swiglu_grouped_mm(tokens, weights, weights, sizes)
    assert torch.equal(dual, nvfp4.swiglu_grouped_mm(tokens, weights, weights, sizes))


class Layer(torch.nn.Module):
    """A layer of a network that multiplies quantised weights."""

    def __init__(self, tokens, weights, sizes):
        super().__init__()
        self.tokens, self.weights, self.sizes = tokens, weights, sizes

    def forward(self, bias):
        from gauntlet.nvfp4 import torch_ops

        return torch.relu(torch_ops.grouped_mm(self.tokens, self.weights, self.sizes) + bias)


@pytest.mark.parametrize("device", DEVICES)
def test_a_compiled_layer_has_the_operator_in_one_graph(device):
    layer = Layer(*operands(device))
    bias = drawn(17, 64).bfloat16().to(device)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(bias), layer(bias))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_tokens_without_scales_are_multiplied_as_they_are(dtype):
    from gauntlet.nvfp4 import torch_ops

    _, weights, sizes = operands()
    tokens = drawn(17, 256, seed=9).to(dtype)
    exact = nvfp4.dequantize(weights, torch.float64)
    exact = torch.cat([tokens[:5].double() @ exact[0].T, tokens[5:].double() @ exact[2].T])
    found = nvfp4.grouped_mm(tokens, weights, sizes, out_dtype=torch.float32)
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-4)
    rounded = torch_ops.grouped_mm(tokens, weights, sizes)
    assert rounded.dtype == torch.bfloat16 and torch.equal(rounded, found.bfloat16())
    gated = torch_ops.swiglu_grouped_mm(tokens, weights, weights, sizes, out_dtype=torch.float32)
    torch.testing.assert_close(gated.double(), torch.nn.functional.silu(exact) * exact, rtol=1e-4, atol=1e-3)
    arguments = (tokens, None, [], weights.values, weights.scales.view(torch.uint8), list(weights.tensor_scales))
    torch.library.opcheck(torch.ops.gauntlet.grouped_mm.default, (*arguments, sizes, torch.float32))


def test_ends_of_groups_are_sizes():
    from gauntlet.nvfp4 import torch_ops

    quantized, weights, sizes = operands()
    tokens = drawn(17, 256, seed=9).bfloat16()
    offs = torch.tensor(sizes).cumsum(0).int()
    expected = nvfp4.grouped_mm(tokens, weights, sizes)
    assert torch.equal(nvfp4.grouped_mm(tokens, weights, offs=offs), expected)
    assert torch.equal(nvfp4.grouped_mm(quantized, weights, offs=offs), nvfp4.grouped_mm(quantized, weights, sizes))
    assert torch.equal(torch_ops.grouped_mm(tokens, weights, offs=offs), expected)
    gated = torch_ops.swiglu_grouped_mm(tokens, weights, weights, offs=offs)
    assert torch.equal(gated, nvfp4.swiglu_grouped_mm(tokens, weights, weights, sizes))
    first = nvfp4.grouped_mm(tokens, weights, offs=torch.tensor([5, 5, 9], dtype=torch.int32))
    assert torch.equal(first[:9], expected[:9])
    for wrong, kind, words in (
        (offs.long(), TypeError, "offs: its dtype is int64"),
        (offs[:2], ValueError, "offs: its shape is (2,)"),
        (offs.flip(0).contiguous(), ValueError, "offs: the tokens of group 1 end at 5; ends rise from 17"),
    ):
        assert words in error(lambda wrong=wrong: nvfp4.grouped_mm(tokens, weights, offs=wrong), kind)
    assert "give one of them" in error(lambda: nvfp4.grouped_mm(tokens, weights, sizes, offs=offs), ValueError)
    arguments = (tokens, None, [], weights.values, weights.scales.view(torch.uint8), list(weights.tensor_scales))
    torch.library.opcheck(torch.ops.gauntlet.grouped_mm.default, (*arguments, None, torch.float32), {"offs": offs})


def test_a_linear_layer_is_a_product_and_a_bias():
    x, bias = drawn(2, 3, 96).bfloat16(), drawn(64, seed=4).bfloat16()
    weight = nvfp4.quantize(drawn(64, 96, seed=5))
    exact = x.double() @ nvfp4.dequantize(weight, torch.float64).T
    found = nvfp4.linear(x, weight, out_dtype=torch.float32)
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-4)
    with_bias = nvfp4.linear(x, nvfp4.Weights(weight), bias)
    assert with_bias.dtype == torch.bfloat16 and torch.equal(with_bias, (found + bias.float()).bfloat16())
    assert "weight: its shape is (3, 64, 256); give [n, k]" in error(lambda: nvfp4.linear(x, operands()[1]), ValueError)
    assert "bias: its shape is (3,)" in error(lambda: nvfp4.linear(x, weight, bias[:3]), ValueError)


def test_rows_are_padded_for_gpus():
    from gauntlet.nvfp4 import _cuda

    tensor = nvfp4.stack([nvfp4.quantize(drawn(8, 272, seed=seed)) for seed in range(2)])
    padded = _cuda.padded(tensor)
    assert padded.shape == (2, 8, 512) and padded.scales.dtype == tensor.scales.dtype
    values = nvfp4.dequantize(padded)
    assert torch.equal(values[..., :272], nvfp4.dequantize(tensor)) and not values[..., 272:].any()
    assert _cuda.padded(padded) is padded


def test_tokens_of_another_type_are_refused():
    _, weights, sizes = operands()
    assert error(lambda: nvfp4.grouped_mm(drawn(17, 256).double(), weights, sizes), TypeError) == (
        "tokens: its dtype is float64; use bfloat16 or float16 or float32"
    )


def test_wrong_tensors_are_named_with_a_remedy():
    tokens, weights, sizes = operands()
    array = nvfp4.quantize(np.ones((2, 256), np.float32))
    assert [
        error(lambda: nvfp4.quantize(drawn(16, 4).T), ValueError),
        error(lambda: nvfp4.quantize(torch.empty(4, 16, device="meta")), ValueError),
        error(lambda: nvfp4.grouped_mm(tokens, array), TypeError),
        error(lambda: nvfp4.attention(*[drawn(1, 1, 4, 8).half()] * 2, drawn(1, 1, 4, 8)), TypeError),
    ] == [
        "values: its strides are (1, 4); make it contiguous with .contiguous()",
        "values: it is on meta, and this function works on the CPU; move it with .cpu()",
        "weights: give arrays of one library; tokens is a Tensor",
        "value: its dtype is float32; use float16 or bfloat16 or float8_e4m3fn or int8",
    ]


def test_weights_are_repacked_for_the_kernels_of_a_gpu_only():
    _, weights, _ = operands()
    assert [
        error(lambda: nvfp4.Weights(weights, tokens=torch.bfloat16), ValueError),
        error(lambda: nvfp4.Weights(weights, tokens=torch.float32), TypeError),
    ] == [
        "tokens: weights are repacked for the kernels of a GPU, and these are on cpu; leave it out",
        "tokens: weights are not repacked for float32; give bfloat16 or float16",
    ]


def test_packing_in_steps_moves_every_bit_and_loses_none():
    from gauntlet import _native

    weights = operands()[1]
    values, scales = (part.contiguous().view(torch.uint8).reshape(-1).numpy() for part in (weights.values, weights.scales))
    ones = int(np.unpackbits(values).sum())
    for tokens in ("bfloat16", "float16"):
        packed = _native.pack_steps(values, scales, weights.shape, tokens)
        assert packed[0].shape == values.shape and packed[1].shape == scales.shape
        # Scales of random weights are positive, so no sign moves into the values.
        assert int(np.unpackbits(packed[0]).sum()) == ones
        first = _native.pack_steps(values[: 64 * 128], scales[: 64 * 16], (1, 64, 256), tokens)
        np.testing.assert_array_equal(first[0], packed[0][: 64 * 128])
    assert "fewer bytes" in error(lambda: _native.pack_steps(values, scales, (4, 64, 256), "bfloat16"), ValueError)


@needs_hopper
class TestOnHopper:
    """The same products on a GPU."""

    def test_products_are_right(self):
        tokens, weights, sizes = operands("cuda")
        for dtype in (torch.float16, torch.bfloat16, torch.float32):
            result = nvfp4.grouped_mm(tokens, weights, sizes, out_dtype=dtype)
            expected = nvfp4.grouped_mm(*operands(), out_dtype=torch.float32)
            torch.testing.assert_close(result.float().cpu(), expected, rtol=1e-2, atol=1e-2)
        dual = nvfp4.swiglu_grouped_mm(tokens, weights, weights, sizes)
        expected = nvfp4.swiglu_grouped_mm(*operands()[:2], operands()[1], sizes, out_dtype=torch.float32)
        torch.testing.assert_close(dual.float().cpu(), expected, rtol=2e-2, atol=5e-2)

    def test_calls_follow_the_current_stream_and_are_captured(self):
        tokens, weights, sizes = operands("cuda")
        expected = nvfp4.grouped_mm(tokens, weights, sizes)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            assert torch.equal(nvfp4.grouped_mm(tokens, weights, sizes), expected)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            result = nvfp4.grouped_mm(tokens, weights, sizes)
        result.zero_()
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(result, expected)

    def test_a_call_is_captured_that_was_never_made_before(self):
        _, weights, _ = operands("cuda")
        tokens = drawn(23, 256, seed=5).to("cuda", torch.bfloat16)
        offs = torch.tensor([3, 10, 23], device="cuda", dtype=torch.int32)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            planned = nvfp4.grouped_mm(tokens, weights, [3, 7, 13], out_dtype=torch.float32)
            routed = nvfp4.grouped_mm(tokens, weights, offs=offs, out_dtype=torch.float32)
        for _ in range(2):
            graph.replay()
            expected = nvfp4.grouped_mm(tokens, weights, [3, 7, 13], out_dtype=torch.float32)
            assert torch.equal(planned, expected)
            torch.testing.assert_close(routed, expected, rtol=1e-6, atol=1e-6)
            planned.zero_()

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_16_bit_tokens_are_multiplied_as_they_are(self, dtype):
        from gauntlet.nvfp4 import torch_ops

        _, weights, sizes = operands("cuda")
        tokens = drawn(17, 256, seed=9).to("cuda", dtype)
        expected = nvfp4.dequantize(weights.to("cpu"), torch.float64).cuda()
        expected = torch.cat([tokens[:5].double() @ expected[0].T, tokens[5:].double() @ expected[2].T])
        found = nvfp4.grouped_mm(tokens, weights, sizes, out_dtype=torch.float32)
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)
        rounded = torch_ops.grouped_mm(tokens, weights, sizes)
        assert rounded.dtype == torch.bfloat16 and torch.equal(rounded, found.bfloat16())
        gated = nvfp4.swiglu_grouped_mm(tokens, weights, weights, sizes, out_dtype=torch.float32)
        torch.testing.assert_close(
            gated.double(), torch.nn.functional.silu(expected) * expected, rtol=1e-4, atol=1e-3
        )

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_repacked_weights_give_the_same_products(self, dtype):
        _, weights, sizes = operands("cuda")
        repacked = nvfp4.Weights(weights, tokens=dtype)
        tokens = drawn(17, 256, seed=9).to("cuda", dtype)
        offs = torch.tensor(sizes, device="cuda").cumsum(0).int()
        for routing in ({"sizes": sizes}, {"offs": offs}):
            found = nvfp4.grouped_mm(tokens, repacked, **routing, out_dtype=torch.float32)
            expected = nvfp4.grouped_mm(tokens, weights, **routing, out_dtype=torch.float32)
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)
            found = nvfp4.swiglu_grouped_mm(tokens, repacked, repacked, **routing, out_dtype=torch.float32)
            expected = nvfp4.swiglu_grouped_mm(tokens, weights, weights, **routing, out_dtype=torch.float32)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)
        odd = nvfp4.quantize(drawn(48, 80, seed=3)).to("cuda")
        x = drawn(5, 80, seed=4).to("cuda", dtype)
        expected = nvfp4.linear(x, nvfp4.Weights(odd), out_dtype=torch.float32)
        found = nvfp4.linear(x, nvfp4.Weights(odd, tokens=dtype), out_dtype=torch.float32)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)

    def test_repacked_weights_are_for_their_tokens_only(self):
        tokens, weights, sizes = operands("cuda")
        repacked = nvfp4.Weights(weights, tokens=torch.bfloat16)
        halves = drawn(17, 256, seed=9).to("cuda", torch.float16)
        assert [
            error(lambda: nvfp4.grouped_mm(halves, repacked, sizes), ValueError),
            error(lambda: nvfp4.grouped_mm(tokens, repacked, sizes), ValueError),
            error(lambda: nvfp4.swiglu_grouped_mm(halves.bfloat16(), repacked, weights, sizes), ValueError),
        ] == [
            "weights: they were repacked for bfloat16 tokens, and these are float16; prepare them for those",
            "weights: they were repacked for bfloat16 tokens, and these are NVFP4; prepare them for those",
            "gate, up: only some of them were repacked; prepare all with the same `tokens`, or none",
        ]

    def test_errors_name_the_remedy(self):
        tokens, weights, sizes = operands("cuda")
        assert "move it with .to('cuda:0')" in error(
            lambda: nvfp4.grouped_mm(tokens, weights.to("cpu"), sizes), ValueError
        )
        assert "move it with .cpu()" in error(lambda: nvfp4.dequantize(tokens), ValueError)
        narrow = nvfp4.quantize(drawn(4, 64)).to("cuda")
        assert "nvfp4.Weights(" in error(lambda: nvfp4.grouped_mm(narrow, narrow), ValueError)
        exact = nvfp4.grouped_mm(narrow.to("cpu"), narrow.to("cpu"), out_dtype=torch.float32)
        found = nvfp4.grouped_mm(narrow, nvfp4.Weights(narrow), out_dtype=torch.float32)
        torch.testing.assert_close(found.cpu(), exact)

    def test_routing_on_the_device_gives_the_bits_of_the_hosts(self):
        _, weights, sizes = operands("cuda")
        tokens = drawn(17, 256, seed=9).to("cuda", torch.bfloat16)
        offs = torch.tensor(sizes, device="cuda").cumsum(0).int()
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            nvfp4.grouped_mm(tokens, weights, offs=offs)
        stream.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            result = nvfp4.grouped_mm(tokens, weights, offs=offs, out_dtype=torch.float32)
        for counts in ([5, 0, 12], [17, 0, 0], [0, 3, 4], [0, 0, 0]):
            offs.copy_(torch.tensor(counts).cumsum(0))
            graph.replay()
            expected = nvfp4.grouped_mm(tokens[: sum(counts)], weights, counts, out_dtype=torch.float32)
            torch.testing.assert_close(result[: sum(counts)], expected, rtol=1e-6, atol=1e-6)
