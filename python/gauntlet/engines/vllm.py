"""NVFP4 checkpoints of ModelOpt and compressed-tensors in vLLM, on Hopper GPUs.

vLLM finds this plugin by itself (its entry points `vllm.general_plugins`). It changes nothing until it is asked for:

    vllm serve MODEL --quantization gauntlet --attention-backend GAUNTLET

Either option works without the other. Importing this module imports nothing of vLLM.
"""

from __future__ import annotations

NAME = "gauntlet"
"""Of the quantisation method, and in capitals of the attention backend."""

_ATTENTION = "gauntlet.engines._vllm_attention.Backend"


def register() -> None:
    """Adds the quantisation method and the attention backend to vLLM, which calls this in each of its processes, sometimes twice."""
    from vllm.model_executor.layers.quantization import register_quantization_config
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    from gauntlet.engines._vllm_configuration import Configuration

    register_quantization_config(NAME)(Configuration)
    known = AttentionBackendEnum.__members__.get(NAME.upper())
    register_backend(NAME.upper() if known is None else known, _ATTENTION)
