"""What a GPU is asked for by products, without a GPU."""

import copy

import pytest

torch = pytest.importorskip("torch")

from recorder import recorder  # noqa: E402, F401

from gauntlet import _native, nvfp4  # noqa: E402
from gauntlet.nvfp4 import _cuda, _cuda_mixture, _routed  # noqa: E402

GROUPS, N, K = 3, 32, 512


def stack(factor=1.0):
    draw = torch.Generator().manual_seed(1)
    return nvfp4.stack([nvfp4.quantize(torch.randn(N, K, generator=draw) * factor) for _ in range(GROUPS)])


def tokens(rows=7, dtype=torch.bfloat16):
    return torch.zeros(rows, K, dtype=dtype)


@pytest.fixture
def gpu(monkeypatch, recorder):  # noqa: F811
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    monkeypatch.setattr(_cuda, "is_hopper", lambda device: False)
    return recorder


OFFS = torch.tensor([1, 1, 7], dtype=torch.int32)


@pytest.mark.parametrize("is_dual", [False, True])
@pytest.mark.parametrize("routing", [[1, 0, 6], OFFS])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_it_is_asked_for_the_same_by_few_comparisons_and_by_many(gpu, dtype, routing, is_dual):
    x, weights, other = tokens(dtype=dtype), stack(), stack(2.0) if is_dual else None
    is_routed = isinstance(routing, torch.Tensor)
    ways = (None, routing) if is_routed else (routing, None)
    results = [_cuda.quick(x, weights, other, *ways, None) for _ in range(2)]
    named = {"gate": weights, "up": other} if is_dual else {"weights": weights}
    results.append(_cuda.product(x, named, routing, "bfloat16"))
    for result, call in zip(results, gpu.calls, strict=True):
        assert (tuple(result.shape), result.dtype) == ((7, N), torch.bfloat16)
        name, stream, is_capturing, k, first, second, addresses, factors, formats, counts, buffers, *epilogue = call
        assert epilogue == ([None] if is_routed else [])
        assert (name, stream, is_capturing) == ("enqueue_routed" if is_routed else "enqueue", 7, False)
        assert (k, factors, formats) == (K, (), (str(dtype).removeprefix("torch."), "bfloat16"))
        assert first == _native.Stack((GROUPS, N, K), weights.tensor_scales, "canonical")
        assert second == (_native.Stack((GROUPS, N, K), other.tensor_scales, "canonical") if is_dual else None)
        parts = [part for one in (weights, other) if one is not None for part in (one.values, one.scales)]
        assert addresses == (*(part.data_ptr() for part in parts), *(0 for _ in range(4 - len(parts))))
        assert counts == (7, routing.data_ptr(), False) if is_routed else list(counts) == routing
        assert buffers == (x.data_ptr(), 0, result.data_ptr())


def test_the_device_plans_while_a_list_of_sizes_is_new(gpu, monkeypatch):
    monkeypatch.setattr(_cuda, "is_hopper", lambda device: True)
    kept = []
    monkeypatch.setattr(_cuda, "enqueue", lambda *call: kept.append(call[5]))
    for _ in range(_cuda._NEW_CALLS + 2):
        _cuda.quick(tokens(), stack(), None, [2, 0, 5], None, None)
    ends, sizes = kept[: _cuda._NEW_CALLS], kept[_cuda._NEW_CALLS :]
    assert [one.tolist() for one in ends] == [[2, 2, 7]] * _cuda._NEW_CALLS and ends[0].dtype == torch.int32
    assert sizes == [(2, 0, 5)] * 2
    # A graph replays the call, and pageable memory cannot be copied into one.
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    _cuda.quick(tokens(), stack(), None, [5, 0, 2], None, None)
    assert kept[-1] == (5, 0, 2)


def test_a_layer_of_more_dimensions_is_a_product_of_its_rows(gpu):
    weights = nvfp4.quantize(torch.ones(N, K))
    x = tokens(6).view(2, 3, K)
    for given in (x, x.transpose(0, 1).contiguous().transpose(0, 1)):
        result = nvfp4.linear(given, weights)
        assert (tuple(result.shape), result.dtype, result.is_contiguous()) == ((2, 3, N), torch.bfloat16, True)
        stack, counts = gpu.calls[-1][4], gpu.calls[-1][9]
        assert (stack, counts) == (_native.Stack((1, N, K), weights.tensor_scales, "canonical"), [6])
    assert gpu.calls[0][10][0] == x.data_ptr()


def test_weights_that_moved_are_found_at_their_new_address(gpu):
    weights = stack()
    _cuda.quick(tokens(), weights, None, [1, 0, 6], None, None)
    weights.values.set_(weights.values.clone())
    _cuda.quick(tokens(), weights, None, [1, 0, 6], None, None)
    assert gpu.calls[0][6] != gpu.calls[1][6] == (weights.values.data_ptr(), weights.scales.data_ptr(), 0, 0)


def test_weights_that_were_used_may_be_copied(gpu):
    weights = stack()
    _cuda.quick(tokens(), weights, None, [1, 0, 6], None, None)
    other = copy.deepcopy(weights)
    _cuda.quick(tokens(), other, None, [1, 0, 6], None, None)
    assert torch.equal(other.values, weights.values)
    assert gpu.calls[0][6] != gpu.calls[1][6] == (other.values.data_ptr(), other.scales.data_ptr(), 0, 0)


def mixture(between=32, dtype=torch.bfloat16):
    """Arguments of a mixture of experts, up to the weights."""
    gate, up = (nvfp4.stack([nvfp4.quantize(torch.ones(between, K)) for _ in range(GROUPS)]) for _ in range(2))
    down = nvfp4.Weights(nvfp4.stack([nvfp4.quantize(torch.ones(K, between)) for _ in range(GROUPS)]))
    # As on a GPU, where rows are filled up.
    down._padded = _cuda.padded(nvfp4.stack([nvfp4.quantize(torch.ones(K, between)) for _ in range(GROUPS)]))
    ids = torch.zeros(7, 2, dtype=torch.int32)
    return tokens(dtype=dtype), ids, torch.ones(7, 2), gate, up, down


def test_the_kernels_of_a_mixture_are_loaded_together_before_its_first_product(gpu, monkeypatch):
    monkeypatch.setattr(_cuda_mixture, "is_hopper", lambda device: True)
    layer = mixture()
    for _ in range(2):
        _routed.moe(*layer, None, "bfloat16")
    products = ["enqueue_routed", "enqueue_routed", "enqueue_combine"]
    names = [name for name, *_ in gpu.calls]
    assert names == ["enqueue_arrange", "load", *products, "enqueue_arrange", *products]
    [loaded] = gpu.calls[1][1:]
    asked = [(call[3], call[4], call[5], call[8], True) for call in gpu.calls[2:4]]
    for (k, first, second, formats, is_routed), wanted in zip(loaded, asked, strict=True):
        # Gate and up are of one shape and differ in their tensor scales, which no kernel depends on.
        assert (k, first, second is None, formats, is_routed) == (*wanted[:2], wanted[2] is None, *wanted[3:])
    # Other tokens have other kernels.
    _routed.moe(*mixture(dtype=torch.float16), None, "bfloat16")
    assert [name for name, *_ in gpu.calls].count("load") == 2


def test_kernels_that_could_not_be_loaded_are_loaded_at_the_next_call(gpu, monkeypatch):
    x, _, _, *experts = mixture()

    def refused(products):
        raise RuntimeError("no compiler")

    gpu.load = refused
    with pytest.raises(RuntimeError, match="no compiler"):
        _cuda.load_mixture(x, *experts)
    del gpu.load
    _cuda.load_mixture(x, *experts)
    assert [name for name, *_ in gpu.calls] == ["load"]


def test_products_name_what_does_not_fit_a_mixture(gpu):
    x, _, _, gate, up, down = mixture()
    for refused in ((x.float(), gate, up, down), (x, gate.values, up, down), (x, gate, nvfp4.quantize(torch.ones(16, 16)), down)):
        _cuda.load_mixture(*refused)
    assert gpu.calls == []


def test_few_comparisons_leave_what_does_not_fit_to_the_words(gpu):
    x, weights, fitting = tokens(), stack(), [1, 0, 6]
    for refused in (
        (x.float(), weights, None, fitting, None, None),
        (x[:, : K // 2], weights, None, fitting, None, None),
        (x.view(7, 1, K), weights, None, fitting, None, None),
        (x.T.contiguous().T, weights, None, fitting, None, None),
        (x.to("meta"), weights, None, fitting, None, None),
        (x, weights, nvfp4.quantize(torch.ones(N, K)), fitting, None, None),
        (x, weights, torch.ones(N, K), fitting, None, None),
        (x, weights.values, None, fitting, None, None),
        (x, weights, None, None, None, None),
        (x, weights, None, [1, 6], None, None),
        (x, weights, None, [1, 0, 5], None, None),
        (x, weights, None, [2, -1, 6], None, None),
        (x, weights, None, [1.5, 0, 5.5], None, None),
        (x, weights, None, torch.tensor(fitting), None, None),
        (x, weights, None, fitting, OFFS, None),
        (x, weights, None, None, OFFS.long(), None),
        (x, weights, None, None, OFFS[:2], None),
        (x, weights, None, None, OFFS.tolist(), None),
        (x, weights, None, fitting, None, torch.float64),
        (x, weights, None, fitting, None, "float16"),
    ):
        assert _cuda.quick(*refused) is None
    assert gpu.calls == []
