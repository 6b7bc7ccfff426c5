"""What a checkpoint's configuration says to vLLM. Imports vllm."""

from __future__ import annotations

from typing import Any

import torch
from vllm.model_executor.layers.attention import Attention, MLAAttention
from vllm.model_executor.layers.fused_moe import RoutedExperts
from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod
from vllm.model_executor.layers.quantization.base_config import QuantizationConfig
from vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors import CompressedTensorsConfig
from vllm.model_executor.layers.quantization.modelopt import ModelOptNvFp4Config
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from vllm.platforms import current_platform

from gauntlet.engines._vllm_layers import COMPRESSED_TENSORS, MODELOPT, ExpertsMethod, LinearMethod
from gauntlet.engines.vllm import NAME
from gauntlet.nvfp4 import _configuration

HOPPER = 9
"""The major compute capability of the GPUs that the operators are for."""

PLACE = "the checkpoint's config.json or hf_quant_config.json"


class Configuration(QuantizationConfig):
    """The quantisation of a checkpoint in one of the two layouts. vLLM's own class for the layout reads the configuration and says
    which layers are quantised and how the cache is scaled; the layers themselves are ours.

    Args:
        inner: vLLM's class for the layout.
    """

    def __init__(self, inner: ModelOptNvFp4Config | CompressedTensorsConfig) -> None:
        self._inner = inner
        super().__init__()
        self._layout = MODELOPT if isinstance(inner, ModelOptNvFp4Config) else COMPRESSED_TENSORS

    @property
    def packed_modules_mapping(self) -> dict[str, list[str]]:
        """The layers that vLLM fuses, which each model sets."""
        mapping: dict[str, list[str]] = self._inner.packed_modules_mapping
        return mapping

    @packed_modules_mapping.setter
    def packed_modules_mapping(self, mapping: dict[str, list[str]]) -> None:
        self._inner.packed_modules_mapping = mapping

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Configuration:
        """Reads `quantization_config` of config.json, or hf_quant_config.json.

        Raises:
            ValueError: It describes something other than NVFP4 weights, or the GPU is no Hopper GPU.
        """
        capability = current_platform.get_device_capability()
        if capability is not None and capability.major != HOPPER:
            raise ValueError(
                f"--quantization {NAME}: the kernels are for Hopper GPUs (9.0), and this one has compute capability "
                f"{capability.major}.{capability.minor}; leave the option out"
            )
        part = "quantization" if isinstance(config.get("quantization"), dict) else "quantization_config"
        settings = dict(config["quantization"] if part == "quantization" else config)
        method = str(settings.get("quant_method", "modelopt"))
        if method.startswith("modelopt"):
            settings["quant_method"] = "modelopt"
        _configuration.check(PLACE, part, settings)
        if settings.get("quant_method", "modelopt") == "modelopt":
            return cls(ModelOptNvFp4Config.from_config(config))
        return cls(CompressedTensorsConfig.from_config(config))

    @classmethod
    def override_quantization_method(
        cls, hf_quant_cfg: dict[str, Any], user_quant: str | None, hf_config: Any = None
    ) -> str | None:
        """Takes a checkpoint, whatever method its configuration names, if the user named this one."""
        return NAME if user_quant == NAME else None

    def get_name(self) -> str:
        return NAME

    def get_supported_act_dtypes(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]

    @classmethod
    def get_min_capability(cls) -> int:
        return 10 * HOPPER

    @staticmethod
    def get_config_filenames() -> list[str]:
        return ["hf_quant_config.json"]

    def apply_vllm_mapper(self, hf_to_vllm_mapper: Any) -> None:
        self._inner.apply_vllm_mapper(hf_to_vllm_mapper)

    def get_quant_method(self, layer: Any, prefix: str) -> Any:
        """How a layer is computed; None leaves it to vLLM."""
        if isinstance(layer, (Attention, MLAAttention)):
            return self._inner.get_quant_method(layer, prefix)
        if isinstance(layer, LinearBase):
            return LinearMethod(self._layout, prefix) if self._is_quantized(layer, [prefix]) else UnquantizedLinearMethod()
        if isinstance(layer, ParallelLMHead):
            return LinearMethod(self._layout, prefix) if self._is_quantized(layer, [prefix]) else None
        if isinstance(layer, RoutedExperts):
            names = (layer.ckpt_gate_proj_name, layer.ckpt_up_proj_name, layer.ckpt_down_proj_name)
            experts = [f"{prefix}.0.{name}" for name in names if name is not None]
            return ExpertsMethod(self._layout, prefix, layer.moe_config) if self._is_quantized(layer, experts) else None
        return None

    def _is_quantized(self, layer: torch.nn.Module, names: list[str]) -> bool:
        """Whether the checkpoint stores a layer, which has these names there, in NVFP4.

        Raises:
            ValueError: Only some of the names.
        """
        if isinstance(self._inner, ModelOptNvFp4Config):
            # Experts are excluded as a whole, by the name of the layer or that of what it holds.
            found = {not self._inner.is_layer_excluded(name) for name in names}
        else:
            schemes = self._inner.target_scheme_map
            if "Linear" in schemes:
                # Experts are linear layers in the checkpoint, and one layer in vLLM.
                schemes.setdefault("RoutedExperts", schemes["Linear"])
            found = {self._inner.get_scheme_dict(layer, name) is not None for name in names}
        if len(found) != 1:
            raise ValueError(
                f"{PLACE}: only some of {', '.join(names)} are quantised, and these experts are computed together; quantise the model "
                "again with all of them or none"
            )
        return found.pop()
