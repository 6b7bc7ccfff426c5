"""Models of transformers that are filled from NVFP4 checkpoints of both layouts, which are written here."""

import json

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
transformers = pytest.importorskip("transformers", minversion="5", reason="transformers 5 is not installed: pip install transformers")

from safetensors.torch import save_file  # noqa: E402  (transformers needs it)
from small_models import KINDS, SIZES, logits, model  # noqa: E402
from stored_models import KEPT, SETTINGS, checkpoint  # noqa: E402

from gauntlet import nvfp4  # noqa: E402
from gauntlet.nvfp4 import modules  # noqa: E402


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
    (lambda tensors, settings: settings.update(quant_algo="NVFP4_AWQ"), ["`quantization_config.quant_algo` is 'NVFP4_AWQ'"]),
    (exchanged(f"{UP}.weight_scale", lambda scale: torch.full_like(scale.view(torch.uint8), 0x7F).view(scale.dtype)),
     [f"`{UP}`", "row 0, block 0", "NaN"]),
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


@pytest.mark.filterwarnings("error")
def test_scales_of_the_other_layout_are_one_warning(tmp_path):
    def change(tensors, settings):
        for name in tensors:
            if name.endswith("weight_scale_2"):
                tensors[name] = 1 / tensors[name]

    checkpoint("llama", "modelopt", tmp_path, change)
    with pytest.warns(UserWarning, match=r"weights are as large as .* in model.layers.0.mlp.down_proj, .* 1 / found.tensor_scale.*`fill`") as warned:
        nvfp4.load_checkpoint(model("llama"), tmp_path)
    assert len(warned) == 1


def test_nan_scales_of_zeros_can_be_read_as_zero(tmp_path):
    def change(tensors, settings):
        tensors[f"{UP}.weight"][3, :8] = 0
        tensors[f"{UP}.weight_scale"].view(torch.uint8)[3, 0] = 0x7F

    checkpoint("llama", "modelopt", tmp_path, change)
    with pytest.raises(ValueError, match="`nan_scales_of_zeros` reads it as 0"):
        nvfp4.load_checkpoint(model("llama"), tmp_path)
    found = nvfp4.load_checkpoint(model("llama"), tmp_path, nan_scales_of_zeros=True).get_submodule(UP)
    assert found.weight_scale.view(torch.uint8)[3, 0] == 0


def test_a_layer_of_the_model_with_something_of_its_own_is_named(tmp_path):
    checkpoint("llama", "modelopt", tmp_path)
    other = model("llama")
    other.get_submodule(UP).register_buffer("pre_quant_scale", torch.ones(256))
    with pytest.raises(ValueError, match=f"model: `{UP}`: Linear has the tensor `pre_quant_scale`, which would be lost"):
        nvfp4.load_checkpoint(other, tmp_path)


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
