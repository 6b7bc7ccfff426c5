"""NVFP4 modules in models of transformers, on the CPU: random models of two layers, small enough for seconds."""

import copy
import functools
import gc
import math

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
pytest.importorskip("transformers", minversion="5", reason="transformers 5 is not installed: pip install transformers")

from safetensors.torch import load_file, save_file  # noqa: E402  (transformers needs it)
from small_models import KINDS, SIZES, logits, model, rms, tokens  # noqa: E402
from tensors import drawn  # noqa: E402

from gauntlet import nvfp4  # noqa: E402
from gauntlet.nvfp4 import _layer_ops, modules  # noqa: E402

UNIT = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}
"""The largest relative error of one rounding to nearest."""


def dequantised(plain, converted):
    """The model with the values of the NVFP4 weights in its own modules."""
    plain = copy.deepcopy(plain)
    own = dict(plain.named_modules())
    with torch.no_grad():
        for name, module in converted.named_modules():
            if isinstance(module, modules.Linear):
                own[name].weight.copy_(nvfp4.dequantize(module.packed()))
            elif isinstance(module, modules.Experts):
                gate, up, down = (nvfp4.dequantize(one.packed()) for one in (module.gate_proj, module.up_proj, module.down_proj))
                own[name].gate_up_proj.copy_(torch.cat([gate, up], 1))
                own[name].down_proj.copy_(down)
    return plain


@functools.cache
def made(kind):
    """A converted model, and the same values in PyTorch's modules. Tests that change a model copy it."""
    plain = model(kind)
    converted = nvfp4.convert(copy.deepcopy(plain))
    return converted, dequantised(plain, converted)


@pytest.mark.parametrize(("change", "words"), [
    (lambda layer: layer.register_buffer("pre_quant_scale", torch.ones(64)), "the tensor `pre_quant_scale`"),
    (lambda layer: layer.register_forward_pre_hook(lambda module, inputs: (inputs[0] * 2,)), "a hook"),
    (lambda layer: layer.register_forward_hook(lambda module, inputs, output: output * 2), "a hook"),
    (lambda layer: setattr(layer, "forward", lambda x: x), "a `forward` of its own"),
])
def test_a_layer_that_computes_more_is_not_replaced_without_a_word(change, words):
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Linear(32, 16))
    change(model[0])
    with pytest.raises(ValueError, match=rf"^0: Linear has {words}, which would be lost .* exclude=\['0', …\]"):
        nvfp4.convert(model, exclude=[])
    assert isinstance(nvfp4.convert(model, exclude=["0"])[1], modules.Linear)


def test_the_layers_are_replaced_and_nothing_else():
    for kind, dense, mixtures in (("llama", 14, 0), ("qwen3_moe", 8, 2)):
        converted, _ = made(kind)
        assert sum(isinstance(module, modules.Linear) for module in converted.modules()) == dense
        assert sum(isinstance(module, modules.Experts) for module in converted.modules()) == mixtures
        assert type(converted.lm_head) is torch.nn.Linear
    router = converted.model.layers[0].mlp.gate
    assert router.weight.dtype == torch.float32 and router.weight.shape == (8, 256)
    weight = converted.model.layers[0].self_attn.q_proj
    original = model("qwen3_moe").model.layers[0].self_attn.q_proj.weight.detach()
    assert torch.equal(weight.packed().values, nvfp4.quantize(original).values)
    assert weight.packed().tensor_scale == nvfp4.quantize(original).tensor_scale


# Both models multiply the same values, and differ in rounding only: in the order of float32 sums and in the product of a
# float32 token with a weight. A sum of K terms has a relative error of about sqrt(K) units (Higham and Mary 2019; the worst
# case, K units of the sum of magnitudes, is not reached by errors of both signs). RMSNorm gives a relative error on as it is,
# and the residual sums do not increase it, so at first order the errors of the products that follow one another add up: the
# four of each layer, and the last. Each of both models has them.
PRODUCTS = 4 * SIZES["num_hidden_layers"] + 1
ALLOWED = 2 * PRODUCTS * math.sqrt(SIZES["intermediate_size"]) * UNIT[torch.float32]


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_the_dequantised_weights(kind):
    converted, plain = made(kind)
    found, expected = logits(converted), logits(plain)
    exact = logits(copy.deepcopy(plain).double())
    scale = rms(exact)
    for other in (expected, exact):
        assert rms(found - other) <= ALLOWED * scale
        # Of so few numbers none is five times the root mean square, if errors are normal: 6,144 logits.
        assert (found - other).abs().max() <= 5 * ALLOWED * scale
    # The bound is well below what another error would do: that of quantising, or of 16-bit sums.
    assert rms(logits(model(kind)) - exact) > 100 * ALLOWED * scale


def test_a_bfloat16_model_rounds_as_often_as_pytorchs():
    converted, plain = made("llama")
    # Operations with a rounding of their own in a layer: norm 2, rotation 2, attention 2, seven products, silu, their product
    # and two residual sums; then the last norm and product. Errors of both signs add up as their squares do, and the mean
    # square of one is a third of the largest.
    roundings = 17 * SIZES["num_hidden_layers"] + 3
    found, expected = (logits(copy.deepcopy(one).to(torch.bfloat16)) for one in (converted, plain))
    assert found.dtype == torch.bfloat16
    allowed = math.sqrt(2 * roundings / 3) * UNIT[torch.bfloat16]
    assert rms(found.double() - expected.double()) <= allowed * rms(expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_linear_layer_errs_within_its_bound(dtype):
    k = 512
    x, weight = drawn(7, k).to(dtype), nvfp4.quantize(drawn(96, k, seed=2))
    layer = modules.Linear(k, 96, drawn(96, seed=3).to(dtype))
    layer.fill(weight)
    exact_weight, bias = nvfp4.dequantize(weight, torch.float64), layer.bias.double()
    exact = x.double() @ exact_weight.T + bias
    magnitudes = x.double().abs() @ exact_weight.abs().T + bias.abs()
    # k products and k sums in float32, the tensor scale, the bias; then one rounding to the type.
    bound = (k + 4) * UNIT[torch.float32] * magnitudes + UNIT[dtype] * exact.abs() * 1.001
    found = layer(x)
    assert found.dtype == dtype and found.shape == (7, 96)
    assert ((found.double() - exact).abs() <= bound).all()


def test_experts_give_the_bits_of_the_function():
    converted, _ = made("qwen3_moe")
    experts = converted.model.layers[0].mlp.experts
    hidden = drawn(5, 256).bfloat16()
    weights, ids = torch.softmax(drawn(5, 8, seed=2), -1).topk(2)
    packed = [one.packed() for one in (experts.gate_proj, experts.up_proj, experts.down_proj)]
    assert torch.equal(experts(hidden, ids, weights), nvfp4.moe(hidden, ids, weights, *packed))
    assert experts(hidden[:0], ids[:0], weights[:0]).shape == (0, 256)


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_generated_with_the_cache(kind):
    converted, plain = made(kind)
    prompt = tokens(8)[:1]
    how = {"attention_mask": torch.ones_like(prompt), "max_new_tokens": 16, "do_sample": False, "use_cache": True}
    found = converted.generate(prompt, **how)
    assert found.shape == (1, 24)
    assert torch.equal(found, plain.generate(prompt, **how))
    # Without the cache: the most likely token after each beginning.
    assert torch.equal(logits(converted, found)[0, 7:-1].argmax(-1), found[0, 8:])


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_is_saved_and_loaded(kind, tmp_path):
    converted, _ = made(kind)
    save_file(converted.state_dict(), tmp_path / "model.safetensors")
    other = nvfp4.convert(model(kind, seed=2))
    assert not torch.equal(logits(other), logits(converted))
    other.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert torch.equal(logits(other), logits(converted))
    assert torch.equal(logits(copy.deepcopy(converted)), logits(converted))
    # The layers of a dense model have ModelOpt's names.
    if kind == "llama":
        layer = nvfp4.load(tmp_path, "model.layers.0.mlp.up_proj")
        assert torch.equal(torch.from_numpy(layer.values), converted.model.layers[0].mlp.up_proj.weight)


@pytest.mark.parametrize("change", [
    lambda one: one.to(torch.bfloat16), lambda one: one.half(), lambda one: one.double().float(), lambda one: one.to("cpu", torch.float16)
])
def test_packed_buffers_keep_their_types(change):
    converted, _ = made("qwen3_moe")
    changed = change(copy.deepcopy(converted))
    for name, buffer in converted.named_buffers():
        found = changed.get_buffer(name)
        if name.rpartition(".")[2] in ("weight", "weight_scale", "weight_scale_2"):
            assert found.dtype == buffer.dtype, name
            assert torch.equal(found.float(), buffer.float()), name
    assert changed.model.embed_tokens.weight.dtype == changed.lm_head.weight.dtype != torch.uint8
    assert torch.isfinite(logits(changed)).all()


def test_weights_are_prepared_once_and_again_when_they_change(monkeypatch):
    prepared = []
    monkeypatch.setattr(_layer_ops, "Weights", lambda tensor: prepared.append(tensor) or nvfp4.Weights(tensor))
    x, one, two = drawn(3, 64), nvfp4.quantize(drawn(32, 64)), nvfp4.quantize(drawn(32, 64, seed=2))
    layer = modules.Linear(64, 32)
    layer.fill(one)
    first = layer(x)
    assert torch.equal(layer(x), first) and len(prepared) == 1
    with torch.inference_mode():
        assert torch.equal(layer(x), first) and len(prepared) == 1
    layer.fill(two)
    assert torch.equal(layer(x), nvfp4.linear(x, two)) and len(prepared) == 2
    layer.weight_scale_2 = layer.weight_scale_2 * 2
    assert torch.equal(layer(x), nvfp4.linear(x, two) * 2) and len(prepared) == 3
    assert layer.weight in _layer_ops._prepared
    prepared.clear()
    gc.collect()
    count = len(_layer_ops._prepared)
    del layer
    gc.collect()
    assert len(_layer_ops._prepared) == count - 1


def test_the_operators_pass_pytorchs_own_checks():
    converted, _ = made("qwen3_moe")
    block = converted.model.layers[0]

    def parts(packed):
        # PyTorch's check multiplies every operand, which it cannot do with float8.
        return packed.weight, packed.weight_scale.view(torch.uint8), packed.weight_scale_2

    arguments = (drawn(2, 3, 256), *parts(block.self_attn.q_proj), drawn(256, seed=2))
    torch.library.opcheck(torch.ops.gauntlet.linear.default, arguments)
    experts = block.mlp.experts
    weights, ids = torch.softmax(drawn(5, 8, seed=2), -1).topk(2)
    stacks = (*parts(experts.gate_proj), *parts(experts.up_proj), *parts(experts.down_proj))
    torch.library.opcheck(torch.ops.gauntlet.moe.default, (drawn(5, 256), ids, weights, *stacks))


@pytest.mark.parametrize("kind", KINDS)
def test_a_compiled_block_has_the_operators_in_one_graph(kind):
    block = made(kind)[0].model.layers[0].mlp
    x = drawn(1, 5, 256)
    with torch.no_grad():
        assert torch.equal(torch.compile(block, fullgraph=True, backend="aot_eager")(x), block(x))


def test_what_cannot_be_converted_is_named():
    with pytest.raises(TypeError, match="model: it is a list; nvfp4.convert takes a torch.nn.Module"):
        nvfp4.convert([])
    with pytest.raises(ValueError, match="model: ReLU has no linear layer"):
        nvfp4.convert(torch.nn.ReLU())
    odd = torch.nn.Sequential(torch.nn.Linear(24, 8), torch.nn.Linear(16, 8, bias=True))
    with pytest.raises(ValueError, match=r"0: 24 columns: one scale covers 16 values.*exclude=\['0'"):
        nvfp4.convert(odd)
    assert type(odd[1]) is torch.nn.Linear
    converted = nvfp4.convert(odd, exclude=["0"])
    assert type(converted[0]) is torch.nn.Linear and converted[1].bias is not None
    assert isinstance(nvfp4.convert(torch.nn.Linear(16, 8)), modules.Linear)
    with pytest.raises(ValueError, match="its weights are on meta"):
        nvfp4.convert(torch.nn.Linear(16, 8, device="meta"))
    other = model("qwen3_moe")
    other.model.layers[1].mlp.experts.is_transposed = True
    with pytest.raises(ValueError, match=r"model.layers.1.mlp.experts: Qwen3MoeExperts has is_transposed=True"):
        nvfp4.convert(other)
    assert type(nvfp4.convert(other, exclude=["lm_head", "*.1.mlp.experts"]).model.layers[1].mlp.experts).__name__ == "Qwen3MoeExperts"


def test_names_exclude_what_is_below_them():
    from gauntlet.nvfp4._exclusions import is_excluded

    for name, patterns, is_out in (
        ("lm_head", ["lm_head"], True),
        ("model.lm_head", ["lm_head"], False),
        ("model.layers.1.self_attn.q_proj", ["model.layers.1"], True),
        ("model.layers.11.self_attn.q_proj", ["model.layers.1"], False),
        ("model.layers.3.mlp.gate", ["*.gate"], True),
        ("model.layers.3.mlp.gate_proj", ["*.gate"], False),
        ("model.layers.3.mlp.gate", ["re:.*gate$"], True),
        ("model.layers.3.mlp.gate_proj", ["re:.*gate$"], False),
        ("model.layers.3.mlp", [], False),
    ):
        assert is_excluded(name, patterns) == is_out, (name, patterns)
