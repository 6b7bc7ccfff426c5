"""NVFP4 weights in safetensors files of both layouts; the files are written here, byte by byte."""

import json
import struct

import numpy as np
import pytest

from gauntlet import nvfp4

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
