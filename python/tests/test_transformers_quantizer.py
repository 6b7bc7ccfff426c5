"""NVFP4 models through `from_pretrained` of transformers, on the CPU."""

import functools
import importlib.util

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
transformers = pytest.importorskip("transformers", minversion="5.17", reason="transformers 5.17 is not installed: pip install transformers")

from small_models import KINDS, logits, model  # noqa: E402
from stored_models import KEPT, SETTINGS, checkpoint  # noqa: E402

from gauntlet import nvfp4  # noqa: E402
from gauntlet.engines.transformers import NvFp4Config, configuration  # noqa: E402
from gauntlet.nvfp4 import modules  # noqa: E402

MODEL = transformers.AutoModelForCausalLM
HAS_ACCELERATE = importlib.util.find_spec("accelerate") is not None


@pytest.mark.parametrize("layout", SETTINGS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("error::UserWarning")
def test_from_pretrained_gives_the_logits_of_the_checkpoint(kind, layout, tmp_path):
    expected = logits(checkpoint(kind, layout, tmp_path))
    found, said = MODEL.from_pretrained(
        tmp_path, config=configuration(tmp_path), dtype=torch.float32, output_loading_info=True
    )
    assert torch.equal(logits(found), expected)
    assert not said["missing_keys"] and not said["unexpected_keys"] and not said["mismatched_keys"]
    assert found.is_quantized and not found.training
    assert isinstance(found.model.layers[0].self_attn.q_proj, modules.Linear)
    assert type(found.get_submodule(KEPT).q_proj) is type(found.lm_head) is torch.nn.Linear
    # The state is complete: a model that is filled from it gives the same.
    again = nvfp4.convert(model(kind, seed=3), exclude=["lm_head", KEPT])
    again.load_state_dict(found.state_dict())
    assert torch.equal(logits(again), expected)


def test_the_model_has_the_type_that_is_asked_for(tmp_path):
    checkpoint("llama", "modelopt", tmp_path)
    found = MODEL.from_pretrained(tmp_path, config=configuration(tmp_path), dtype=torch.bfloat16)
    layer = found.model.layers[0].self_attn.q_proj
    assert layer.weight_scale.dtype == torch.float8_e4m3fn and found.lm_head.weight.dtype == torch.bfloat16
    assert logits(found).dtype == torch.bfloat16


@pytest.mark.skipif(not HAS_ACCELERATE, reason="accelerate is not installed: pip install accelerate")
def test_modules_go_where_the_map_says(tmp_path):
    expected = logits(checkpoint("llama", "modelopt", tmp_path))
    found = MODEL.from_pretrained(tmp_path, config=configuration(tmp_path), dtype=torch.float32, device_map={"": "cpu"})
    assert torch.equal(logits(found), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_other_models_are_quantised_once_they_are_loaded(kind, tmp_path):
    original = model(kind)
    original.save_pretrained(tmp_path)
    found = MODEL.from_pretrained(tmp_path, quantization_config=NvFp4Config(exclude=["lm_head", KEPT]), dtype=torch.float32)
    assert torch.equal(logits(found), logits(nvfp4.convert(original, exclude=["lm_head", KEPT])))


def test_other_quantisers_keep_their_checkpoints(tmp_path):
    """The quantiser is for those who name it."""
    from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING

    checkpoint("llama", "compressed-tensors", tmp_path)
    own = transformers.AutoConfig.from_pretrained(tmp_path)
    assert own.quantization_config["quant_method"] == "compressed-tensors"
    assert AUTO_QUANTIZER_MAPPING["compressed-tensors"].__module__.startswith("transformers")


def test_another_algorithm_is_refused_by_name(tmp_path):
    checkpoint("llama", "modelopt", tmp_path, lambda tensors, settings: settings.update(quant_algo="NVFP4_AWQ"))
    with pytest.raises(ValueError, match="`quantization_config.quant_algo` is 'NVFP4_AWQ'"):
        configuration(tmp_path)


def test_a_broken_layer_is_named(tmp_path):
    name = "model.layers.0.mlp.up_proj.weight_scale_2"
    checkpoint("llama", "modelopt", tmp_path, lambda tensors, settings: tensors.pop(name))
    load = functools.partial(MODEL.from_pretrained, tmp_path, config=configuration(tmp_path))
    with pytest.raises(ValueError, match=f"`{name}` is missing"):
        load()


def test_a_model_that_is_not_saved_says_so(tmp_path):
    checkpoint("llama", "modelopt", tmp_path)
    found = MODEL.from_pretrained(tmp_path, config=configuration(tmp_path))
    with pytest.raises(ValueError, match="gauntlet"):
        found.save_pretrained(tmp_path / "again")
