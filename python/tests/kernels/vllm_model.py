"""Computes the logits of a checkpoint by vLLM's own model, loader and layers, with the plugin's operators: one rank of some.

Arguments: the checkpoint's folder, the rank, the number of ranks, the file that ranks meet at, the file for results, and options as JSON.
Imports vllm. On the CPU vLLM's own operators in C++ are not needed: what the plugin does not compute, vLLM computes by PyTorch.
"""

import contextlib
import json
import sys

import torch

PAGE = 16
LENGTH = 24
"""Positions of each of two sequences."""


def on_cpu():
    """Makes vLLM believe that it was built for the CPU; its wheel is built for CUDA."""
    import vllm.platforms
    from vllm.platforms.cpu import CpuPlatform

    vllm.platforms.current_platform = CpuPlatform()


def settings(folder, ranks=1, **options):
    """vLLM's whole configuration, as its command makes it of options."""
    from vllm.engine.arg_utils import EngineArgs

    given = {
        "model": str(folder),
        "tokenizer": str(folder),
        "skip_tokenizer_init": True,
        "quantization": "gauntlet",
        "attention_backend": "GAUNTLET",
        "dtype": "bfloat16",
        "max_model_len": 2 * LENGTH,
        "enforce_eager": True,
        "tensor_parallel_size": ranks,
        "distributed_executor_backend": "mp" if ranks > 1 else None,
        # Without the operators in C++.
        "compilation_config": {"custom_ops": ["none"]},
        **options,
    }
    return EngineArgs(**given).create_engine_config()


@contextlib.contextmanager
def context(config, rank, ranks, meeting, backend="gloo"):
    """vLLM's state of a process that is one of several ranks."""
    from vllm.config import set_current_vllm_config
    from vllm.distributed import ensure_model_parallel_initialized, init_distributed_environment

    with set_current_vllm_config(config):
        init_distributed_environment(ranks, rank, f"file://{meeting}", rank, backend)
        ensure_model_parallel_initialized(ranks, 1)
        yield


def give_caches(config, device="cpu"):
    """Gives each attention layer pages of our backend, and returns the layers by name."""
    from vllm.model_executor.layers.attention import Attention

    from gauntlet.engines._vllm_attention import Backend, Implementation

    layers = config.compilation_config.static_forward_context
    found = {name: layer for name, layer in layers.items() if isinstance(layer, Attention)}
    for layer in found.values():
        # On the CPU vLLM chooses its own backend, whatever the options say.
        layer.attn_backend = Backend
        layer.impl = Implementation(layer.num_heads, layer.head_size, layer.impl.scale, layer.num_kv_heads)
        shape = 8, layer.num_kv_heads, PAGE, 2 * layer.head_size
        layer.kv_cache = torch.zeros(shape, dtype=torch.bfloat16, device=device)
    return found


def step(model, config, layers, ids, begin, end):
    """The logits at some positions of both sequences, whose earlier ones are in the pages."""
    from vllm.forward_context import set_forward_context
    from vllm.v1.attention.backend import CommonAttentionMetadata

    from gauntlet.engines._vllm_attention import Builder

    device, batch = ids.device, len(ids)
    table = torch.tensor([[3, 1], [5, 2]], dtype=torch.int32, device=device)
    positions = torch.arange(begin, end, device=device)
    slots = (table[:, positions // PAGE] * PAGE + positions % PAGE).long().reshape(-1)
    starts = torch.arange(batch + 1, dtype=torch.int32) * (end - begin)
    common = CommonAttentionMetadata(
        query_start_loc=starts.to(device),
        query_start_loc_cpu=starts,
        seq_lens=torch.full((batch,), end, dtype=torch.int32, device=device),
        num_reqs=batch,
        num_actual_tokens=batch * (end - begin),
        max_query_len=end - begin,
        max_seq_len=end,
        block_table_tensor=table,
        slot_mapping=slots,
    )
    metadata = Builder(None, list(layers), config, device).build(0, common)
    count = common.num_actual_tokens
    with torch.no_grad(), set_forward_context(
        dict.fromkeys(layers, metadata), config, num_tokens=count, slot_mapping=dict.fromkeys(layers, slots)
    ):
        states = model(ids[:, begin:end].reshape(-1), positions.repeat(batch))
        return model.compute_logits(states).view(batch, end - begin, -1)


def main(folder, rank, ranks, meeting, result, options):
    on_cpu()
    from vllm.model_executor.model_loader import get_model
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    config = settings(folder, ranks, **options)
    with context(config, rank, ranks, meeting):
        model = get_model(vllm_config=config)
        layers = give_caches(config)
        ids = torch.randint(0, 128, (2, LENGTH), generator=torch.Generator().manual_seed(3))
        whole = step(model, config, layers, ids, 0, LENGTH)
        give_caches(config)
        parts = [step(model, config, layers, ids, *own) for own in ((0, 20), (20, 23), (23, LENGTH))]
    methods = {name: type(module.quant_method).__name__ for name, module in model.named_modules() if hasattr(module, "quant_method")}
    shapes = {name: list(buffer.shape) for name, buffer in model.named_buffers()}
    experts = {
        name: [list(one.shape) for one in module.nvfp4]
        for name, module in model.named_modules()
        if methods.get(name) == "ExpertsMethod"
    }
    torch.save({"whole": whole, "parts": torch.cat(parts, 1), "methods": methods, "shapes": shapes, "experts": experts}, result)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5], json.loads(sys.argv[6]))
