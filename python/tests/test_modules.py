"""NVFP4 modules in models of transformers, on the CPU: random models of two layers, small enough for seconds."""

import copy
import functools
import gc
import json
import math

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
transformers = pytest.importorskip("transformers", minversion="5", reason="transformers 5 is not installed: pip install transformers")

from safetensors.torch import save_file  # noqa: E402  (transformers needs it)

from gauntlet import nvfp4  # noqa: E402
from gauntlet.nvfp4 import _layer_ops, modules  # noqa: E402

SIZES = {
    "vocab_size": 128,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    # No text ends early.
    "eos_token_id": None,
    "pad_token_id": 0,
}
KINDS = ("llama", "qwen3_moe")

UNIT = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}
"""The largest relative error of one rounding to nearest."""


def config(kind):
    if kind == "llama":
        return transformers.LlamaConfig(**SIZES)
    experts = {"moe_intermediate_size": 128, "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": True}
    # PyTorch's grouped products do not take float64, which the reference is computed in.
    return transformers.Qwen3MoeConfig(**SIZES, **experts, head_dim=64, experts_implementation="eager")


def model(kind, seed=1):
    torch.manual_seed(seed)
    classes = {"llama": transformers.LlamaForCausalLM, "qwen3_moe": transformers.Qwen3MoeForCausalLM}
    return classes[kind](config(kind)).eval()


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


def tokens(length=24):
    return torch.randint(0, SIZES["vocab_size"], (2, length), generator=torch.Generator().manual_seed(3))


def logits(model, ids=None):
    with torch.no_grad():
        return model(tokens() if ids is None else ids).logits


def rms(values):
    return values.double().pow(2).mean().sqrt().item()


def drawn(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


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
    from safetensors.torch import load_file

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


def stored_weight(layout, name, packed, rounded):
    """A layer's tensors as a quantiser writes them. `rounded` gets the scale that the reader finds."""
    scale = torch.tensor(packed.tensor_scale, dtype=torch.float32)
    scales = packed.scales.contiguous()
    if layout == "modelopt":
        rounded(scale)
        return {
            f"{name}.weight": packed.values.contiguous(),
            f"{name}.weight_scale": scales,
            f"{name}.weight_scale_2": scale,
            f"{name}.input_scale": torch.tensor(0.01),
        }
    divisor = (1 / scale.double()).float()
    rounded((1 / divisor.double()).float())
    return {
        f"{name}.weight_packed": packed.values.contiguous(),
        f"{name}.weight_scale": scales,
        f"{name}.weight_global_scale": divisor.reshape(1),
        f"{name}.input_global_scale": torch.tensor([100.0]),
    }


def stored_experts(layout, name, experts):
    found = {}
    for matrix in ("gate_proj", "up_proj", "down_proj"):
        own = getattr(experts, matrix)
        for expert in range(experts.num_experts):
            packed = nvfp4.Tensor(own.weight[expert], own.weight_scale[expert], own.weight_scale_2[expert].item())
            place = functools.partial(own.weight_scale_2.__setitem__, expert)
            found |= stored_weight(layout, f"{name}.{expert}.{matrix}", packed, place)
    return found


KEPT = "model.layers.1.self_attn"
SETTINGS = {
    "modelopt": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "ignore": ["lm_head", f"{KEPT}*"]},
    "compressed-tensors": {
        "quant_method": "compressed-tensors",
        "format": "nvfp4-pack-quantized",
        "ignore": ["lm_head", f"re:{KEPT}.*"],
        "config_groups": {
            "group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "group_size": 16, "strategy": "tensor_group"}}
        },
    },
}


def checkpoint(kind, layout, folder, change=lambda tensors, settings: None):
    """Writes a checkpoint in two files with an index, and returns the model of its values, by `convert`. Tensors and settings may
    be changed before."""
    converted = nvfp4.convert(model(kind), exclude=["lm_head", KEPT])
    tensors = {}
    for name, module in converted.named_modules():
        if isinstance(module, modules.Linear):
            tensors |= stored_weight(layout, name, module.packed(), module.weight_scale_2.copy_)
        elif isinstance(module, modules.Experts):
            tensors |= stored_experts(layout, name, module)
    packed = {name for name, module in converted.named_modules() if isinstance(module, modules.PackedWeights)}
    for name, tensor in converted.state_dict().items():
        if name.rpartition(".")[0] not in packed:
            tensors[name] = tensor.to(torch.bfloat16)
            tensor.copy_(tensors[name])
    settings = copy.deepcopy(SETTINGS[layout])
    change(tensors, settings)
    folder.mkdir(exist_ok=True)
    names = sorted(tensors)
    index = {}
    for number, own in enumerate((names[::2], names[1::2]), start=1):
        save_file({name: tensors[name] for name in own}, folder / f"model-{number}.safetensors")
        index |= dict.fromkeys(own, f"model-{number}.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    (folder / "config.json").write_text(json.dumps({**config(kind).to_dict(), "quantization_config": settings}))
    return converted


@pytest.mark.parametrize("layout", SETTINGS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("error")
def test_a_checkpoint_gives_the_logits_of_its_values(kind, layout, tmp_path):
    expected = logits(checkpoint(kind, layout, tmp_path))
    other = model(kind, seed=2)
    found = nvfp4.load_checkpoint(other, tmp_path)
    assert found is other and torch.equal(logits(found), expected)
    assert type(found.lm_head) is torch.nn.Linear and type(found.get_submodule(KEPT).q_proj) is torch.nn.Linear
    assert isinstance(found.model.layers[0].self_attn.q_proj, modules.Linear)
    # Once more into the same model, and into one that was converted before.
    assert torch.equal(logits(nvfp4.load_checkpoint(found, tmp_path)), expected)
    again = nvfp4.convert(model(kind, seed=3), exclude=["lm_head", KEPT])
    assert torch.equal(logits(nvfp4.load_checkpoint(again, tmp_path)), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_without_memory_is_filled(kind, tmp_path):
    expected = logits(checkpoint(kind, "modelopt", tmp_path))
    own = transformers.AutoConfig.from_pretrained(tmp_path)
    with torch.device("meta"):
        other = transformers.AutoModelForCausalLM.from_config(own, dtype=torch.float32).eval()
    with pytest.raises(ValueError, match="`model.rotary_emb.inv_freq` is on meta and no checkpoint stores it"):
        nvfp4.load_checkpoint(other, tmp_path)
    other.model.rotary_emb = type(other.model.rotary_emb)(own)
    assert torch.equal(logits(nvfp4.load_checkpoint(other, tmp_path)), expected)


def test_experts_may_be_left_out_of_quantisation(tmp_path):
    expected = model("qwen3_moe")
    tensors = expected.state_dict()
    for name in [name for name in tensors if ".experts." in name]:
        stack, layer = tensors.pop(name), name.rpartition(".")[0]
        for expert, matrix in enumerate(stack):
            halves = {"gate_proj": matrix[:128], "up_proj": matrix[128:]} if "gate_up" in name else {"down_proj": matrix}
            tensors |= {f"{layer}.{expert}.{own}.weight": half.contiguous() for own, half in halves.items()}
    save_file(tensors, tmp_path / "model.safetensors")
    found = nvfp4.load_checkpoint(model("qwen3_moe", seed=2), tmp_path)
    assert torch.equal(logits(found), logits(expected))


def removed(name):
    return lambda tensors, settings: tensors.pop(name)


def exchanged(name, change):
    return lambda tensors, settings: tensors.update({name: change(tensors[name])})


UP = "model.layers.0.mlp.up_proj"


def renamed(tensors, settings):
    tensors[f"{UP}.weight_global_scale"] = tensors.pop(f"{UP}.weight_scale_2")


def dropped_packed(tensors, settings):
    for name in [name for name in tensors if name.startswith(f"{UP}.")]:
        del tensors[name]
    tensors[f"{UP}.weight"] = torch.zeros(512, 256)


@pytest.mark.parametrize(("change", "words"), [
    (removed(f"{UP}.weight_scale_2"), [f"`{UP}.weight_scale_2` is missing", "export the checkpoint again"]),
    (removed(f"{UP}.weight_scale"), [f"`{UP}.weight_scale` is missing", "export the checkpoint again"]),
    (exchanged(f"{UP}.weight_scale", lambda scale: scale[:, :8].contiguous()),
     [f"`{UP}.weight_scale` is F8_E4M3 [512, 8]", "F8_E4M3 [512, 16]", "export the checkpoint again"]),
    (exchanged(f"{UP}.weight_scale_2", lambda scale: scale * float("nan")), [f"`{UP}.weight_scale_2` is NaN", "finite"]),
    (renamed, [f"`{UP}` has ", "no known NVFP4 layout", "ModelOpt", "compressed-tensors", "export the checkpoint again"]),
    (removed("model.norm.weight"), ["`model.norm.weight` is missing", "config.json"]),
    (exchanged("model.norm.weight", lambda norm: norm[:8].clone()), ["model-", "`model.norm.weight` is BF16 [8]", "[256]", "config.json"]),
    (exchanged("lm_head.weight", lambda head: head.to(torch.int8)), ["`lm_head.weight` is I8 [128, 256]", "torch.float32", "config.json"]),
    (lambda tensors, settings: tensors.update({f"{UP}.pre_quant_scale": torch.ones(256)}),
     [f"`{UP}.pre_quant_scale` changes what the layer computes", "without AWQ"]),
    (lambda tensors, settings: settings.update(quant_algo="FP8"),
     ["config.json: `quantization_config.quant_algo` is 'FP8'", "'NVFP4'", "quantise the model again"]),
    (lambda tensors, settings: settings.update(quant_method="gptq"), ["`quantization_config.quant_method` is 'gptq'"]),
    (lambda tensors, settings: settings.update(group_size=32), ["`quantization_config.group_size` is 32", "16"]),
    (lambda tensors, settings: settings["ignore"].append(UP), [f"`{UP}` is quantised, and the configuration excludes it", "`ignore`"]),
])
def test_what_is_wrong_with_a_checkpoint_is_named(change, words, tmp_path):
    checkpoint("llama", "modelopt", tmp_path, change)
    with pytest.raises(ValueError) as raised:
        nvfp4.load_checkpoint(model("llama"), tmp_path)
    said = str(raised.value)
    assert str(tmp_path) in said
    for word in words:
        assert word in said, said


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    checkpoint("llama", "modelopt", tmp_path)
    other = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**SIZES, "intermediate_size": 256}))
    with pytest.raises(ValueError, match=r"gate_proj` has a weight of shape \(512, 256\), and the model's is \(256, 256\); build"):
        nvfp4.load_checkpoint(other, tmp_path)
    with pytest.raises(ValueError, match=r"self_attn.q_proj` is not stored in NVFP4.*exclude=\['model.layers.1.self_attn.q_proj'"):
        nvfp4.load_checkpoint(nvfp4.convert(model("llama")), tmp_path)
    with pytest.warns(UserWarning, match=r"has no place for model.layers.1.input_layernorm.weight"):
        nvfp4.load_checkpoint(transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**SIZES, "num_hidden_layers": 1})), tmp_path)
    with pytest.raises(FileNotFoundError, match="holds no safetensors file"):
        nvfp4.load_checkpoint(model("llama"), tmp_path.parent / tmp_path.name / "..")
    (tmp_path / "model-2.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="the checkpoint's index names it"):
        nvfp4.load_checkpoint(model("llama"), tmp_path)


def test_an_expert_that_is_not_quantised_is_named(tmp_path):
    def change(tensors, settings):
        for suffix in ("weight", "weight_scale", "weight_scale_2", "input_scale"):
            del tensors[f"model.layers.0.mlp.experts.3.up_proj.{suffix}"]

    checkpoint("qwen3_moe", "modelopt", tmp_path, change)
    with pytest.raises(ValueError, match=r"`model.layers.0.mlp.experts.3.up_proj` is not stored in NVFP4, and .* all experts"):
        nvfp4.load_checkpoint(model("qwen3_moe"), tmp_path)


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
