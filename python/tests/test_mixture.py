"""Mixtures of experts on PyTorch tensors: on the CPU, and on a GPU of the Hopper generation."""

import pytest

torch = pytest.importorskip("torch")

from messages import error  # noqa: E402
from tensors import DEVICES, drawn, needs_hopper  # noqa: E402

from gauntlet import nvfp4  # noqa: E402


def mixture(dtype):
    """The arguments of a layer of six experts, two a token, and its result by the definition."""
    gate, up = (nvfp4.stack([nvfp4.quantize(drawn(64, 96, seed=seed) / 8) for seed in seeds]) for seeds in (range(6), range(6, 12)))
    down = nvfp4.stack([nvfp4.quantize(drawn(96, 64, seed=seed) / 8) for seed in range(12, 18)])
    hidden = drawn(11, 96, seed=20).to(dtype)
    weights, ids = torch.softmax(drawn(11, 6, seed=21), -1).topk(2)
    expected = torch.zeros(11, 96, dtype=torch.float64)
    g, u, d = (nvfp4.dequantize(one, torch.float64) for one in (gate, up, down))
    for token in range(11):
        for weight, expert in zip(weights[token], ids[token]):
            x = hidden[token].double()
            between = torch.nn.functional.silu(x @ g[expert].T) * (x @ u[expert].T)
            expected[token] += weight.double() * (between.to(dtype).double() @ d[expert].T)
    return (hidden, ids, weights, gate, up, down), expected


def activated(gate, up, activation="silu", alpha=1.0, beta=0.0, limit=None):
    """The definition of the activations, in the type of the sums."""
    if limit is not None:
        gate, up = torch.minimum(gate, torch.tensor(limit)), up.clip(-limit, limit)
    functions = {
        "silu": lambda: gate / (1 + torch.exp(-alpha * gate)),
        "gelu": lambda: gate * (1 + torch.erf(gate / 2**0.5)) / 2,
        "gelu_tanh": lambda: gate * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (gate + 0.044715 * gate**3))) / 2,
        "relu2": lambda: torch.where(gate > 0, gate**2, 0),
    }
    return functions[activation]() * (up + beta)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "options",
    [{"activation": "gelu"}, {"activation": "gelu_tanh"}, {"activation": "relu2", "limit": 0.5}, {"alpha": 1.702, "beta": 1.0, "limit": 0.4}, {}],
)
def test_a_mixture_has_other_activations_and_biases(options, device):
    (hidden, ids, weights, gate, up, down), _ = mixture(torch.float16)
    biases = {name: drawn(6, width, seed=seed) / 4 for seed, (name, width) in enumerate({"gate_bias": 64, "up_bias": 64, "down_bias": 96}.items())}
    expected = torch.zeros(11, 96, dtype=torch.float64)
    g, u, d = (nvfp4.dequantize(one, torch.float64) for one in (gate, up, down))
    for token in range(11):
        for weight, expert in zip(weights[token], ids[token]):
            x = hidden[token].double()
            sums = (x @ g[expert].T + biases["gate_bias"][expert], x @ u[expert].T + biases["up_bias"][expert])
            between = activated(*sums, **options).half().double()
            expected[token] += weight.double() * (between @ d[expert].T + biases["down_bias"][expert])
    matrices = [nvfp4.Weights(one.to(device)) for one in (gate, up, down)]
    arrays = [one.to(device) for one in (hidden, ids, weights)]
    named = {name: bias.to(device) for name, bias in biases.items()}
    found = nvfp4.moe(*arrays, *matrices, **named, **options, out_dtype=torch.float32)
    torch.testing.assert_close(found.cpu().double(), expected, rtol=2e-3, atol=1e-3)


def test_an_unknown_activation_is_refused_with_those_that_there_are():
    layer, _ = mixture(torch.float16)
    assert [
        error(lambda: nvfp4.moe(*layer, activation="swish"), ValueError),
        error(lambda: nvfp4.moe(*layer, activation="gelu", alpha=2.0), ValueError),
        error(lambda: nvfp4.moe(*layer, limit=0.0), ValueError),
        error(lambda: nvfp4.moe(*layer, down_bias=torch.zeros(6, 95)), ValueError),
        error(lambda: nvfp4.moe(layer[0], layer[1] + 5, *layer[2:], activation="gelu"), ValueError)[-40:],
        error(lambda: nvfp4.moe(*layer, activation="gelu", expert_map=torch.arange(1, 7)), ValueError),
    ] == [
        "activation: 'swish' is not known; use silu, gelu, gelu_tanh, relu2",
        "alpha: it belongs to silu, and the activation is gelu; leave it out",
        "limit: it is 0.0; give a positive number, or None for no limit",
        "down_bias: its shape is (6, 95); it must be (6, 96)",
        "there are 6 experts; give 0 to 5, or -1 for none"[-40:],
        "expert_map: an expert is at 6, and 6 are given; give 0 to 5, or -1",
    ]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_a_mixture_of_experts_follows_the_definition(dtype):
    from gauntlet.nvfp4 import _routed

    layer, expected = mixture(dtype)
    exact = nvfp4.moe(*layer, out_dtype=torch.float32)
    torch.testing.assert_close(exact.double(), expected, rtol=2e-3, atol=1e-3)
    rounded = nvfp4.moe(*layer)
    assert rounded.dtype == dtype and torch.equal(rounded, exact.to(dtype))
    prepared = [nvfp4.Weights(one) for one in layer[3:]]
    assert torch.equal(nvfp4.moe(*layer[:3], *prepared, out_dtype=torch.float32), exact)
    # What runs on a GPU, here on the CPU.
    routed = _routed.moe(*layer, None, "float32")
    torch.testing.assert_close(routed, exact, rtol=1e-5, atol=1e-6)


OPTIONS = {"native": {}, "routed": {"activation": "gelu"}}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("places", [None, [3, -1, 0, 1, 2, -1]])
def test_padding_adds_nothing(device, options, places):
    """Engines pad the experts of a token with -1."""
    (hidden, ids, weights, *experts), _ = mixture(torch.float16)
    ids[0, 1] = ids[4, 0] = -1
    ids[7] = -1
    # The same without padding: another expert, by no weight.
    plain, none = ids.clamp(min=0), weights.masked_fill(ids < 0, 0.0)
    ranks = {} if places is None else {"expert_map": torch.tensor(places, device=device)}
    experts = experts if places is None else [nvfp4.Tensor(one.values[:4], one.scales[:4], one.tensor_scale[:4]) for one in experts]
    on_device = [nvfp4.Weights(one.to(device)) for one in experts]
    found, expected = (
        nvfp4.moe(hidden.to(device), own.to(device), by.to(device), *on_device, **ranks, **options, out_dtype=torch.float32)
        for own, by in ((ids, weights), (plain, none))
    )
    torch.testing.assert_close(found, expected)
    assert not found[7].any() and found[4].any()


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_rows_behind_all_experts_are_not_read(options, monkeypatch):
    """Products leave the rows of padding undefined: NaN here, where a CPU has zeros."""
    from gauntlet.nvfp4 import _routed

    def spoilt(product):
        def spoil(*arguments, offs, **named):
            sums = product(*arguments, offs=offs, **named).clone()
            sums[int(offs[-1]) :] = torch.nan
            return sums

        return spoil

    (hidden, ids, weights, *experts), _ = mixture(torch.float16)
    ids[0, 1] = ids[4, 0] = -1
    ids[7] = -1
    activation = _routed.Activation.checked(options.get("activation", "silu"), 1.0, 0.0, None)
    arguments = (hidden, ids, weights, *experts, None, "float32", activation)
    expected = _routed.moe(*arguments)
    for name in ("grouped_mm", "swiglu_grouped_mm"):
        monkeypatch.setattr(_routed, name, spoilt(getattr(_routed, name)))
    torch.testing.assert_close(_routed.moe(*arguments), expected)


@pytest.mark.parametrize("wrong", [6, -2, 2**32, -(2**63)])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_an_id_that_stands_for_no_expert_is_an_error(wrong, options):
    from gauntlet.nvfp4 import _routed

    (hidden, ids, *others), _ = mixture(torch.float16)
    expected = _routed.moe(hidden, ids, *others, None, "float32")
    ids[3, 1] = wrong
    for places in ({}, {"expert_map": torch.arange(6)}):
        said = error(lambda: nvfp4.moe(hidden, ids, *others, **places, **options), ValueError)
        assert f"{wrong} of token 3" in said and "give 0 to 5, or -1 for none" in said, said
    # A GPU, whose steps run here on the CPU, cannot raise an error without a wait.
    for places in (None, torch.arange(6)):
        found = _routed.moe(hidden, ids, *others, places, "float32")
        assert found[3].isnan().all()
        assert torch.equal(torch.cat([found[:3], found[4:]]), torch.cat([expected[:3], expected[4:]]))


def test_the_experts_of_all_ranks_add_up():
    from gauntlet.nvfp4 import _routed

    (hidden, ids, weights, *experts), _ = mixture(torch.float32)
    whole = nvfp4.moe(hidden, ids, weights, *experts)
    sums, routed = torch.zeros_like(whole), torch.zeros_like(whole)
    for rank in range(2):
        places = torch.tensor([at // 2 if at % 2 == rank else -1 for at in range(6)])
        own = [nvfp4.Tensor(one.values[rank::2].contiguous(), one.scales[rank::2].contiguous(), one.tensor_scale[rank::2]) for one in experts]
        sums += nvfp4.moe(hidden, ids, weights, *own, expert_map=places)
        routed += _routed.moe(hidden, ids, weights, *own, places, "float32")
    torch.testing.assert_close(sums, whole, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(routed, whole, rtol=1e-5, atol=1e-6)


@needs_hopper
class TestOnHopper:
    """The same layers on a GPU."""

    def test_a_mixture_agrees_with_the_cpu(self):
        layer, _ = mixture(torch.bfloat16)
        expected = nvfp4.moe(*layer, out_dtype=torch.float32)
        # Rows of 96 values are filled up for a GPU.
        on_gpu = [nvfp4.Weights(one.to("cuda")) if isinstance(one, nvfp4.Tensor) else one.to("cuda") for one in layer]
        found = nvfp4.moe(*on_gpu, out_dtype=torch.float32)
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-2, atol=1e-2)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_kernels_around_the_products_agree_with_operators(self, dtype, monkeypatch):
        from gauntlet.nvfp4 import _cuda_mixture

        takes, taken = _cuda_mixture.takes, []

        def both(*layer, **options):
            found = nvfp4.moe(*layer, **options)
            assert taken.pop()
            monkeypatch.setattr(_cuda_mixture, "takes", lambda *sizes: False)
            expected = nvfp4.moe(*layer, **options)
            monkeypatch.setattr(_cuda_mixture, "takes", spy)
            assert found.dtype == expected.dtype
            # Both round once to the type of the result, and may differ in the last bit.
            rounding = torch.finfo(found.dtype).eps
            about = str((layer[1].shape, options))
            torch.testing.assert_close(found, expected, rtol=rounding, atol=4 * rounding, equal_nan=True, msg=about)

        def spy(*sizes):
            taken.append(takes(*sizes))
            return taken[-1]

        monkeypatch.setattr(_cuda_mixture, "takes", spy)
        generator = torch.Generator().manual_seed(17)
        matrices = [nvfp4.Weights(one.to("cuda")) for one in mixture(dtype)[0][3:]]
        biases = {name: drawn(6, width, seed=7).to("cuda") for name, width in {"gate_bias": 64, "up_bias": 64, "down_bias": 96}.items()}
        for turn, tokens in enumerate([1, 2, 5, 8, 40, 130, 300, 2000, 5000]):
            count = 1 + (turn + 7) % 8
            hidden = drawn(tokens, 96, seed=turn).to("cuda", dtype)
            weights = torch.rand(tokens, count, generator=generator).to("cuda", [torch.float32, dtype][turn % 2])
            # Some ids are padding, and some stand for no expert.
            ids = torch.randint(-1, 7, (tokens, count), generator=generator).to("cuda", [torch.int32, torch.int64][turn // 2 % 2])
            layer = hidden, ids, weights, *matrices
            for out_dtype in (None, torch.float32, torch.float16):
                both(*layer, out_dtype=out_dtype)
            both(hidden, torch.full_like(ids, 3), weights, *matrices)
            places = torch.tensor([-1, 4, 0, -1, 2, 5, 3, 6, 1], dtype=[torch.int64, torch.int32][turn % 2], device="cuda")
            both(hidden, (ids + 10) % 11 - 1, weights, *matrices, expert_map=places)
            both(*layer, **biases, alpha=1.702, beta=1.0, limit=7.0)
        # More slots than the kernels take.
        assert not takes(hidden, ids[:1, :1].expand(131073, 8), 6)

    def test_many_tokens_are_computed_in_parts(self, monkeypatch):
        from gauntlet.nvfp4 import _routed

        (hidden, ids, weights, *experts), _ = mixture(torch.bfloat16)
        layer = [one.to("cuda") for one in (hidden, ids, weights)] + [nvfp4.Weights(one.to("cuda")) for one in experts]
        expected = nvfp4.moe(*layer, out_dtype=torch.float32)
        monkeypatch.setattr(_routed, "_MOST_BYTES", 4 * (96 * 6 + 64 * 2) * ids.shape[1])
        found = nvfp4.moe(*layer, out_dtype=torch.float32)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)

    def test_a_mixture_is_captured_that_was_never_made_before(self):
        (hidden, ids, weights, *experts), _ = mixture(torch.bfloat16)
        matrices = [nvfp4.Weights(one.to("cuda")) for one in experts]
        hidden, ids, weights = (one.to("cuda") for one in (hidden, ids, weights))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = nvfp4.moe(hidden, ids, weights, *matrices)
        for shift in range(3):
            ids.copy_((ids + shift) % 6)
            graph.replay()
            assert torch.equal(found, nvfp4.moe(hidden, ids, weights, *matrices))
