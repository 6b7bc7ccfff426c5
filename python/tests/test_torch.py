"""PyTorch tensors on the CPU; on a GPU of the Hopper generation also there."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gauntlet import nvfp4  # noqa: E402


def has_hopper():
    return torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9


def drawn(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


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


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not has_hopper(), reason="no Hopper GPU"))])
def test_a_compiled_layer_has_the_operator_in_one_graph(device):
    layer = Layer(*operands(device))
    bias = drawn(17, 64).bfloat16().to(device)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(bias), layer(bias))


def error(work, kind):
    with pytest.raises(kind) as raised:
        work()
    return str(raised.value)


def test_16_bit_tokens_need_a_gpu():
    tokens, weights, sizes = operands()
    brains = nvfp4.dequantize(tokens, torch.bfloat16)
    with pytest.raises(ValueError, match="bfloat16 on the CPU.*nvfp4.quantize"):
        nvfp4.grouped_mm(brains, weights, sizes)


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


@pytest.mark.skipif(not has_hopper(), reason="no Hopper GPU")
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

    def test_errors_name_the_remedy(self):
        tokens, weights, sizes = operands("cuda")
        assert "move it with .to('cuda:0')" in error(
            lambda: nvfp4.grouped_mm(tokens, weights.to("cpu"), sizes), ValueError
        )
        assert "move it with .cpu()" in error(lambda: nvfp4.dequantize(tokens), ValueError)
        narrow = nvfp4.quantize(drawn(4, 64)).to("cuda")
        assert "pad values and scales" in error(lambda: nvfp4.grouped_mm(narrow, narrow), ValueError)
