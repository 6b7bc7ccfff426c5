"""NVFP4 checkpoints of small models in both layouts. Imports torch and transformers."""

import copy
import functools
import json

import torch
from safetensors.torch import save_file
from small_models import config, model

from gauntlet import nvfp4
from gauntlet.nvfp4 import modules


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
    "modelopt": {
        "quant_method": "modelopt",
        "quant_algo": "NVFP4",
        "group_size": 16,
        "ignore": ["lm_head", f"{KEPT}*", "model.layers.*.mlp.gate"],
    },
    "compressed-tensors": {
        "quant_method": "compressed-tensors",
        "format": "nvfp4-pack-quantized",
        "ignore": ["lm_head", f"re:{KEPT}.*", "re:.*mlp.gate$"],
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
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    (folder / "config.json").write_text(json.dumps({**config(kind).to_dict(), "quantization_config": settings}))
    return converted
