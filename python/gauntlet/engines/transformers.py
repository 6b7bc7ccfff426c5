"""NVFP4 models in transformers, through `from_pretrained`. Imports torch and transformers.

    from gauntlet.engines.transformers import NvFp4Config, configuration

    # A checkpoint of ModelOpt or compressed-tensors:
    model = AutoModelForCausalLM.from_pretrained(path, config=configuration(path), device_map="cuda")
    # Any other, whose weights are quantised once they are loaded:
    model = AutoModelForCausalLM.from_pretrained(path, quantization_config=NvFp4Config(), device_map="cuda")

Importing this module registers the quantiser `gauntlet`, and nothing else: checkpoints are loaded as before without it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig
from transformers.quantizers import HfQuantizer, register_quantization_config, register_quantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from gauntlet import nvfp4
from gauntlet.nvfp4 import _configuration, _cuda, _loading, _repacking
from gauntlet.nvfp4._models import UNQUANTIZED
from gauntlet.nvfp4._stored import Stored
from gauntlet.nvfp4.modules import PackedWeights

__all__ = ["NvFp4Config", "Quantizer", "configuration"]

NAME = "gauntlet"


@register_quantization_config(NAME)
class NvFp4Config(QuantizationConfigMixin):
    """How a model is quantised, and computed by `gauntlet.nvfp4`.

    Args:
        exclude: For weights that are quantised after they were loaded: modules that stay as they are, as in `nvfp4.convert`.
        repack: Whether weights on a Hopper GPU are put into the order of its kernels, as by `nvfp4.repack`. Such a model is not saved.
        nan_scales_of_zeros: As in `nvfp4.load_checkpoint`.
        others: What the checkpoint's configuration says; it is checked and kept.
    """

    def __init__(
        self,
        exclude: Sequence[str] = UNQUANTIZED,
        repack: bool = True,
        nan_scales_of_zeros: bool = False,
        **others: Any,
    ) -> None:
        self.quant_method = NAME
        self.exclude = list(exclude)
        self.repack = repack
        self.nan_scales_of_zeros = nan_scales_of_zeros
        self.stored = others.get("stored")


def configuration(path: str | PathLike[str], *, repack: bool = True, nan_scales_of_zeros: bool = False, **others: Any) -> Any:
    """The configuration of an NVFP4 checkpoint, so that `from_pretrained` loads it by this quantiser.

    Args:
        path: The checkpoint, as `AutoConfig.from_pretrained` takes it.
        repack: As in `NvFp4Config`.
        nan_scales_of_zeros: As in `NvFp4Config`.
        others: For `AutoConfig.from_pretrained`.

    Raises:
        ValueError: It describes something other than NVFP4 weights.
    """
    found = AutoConfig.from_pretrained(path, **others)
    stored = copy.deepcopy(getattr(found, "quantization_config", None)) or {}
    if stored:
        _configuration.check(str(path), "quantization_config", stored)
    made = NvFp4Config(repack=repack, nan_scales_of_zeros=nan_scales_of_zeros, stored=stored)
    found.quantization_config = made.to_dict()
    return found


@register_quantizer(NAME)
class Quantizer(HfQuantizer):
    """Replaces the layers that a checkpoint stores in NVFP4 before it is loaded, and fills them afterwards; or replaces loaded layers."""

    quantization_config: NvFp4Config
    _stored: Stored | None = None

    def _process_model_before_weight_loading(
        self, model: Any, checkpoint_files: Sequence[str] | None = None, **others: Any
    ) -> Any:
        if getattr(model.config, "distributed_config", None) is not None or getattr(model, "_tp_size", None):
            raise ValueError("tp_plan: the quantiser gauntlet does not part weights among GPUs; leave it out, or serve the model by vLLM")
        if not self.pre_quantized:
            return model
        if not checkpoint_files or not all(str(file).endswith(".safetensors") for file in checkpoint_files):
            raise ValueError("quantization_config: NVFP4 checkpoints are read from safetensors files; fetch or export the model as those")
        self._stored = Stored(_common(checkpoint_files), self.quantization_config.nan_scales_of_zeros)
        names = _loading.make_room(model, self._stored)
        for module in model.modules():
            if isinstance(module, PackedWeights):
                # Their bytes are not transformers' to read and to cast: it only makes them on their devices.
                module._non_persistent_buffers_set = set(module._buffers)
        own = {rf"^{re.escape(name)}\." for name in names}
        model._keys_to_ignore_on_load_unexpected = own.union(model._keys_to_ignore_on_load_unexpected or ())
        return model

    def _process_model_after_weight_loading(self, model: Any, **others: Any) -> Any:
        if self._stored is None:
            nvfp4.convert(model, exclude=self.quantization_config.exclude)
        else:
            _loading.fill(model, self._stored)
            self._stored = None
            for module in model.modules():
                if isinstance(module, PackedWeights):
                    module._non_persistent_buffers_set = set()
        if self.quantization_config.repack and model.dtype in (torch.bfloat16, torch.float16):
            _repacking.repack_what_can_be(model, _cuda.NAMES[model.dtype])
        return model

    def is_serializable(self, *others: Any, **more: Any) -> bool:
        return False

    @property
    def is_trainable(self) -> bool:
        return False

    @property
    def is_compileable(self) -> bool:
        return True


def _common(files: Sequence[str]) -> Path:
    """The checkpoint that files belong to."""
    return Path(files[0]) if len(files) == 1 else Path(files[0]).parent
