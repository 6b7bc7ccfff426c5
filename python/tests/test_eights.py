"""Layers whose tokens and weights are rounded to e4m3."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tensors import DEVICES, drawn, needs_hopper  # noqa: E402

from gauntlet import nvfp4  # noqa: E402
from gauntlet.nvfp4 import _eights  # noqa: E402


def weight(n=96, k=512, device="cpu"):
    """Rows of very different sizes."""
    values = drawn(n, k) * torch.logspace(-3, 1, n)[:, None]
    return nvfp4.quantize(values.bfloat16()).to(device)


def exact(tensor):
    return nvfp4.dequantize(tensor.to("cpu"), "float64").to(tensor.values.device)


def relative(found, wanted):
    return float((found.double() - wanted).norm() / wanted.norm())


def test_each_weight_is_the_nearest_e4m3_number_of_its_row():
    tensor = weight()
    found = _eights.decoded(tensor)
    powers = found.scales / tensor.tensor_scale
    assert torch.equal(torch.exp2(torch.log2(powers).round()), powers)
    wanted = (exact(tensor) / found.scales.double()[:, None]).to(torch.float8_e4m3fn)
    assert torch.equal(found.values.float(), wanted.float())
    # Codes times scales of 4 bits are rounded, and nothing is cut off: neither large rows nor small ones are further off.
    rows = (found.values.double() * found.scales.double()[:, None] - exact(tensor)).norm(dim=1) / exact(tensor).norm(dim=1)
    assert 0.01 < float(rows.min()) and float(rows.max()) < 0.035
    assert torch.isfinite(found.values.float()).all()


def test_the_largest_and_the_smallest_weights_stay_in_range():
    codes = torch.full((16, 8), 0x66, dtype=torch.uint8)  # 4, which leaves a scale's digits as they are
    scales = torch.full((16, 1), 448.0).to(torch.float8_e4m3fn)
    scales[8:] = torch.tensor(2.0**-9).to(torch.float8_e4m3fn)
    tensor = nvfp4.Tensor(codes, scales, 0.5)
    found = _eights.decoded(tensor)
    assert torch.equal(found.values.double() * found.scales.double()[:, None], exact(tensor))
    zero = _eights.decoded(nvfp4.Tensor(codes, torch.zeros(16, 1).to(torch.float8_e4m3fn)))
    assert float(zero.values.float().abs().max()) == 0 and torch.isfinite(zero.scales).all()


@pytest.mark.parametrize("device", DEVICES)
def test_tokens_are_rounded_relative_to_their_largest(device):
    x = (drawn(5, 640) * torch.tensor([1e-20, 1e-3, 1, 1e3, 0])[:, None]).bfloat16().to(device)
    found = _eights.rounded(x)
    assert found.values.float().abs().amax(1)[:4].tolist() == [448] * 4
    errors = (found.values.double() * found.scales.double()[:, None] - x.double()).norm(dim=1)[:4] / x.double().norm(dim=1)[:4]
    assert 0.01 < float(errors.min()) and float(errors.max()) < 0.04
    assert float(found.values[4].float().abs().max()) == 0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_layer_is_off_by_a_few_per_cent_and_no_more(dtype, device):
    tensor = weight(device=device)
    weights = nvfp4.Weights(tensor, tokens="float8_e4m3fn")
    assert weights.tokens == nvfp4.Weights(tensor, tokens=torch.float8_e4m3fn).tokens == "float8_e4m3fn"
    x = drawn(3, 70, 512, seed=2).to(dtype).to(device)
    bias = drawn(96, seed=3).to(device)
    wanted = x.double() @ exact(tensor).t()
    found = nvfp4.linear(x, weights)
    assert found.dtype is dtype and found.shape == (3, 70, 96)
    assert 0.01 < relative(found, wanted) < 0.045
    with_bias = nvfp4.linear(x, weights, bias, out_dtype=torch.float32)
    assert with_bias.dtype is torch.float32 and relative(with_bias, wanted + bias.double()) < 0.045
    assert nvfp4.linear(x[:0], weights).shape == (0, 70, 96)


@needs_hopper
def test_a_captured_layer_serves_other_tokens():
    tensor = weight(device="cuda")
    weights = nvfp4.Weights(tensor, tokens="float8_e4m3fn")
    x = drawn(40, 512).bfloat16().cuda()
    nvfp4.linear(x, weights)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = nvfp4.linear(x, weights)
    x.copy_(drawn(40, 512, seed=9) * 100)
    graph.replay()
    assert torch.equal(found, nvfp4.linear(x, weights))


def test_other_products_refuse_such_weights_by_name():
    tensor = weight()
    weights = nvfp4.Weights(tensor, tokens="float8_e4m3fn")
    x = drawn(4, 512).bfloat16()

    def message(error, call):
        with pytest.raises(error) as refused:
            call()
        return str(refused.value)

    assert "weights: they were rounded for float8_e4m3fn tokens" in message(ValueError, lambda: nvfp4.grouped_mm(x, weights))
    assert "up: they were rounded" in message(ValueError, lambda: nvfp4.swiglu_grouped_mm(x, tensor, weights))
    assert "its rows have 512 values, and x is of shape (8, 256)" in message(ValueError, lambda: nvfp4.linear(x.view(8, 256), weights))
    few = nvfp4.quantize(drawn(8, 512))
    assert "weights of shape (8, 512)" in message(ValueError, lambda: nvfp4.Weights(few, tokens="float8_e4m3fn"))
    arrays = nvfp4.quantize(np.ones((16, 64), np.float32))
    assert "for PyTorch tensors" in message(TypeError, lambda: nvfp4.Weights(arrays, tokens="float8_e4m3fn"))
