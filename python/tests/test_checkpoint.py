"""NVFP4 weights in safetensors files of both layouts; the files are written here, byte by byte."""

import json
import struct

import numpy as np
import pytest

from gauntlet import nvfp4
from gauntlet.nvfp4 import _configuration

TENSOR = nvfp4.quantize(np.random.default_rng(1).standard_normal((6, 64), np.float32))


def save(path, tensors):
    """Writes (type, array) by name as a safetensors file."""
    header, data = {}, b""
    for name, (dtype, array) in tensors.items():
        own = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(own)]}
        data += own
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def model_opt(layer, scale):
    return {
        f"{layer}.weight": ("U8", TENSOR.values),
        f"{layer}.weight_scale": ("F8_E4M3", TENSOR.scales),
        f"{layer}.weight_scale_2": ("F32", np.array([scale], np.float32)),
    }


def compressed(layer, divisor):
    return {
        f"{layer}.weight_packed": ("U8", TENSOR.values),
        f"{layer}.weight_scale": ("F8_E4M3", TENSOR.scales),
        f"{layer}.weight_global_scale": ("F32", np.array([divisor], np.float32)),
    }


def test_one_layout_multiplies_and_the_other_divides(tmp_path):
    path = tmp_path / "model.safetensors"
    save(path, {**model_opt("up", 0.25), **compressed("down", 4.0)})
    checkpoint = nvfp4.load(path)
    assert list(checkpoint) == ["down", "up"] and len(checkpoint) == 2
    assert [checkpoint.layout(layer) for layer in checkpoint] == ["compressed-tensors", "ModelOpt"]
    for layer in checkpoint.values():
        assert layer.tensor_scale == 0.25
        np.testing.assert_array_equal(layer.values, TENSOR.values)
        np.testing.assert_array_equal(layer.scales, TENSOR.scales)
    assert nvfp4.load(path, "up").shape == (6, 64)


def test_the_tensors_of_a_layer_may_be_in_several_files(tmp_path):
    tensors = list(model_opt("up", 2.0).items())
    save(tmp_path / "a.safetensors", dict(tensors[:1]))
    save(tmp_path / "b.safetensors", dict(tensors[1:]))
    assert nvfp4.load(tmp_path, "up").tensor_scale == 2.0
    index = {name: "a.safetensors" if number == 0 else "b.safetensors" for number, (name, _) in enumerate(tensors)}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    assert nvfp4.load(tmp_path, "up").tensor_scale == 2.0


def test_what_is_missing_is_named(tmp_path):
    path = tmp_path / "model.safetensors"
    tensors = model_opt("up", 1.0)
    del tensors["up.weight_scale_2"]
    save(path, tensors)
    with pytest.raises(ValueError, match=r"`up.weight_scale_2` is missing"):
        nvfp4.load(path, "up")
    with pytest.raises(KeyError, match="no NVFP4 layer 'down'; it has up"):
        nvfp4.load(path, "down")
    with pytest.raises(FileNotFoundError, match="give a safetensors file or a folder"):
        nvfp4.load(tmp_path / "nothing")
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ValueError, match="not a safetensors file"):
        nvfp4.load(path, "up")


def test_a_layer_with_more_than_a_weight_is_refused_by_name(tmp_path):
    path = tmp_path / "model.safetensors"
    for suffix in ("pre_quant_scale", "weight_zero_point", "weight_g_idx", "svdquant_lora_a"):
        save(path, {**model_opt("up", 1.0), f"up.{suffix}": ("F32", np.ones(64, np.float32)), **model_opt("down", 1.0)})
        checkpoint = nvfp4.load(path)
        with pytest.raises(ValueError, match=f"model.safetensors: `up.{suffix}` changes what the layer computes"):
            checkpoint["up"]
        assert checkpoint["down"].tensor_scale == 1.0
    # In a file of its own.
    save(path, model_opt("up", 1.0))
    save(tmp_path / "other.safetensors", {"up.pre_quant_scale": ("F32", np.ones(64, np.float32))})
    with pytest.raises(ValueError, match="`up.pre_quant_scale` changes"):
        nvfp4.load(tmp_path, "up")


MODEL_OPT = {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16, "exclude_modules": ["lm_head"]}
GROUP = {
    "targets": ["Linear"],
    "format": "nvfp4-pack-quantized",
    "weights": {
        "num_bits": 4,
        "type": "float",
        "group_size": 16,
        "strategy": "tensor_group",
        "symmetric": True,
        "dynamic": False,
        "actorder": None,
        "block_structure": None,
    },
    "input_activations": {"num_bits": 4, "type": "float", "group_size": 16, "strategy": "tensor_group", "dynamic": "local"},
    "output_activations": None,
}
COMPRESSED = {
    "quant_method": "compressed-tensors",
    "format": "nvfp4-pack-quantized",
    "config_groups": {"group_0": GROUP},
    "ignore": ["lm_head"],
    "kv_cache_scheme": None,
    "sparsity_config": {},
    "transform_config": {},
}


def changed(settings, key, value):
    """The settings with another value under a path of keys."""
    first, _, rest = key.partition(".")
    return {**settings, first: changed(settings[first], rest, value) if rest else value}


@pytest.mark.parametrize(("file", "part", "settings", "layer"), [
    ("hf_quant_config.json", "quantization", MODEL_OPT, model_opt("up", 0.5)),
    ("hf_quant_config.json", "quantization", {**MODEL_OPT, "quant_algo": "W4A16_NVFP4"}, model_opt("up", 0.5)),
    ("config.json", "quantization_config", {"quant_method": "modelopt", **MODEL_OPT}, model_opt("up", 0.5)),
    ("config.json", "quantization_config", COMPRESSED, compressed("up", 2.0)),
    ("config.json", "quantization_config", changed(COMPRESSED, "config_groups.group_0.weights.actorder", "static"), compressed("up", 2.0)),
    ("config.json", "quantization_config", changed(COMPRESSED, "config_groups.group_0.input_activations", None), compressed("up", 2.0)),
    ("config.json", "model_type", "llama", model_opt("up", 0.5)),
])
def test_the_configuration_beside_a_checkpoint_may_say_nvfp4(file, part, settings, layer, tmp_path):
    save(tmp_path / "model.safetensors", layer)
    (tmp_path / file).write_text(json.dumps({part: settings}))
    for path in (tmp_path, tmp_path / "model.safetensors"):
        assert nvfp4.load(path, "up").tensor_scale == 0.5


OTHERS = [
    ("hf_quant_config.json", MODEL_OPT, "quant_algo", algorithm)
    for algorithm in ("NVFP4_AWQ", "W4A8_AWQ", "W4A8_NVFP4_FP8", "NVFP4_SVDQUANT", "FP8", "MIXED_PRECISION", None)
] + [
    ("hf_quant_config.json", MODEL_OPT, "group_size", 32),
    ("hf_quant_config.json", MODEL_OPT, "pre_quant_scale", True),
    ("hf_quant_config.json", MODEL_OPT, "has_zero_point", True),
    ("config.json", COMPRESSED, "quant_method", "gptq"),
    ("config.json", COMPRESSED, "format", "mixed-precision"),
    ("config.json", COMPRESSED, "transform_config", {"config_groups": {"R1": {"type": "hadamard"}}}),
    ("config.json", COMPRESSED, "sparsity_config", {"format": "sparse-24-bitmask"}),
] + [
    ("config.json", COMPRESSED, f"config_groups.group_0.{key}", value)
    for key, value in {
        "format": "float-quantized",
        "weights.num_bits": 8,
        "weights.type": "int",
        "weights.group_size": 32,
        "weights.strategy": "channel",
        "weights.symmetric": False,
        "weights.dynamic": True,
        "weights.actorder": "group",
        "weights.block_structure": [128, 128],
        "input_activations.num_bits": 8,
        "output_activations": {"num_bits": 8},
    }.items()
]


@pytest.mark.parametrize(("file", "settings", "key", "value"), OTHERS, ids=[f"{key}-{value}" for _, _, key, value in OTHERS])
def test_a_configuration_of_something_else_is_refused_by_name(file, settings, key, value, tmp_path):
    part = _configuration.FILES[file]
    save(tmp_path / "model.safetensors", model_opt("up", 1.0))
    (tmp_path / file).write_text(json.dumps({part: changed(settings, key, value)}))
    for path in (tmp_path, tmp_path / "model.safetensors"):
        with pytest.raises(ValueError) as raised:
            nvfp4.load(path)
        said = str(raised.value)
        assert file in said and f"`{part}.{key}" in said and "computed here; quantise the model again" in said, said


@pytest.mark.parametrize("text", ["[1]", "{", '{"quantization": 7}', '{"quantization": {"quant_algo": "NVFP4", "exclude_modules": "lm_head"}}', "\udcff"])
def test_a_broken_configuration_is_named(text, tmp_path):
    save(tmp_path / "model.safetensors", model_opt("up", 1.0))
    (tmp_path / "hf_quant_config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=r"hf_quant_config.json: .*; fetch it again"):
        nvfp4.load(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": []}', '{"weight_map": {}}', '{"weight_map": {"up.weight": 3}}', '{"weight_map": {"up.weight": ""}}'])
def test_a_broken_index_is_named(text, tmp_path):
    save(tmp_path / "model.safetensors", model_opt("up", 1.0))
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(ValueError, match=r"model.safetensors.index.json: .*; fetch it again"):
        nvfp4.load(tmp_path)


def test_a_file_that_only_the_index_names_is_missing(tmp_path):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"up.weight": "1.safetensors"}}))
    for read in (list, lambda checkpoint: checkpoint.read("up")):
        with pytest.raises(FileNotFoundError, match="1.safetensors does not exist, and the checkpoint's index names it; fetch it"):
            read(nvfp4.load(tmp_path))


def test_a_nan_scale_of_zeros_counts_as_zero_if_that_is_asked_for(tmp_path):
    path = tmp_path / "model.safetensors"
    values, scales = np.array(TENSOR.values), np.array(TENSOR.scales)
    values[4, 16:24] = [0x00, 0x08, 0x80, 0x88] * 2
    scales[4, 2] = 0x7F
    save(path, {**model_opt("up", 0.5), "up.weight": ("U8", values), "up.weight_scale": ("F8_E4M3", scales)})
    with pytest.raises(ValueError, match=r"`up.weight_scale` is NaN in row 4, block 2 .*`nan_scales_of_zeros`"):
        nvfp4.load(path, "up")
    found = nvfp4.dequantize(nvfp4.load(path, "up", nan_scales_of_zeros=True))
    expected = nvfp4.dequantize(nvfp4.Tensor(values, np.where(scales == 0x7F, np.uint8(56), scales), 0.5))
    np.testing.assert_array_equal(found, expected)
    assert nvfp4.load(path, nan_scales_of_zeros=True)["up"].scales[4, 2] == 0
    values[4, 20] = 1
    save(path, {**model_opt("up", 0.5), "up.weight": ("U8", values), "up.weight_scale": ("F8_E4M3", scales)})
    with pytest.raises(ValueError, match="row 4, block 2"):
        nvfp4.load(path, "up", nan_scales_of_zeros=True)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("largest", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(("layer", "stored"), [(model_opt, 1), (compressed, -1)])
def test_a_scale_of_the_other_layout_is_a_warning_with_the_remedy(layer, stored, largest, tmp_path):
    path = tmp_path / "model.safetensors"
    right = largest / 6 / 448
    save(path, layer("up", right**stored))
    expected = nvfp4.load(path, "up").tensor_scale
    save(path, layer("up", right**-stored))
    with pytest.warns(UserWarning, match=r"weights of `up` are as large as .* seems to be stored the other way.* 1 / found.tensor_scale") as warned:
        found = nvfp4.load(path)["up"]
    assert warned[0].filename == __file__
    np.testing.assert_allclose(1 / found.tensor_scale, expected, rtol=1e-6)
