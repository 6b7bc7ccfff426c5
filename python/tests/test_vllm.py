"""The plugin for vLLM beside vLLM's own classes: registration, loading by its loader, and the logits of its models, on the CPU."""

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
# 2 GB with what it needs, so CI does not install it.
vllm = pytest.importorskip("vllm", minversion="0.33", reason="vLLM 0.33 is not installed: pip install vllm")

import vllm_model  # noqa: E402
from small_models import logits, rms, tokens  # noqa: E402
from stored_models import KEPT, SETTINGS, checkpoint  # noqa: E402

from gauntlet import nvfp4  # noqa: E402

ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM"}

BF16 = 0.02
"""The most that logits in bfloat16 differ from those in float32, by root mean squares: each of some 20 roundings is at most 2⁻⁹."""


@pytest.fixture(scope="module")
def plugin():
    vllm_model.on_cpu()
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    from gauntlet.engines import vllm as plugin

    # vLLM loads plugins once more in some processes.
    plugin.register()
    return plugin


@pytest.fixture(scope="module")
def configuration(plugin):
    from vllm.model_executor.layers.quantization import get_quantization_config

    return get_quantization_config("gauntlet")


@pytest.fixture
def state(tmp_path, plugin):
    """vLLM's state of a single process."""
    from vllm.config import VllmConfig
    from vllm.distributed import cleanup_dist_env_and_memory

    with vllm_model.context(VllmConfig(), 0, 1, tmp_path / "meeting"):
        yield
    cleanup_dist_env_and_memory()


def ranks(folder, tmp_path, count, **options):
    """What each of some ranks found."""
    results = [tmp_path / f"rank-{rank}.pt" for rank in range(count)]
    script = Path(__file__).parent / "kernels" / "vllm_model.py"
    running = [
        subprocess.Popen(
            [sys.executable, script, folder, str(rank), str(count), tmp_path / "meeting", result, json.dumps(options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank, result in enumerate(results)
    ]
    said = [process.communicate()[0] for process in running]
    assert all(process.returncode == 0 for process in running), said[0][-4000:]
    return [torch.load(result) for result in results]


def stored(kind, layout, folder, change=lambda tensors, settings: None):
    """As `checkpoint`, with the architecture that vLLM asks for."""
    made = checkpoint(kind, layout, folder, change)
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "architectures": [ARCHITECTURES[kind]]}))
    return made


def check_logits(found, model):
    expected = logits(model.float(), tokens(vllm_model.LENGTH))
    for own in (found["whole"], found["parts"]):
        assert rms(own.double() - expected) <= BF16 * rms(expected)


def test_vllm_finds_the_plugin(plugin):
    points = importlib.metadata.entry_points(group="vllm.general_plugins")
    assert [point.load() for point in points if point.name == "gauntlet"] == [plugin.register]
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    assert QUANTIZATION_METHODS.count("gauntlet") == 1
    backend = AttentionBackendEnum["GAUNTLET"].get_class()
    assert backend.get_name() == "GAUNTLET"
    assert [size for size in range(300) if backend.supports_head_size(size)] == list(range(16, 257, 16))


def test_only_who_asks_gets_it(configuration):
    settings = SETTINGS["modelopt"]
    assert configuration.override_quantization_method(settings, "gauntlet") == "gauntlet"
    for other in (None, "modelopt_fp4", "compressed-tensors"):
        assert configuration.override_quantization_method(settings, other) is None


@pytest.mark.parametrize(("settings", "words"), [
    ({**SETTINGS["modelopt"], "quant_algo": "FP8"}, ["`quantization_config.quant_algo` is 'FP8'", "'NVFP4'"]),
    ({**SETTINGS["modelopt"], "quant_algo": "NVFP4_AWQ"}, ["'NVFP4_AWQ'"]),
    ({**SETTINGS["compressed-tensors"], "format": "pack-quantized"}, ["`quantization_config.format` is 'pack-quantized'"]),
    ({"quant_method": "gptq"}, ["`quantization_config.quant_method` is 'gptq'"]),
    ({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}}, ["`quantization.quant_algo` is 'FP8'"]),
])
def test_other_checkpoints_are_refused_by_name(configuration, settings, words):
    with pytest.raises(ValueError) as raised:
        configuration.from_config(settings)
    assert all(word in str(raised.value) for word in words), raised.value


def test_modelopts_older_file_is_read(configuration):
    own = {"quant_algo": "NVFP4", "group_size": 16, "kv_cache_quant_algo": None, "exclude_modules": ["lm_head"]}
    made = configuration.from_config({"producer": {"name": "modelopt"}, "quantization": own, "quant_method": "modelopt_fp4"})
    assert made.get_name() == "gauntlet"


def test_other_gpus_are_refused(configuration, monkeypatch):
    from vllm.platforms.interface import DeviceCapability

    from gauntlet.engines import _vllm_configuration

    monkeypatch.setattr(_vllm_configuration.current_platform, "get_device_capability", lambda: DeviceCapability(10, 0))
    with pytest.raises(ValueError, match=r"--quantization gauntlet: the kernels are for Hopper GPUs .* 10.0; leave the option out"):
        configuration.from_config(SETTINGS["modelopt"])


@pytest.mark.parametrize("factors", [(1, 1, 1), (1, 3, 0.25)])
@pytest.mark.parametrize("layout", SETTINGS)
def test_fused_layers_keep_their_own_scales(layout, factors, configuration, state):
    """vLLM's own methods take the largest of the scales, which changes the weights of the others."""
    from vllm.model_executor.layers.linear import QKVParallelLinear

    made = configuration.from_config(SETTINGS[layout])
    layer = QKVParallelLinear(128, 32, 4, 2, quant_config=made, prefix="model.layers.0.self_attn.qkv_proj", params_dtype=torch.bfloat16)
    exact = []
    for (name, rows), factor in zip({"q": 128, "k": 64, "v": 64}.items(), factors, strict=True):
        packed = nvfp4.quantize(torch.randn(rows, 128, generator=torch.Generator().manual_seed(rows)))
        # One largest weight, so that equal factors are equal scales.
        own = nvfp4.Tensor(packed.values, packed.scales, factor / 1024)
        exact.append(nvfp4.dequantize(own, "float64"))
        scale = torch.tensor(own.tensor_scale)
        names = {"modelopt": ("weight", scale), "compressed-tensors": ("weight_packed", scale.reciprocal().reshape(1))}
        values, number = names[layout]
        last = "weight_scale_2" if layout == "modelopt" else "weight_global_scale"
        for parameter, tensor in {values: own.values, "weight_scale": own.scales, last: number}.items():
            loaded = getattr(layer, parameter)
            loaded.weight_loader(loaded, tensor, name)
    layer.bias.data.copy_(torch.arange(256))
    layer.quant_method.process_weights_after_loading(layer)
    assert len(layer.nvfp4) == len(set(factors))
    x = torch.randn(5, 128, generator=torch.Generator().manual_seed(1)).bfloat16()
    found, _ = layer(x)
    expected = x.double() @ torch.cat(exact).T + torch.arange(256)
    assert (found.double() - expected).abs().max() <= 2**-8 * expected.abs().max()


def test_a_layer_without_scales_is_named(configuration, state):
    from vllm.model_executor.layers.linear import ReplicatedLinear

    layer = ReplicatedLinear(128, 32, quant_config=configuration.from_config(SETTINGS["modelopt"]), prefix="model.layers.0.odd")
    with pytest.raises(ValueError, match=r"model.layers.0.odd: scales of its weights are NaN or were not in the checkpoint.*`ignore`"):
        layer.quant_method.process_weights_after_loading(layer)


def test_parts_without_whole_blocks_are_named(configuration, state):
    from vllm.model_executor.layers.linear import ReplicatedLinear

    with pytest.raises(ValueError, match="odd: rows of 24 values on each GPU are no whole blocks of 16; choose another tensor parallel"):
        ReplicatedLinear(24, 32, quant_config=configuration.from_config(SETTINGS["modelopt"]), prefix="odd")


@pytest.mark.parametrize("given", [
    {"sliding_window": 128}, {"alibi_slopes": [1.0]}, {"logits_soft_cap": 30.0}, {"scale": 1.0}, {"sinks": torch.ones(4)},
])
def test_other_attention_is_refused_by_name(plugin, given, state):
    from gauntlet.engines._vllm_attention import Implementation

    with pytest.raises(ValueError, match="--attention-backend GAUNTLET: .* not computed; choose another backend"):
        Implementation(**{"num_heads": 4, "head_size": 64, "scale": 0.125, "num_kv_heads": 2, **given})


def test_vllm_makes_an_attention_layer_of_it(plugin, state):
    from vllm.model_executor.layers.attention import Attention

    from gauntlet.engines._vllm_attention import Backend, Builder, Implementation

    layer = Attention(4, 64, 0.125, num_kv_heads=2, prefix="layer", attn_backend=Backend)
    assert isinstance(layer.impl, Implementation) and (layer.impl.num_kv_heads, layer.backend.name) == (2, "GAUNTLET")
    assert Backend.get_builder_cls() is Builder


@pytest.mark.parametrize("layout", SETTINGS)
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_vllms_models_give_the_logits_of_the_checkpoint(kind, layout, tmp_path):
    expected = stored(kind, layout, tmp_path / "model")
    [found] = ranks(tmp_path / "model", tmp_path, 1)
    check_logits(found, expected)
    methods = found["methods"]
    assert methods["model.layers.0.self_attn.qkv_proj"] == methods["model.layers.0.self_attn.o_proj"] == "LinearMethod"
    assert methods[f"{KEPT}.qkv_proj"] == "UnquantizedLinearMethod"
    assert methods["lm_head"] == "UnquantizedEmbeddingMethod"
    if kind == "qwen3_moe":
        assert list(found["experts"].values()) == [[[8, 128, 256], [8, 128, 256], [8, 256, 128]]] * 2


@pytest.mark.parametrize(("kind", "layout", "options", "experts"), [
    ("llama", "modelopt", {}, None),
    ("qwen3_moe", "compressed-tensors", {}, [[8, 64, 256], [8, 64, 256], [8, 256, 64]]),
    ("qwen3_moe", "modelopt", {"enable_expert_parallel": True}, [[4, 128, 256], [4, 128, 256], [4, 256, 128]]),
])
def test_two_ranks_give_the_logits_of_the_checkpoint(kind, layout, options, experts, tmp_path):
    expected = stored(kind, layout, tmp_path / "model")
    for found in ranks(tmp_path / "model", tmp_path, 2, **options):
        check_logits(found, expected)
        assert found["shapes"]["model.layers.0.self_attn.o_proj.nvfp4.0.weight"] == [256, 64]
        if experts is None:
            assert found["shapes"]["model.layers.0.mlp.down_proj.nvfp4.0.weight"] == [256, 128]
        else:
            assert list(found["experts"].values()) == [experts] * 2
