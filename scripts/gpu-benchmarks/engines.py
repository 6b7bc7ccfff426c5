"""Small NVFP4 models of transformers and of vLLM on a Hopper GPU: how far their logits are from the checkpoint's in float32, and whether
captured graphs give the bits of eager calls. Writes JSON.

    python3 scripts/gpu-benchmarks/engines.py transformers|vllm llama|qwen3_moe modelopt|compressed-tensors RESULT

vLLM's wheel may be there without its compiled libraries: one operator of the router is replaced by PyTorch's, and nothing else of them is
called. The processes for several cases may run side by side.
"""

import json
import sys
import tempfile
import time
import types
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "tests" / "kernels"))
from small_models import logits, rms, tokens  # noqa: E402
from stored_models import KEPT, checkpoint  # noqa: E402

ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM"}
engine, kind, layout, result = sys.argv[1:5]
found = {"engine": engine, "kind": kind, "layout": layout, "torch": torch.__version__, "gpu": torch.cuda.get_device_name(0)}
begin = time.time()


def note(name, value):
    found[name] = value
    print(f"{time.time() - begin:6.1f} s  {engine} {kind} {layout}  {name}: {value}", flush=True)
    Path(result).write_text(json.dumps(found, indent=1))


def distance(own, expected):
    return rms(own.double().cpu() - expected.double().cpu()) / rms(expected.double().cpu())


folder = Path(tempfile.mkdtemp())
model = checkpoint(kind, layout, folder)
path = folder / "config.json"
path.write_text(json.dumps({**json.loads(path.read_text()), "architectures": [ARCHITECTURES[kind]]}))
ids = tokens(24)
expected = logits(model.float(), ids)


def by_transformers():
    import transformers
    from gauntlet.engines.transformers import NvFp4Config, configuration
    from gauntlet.nvfp4 import modules

    note("transformers", transformers.__version__)
    load = transformers.AutoModelForCausalLM.from_pretrained
    own = load(folder, config=configuration(folder), dtype=torch.bfloat16, device_map="cuda")
    packed = [module for module in own.modules() if isinstance(module, modules.PackedWeights)]
    note("packed", len(packed))
    note("repacked", sum(module.tokens == "bfloat16" for module in packed))
    note("devices", sorted({str(module.weight.device) for module in packed}))
    given = ids.cuda()
    note("distance", distance(logits(own, given), expected))
    stored = load(folder, config=configuration(folder, repack=False), dtype=torch.bfloat16, device_map="cuda")
    note("distance_without_repacking", distance(logits(stored, given), expected))
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            own(given, use_cache=False)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            captured = own(given, use_cache=False).logits
        other = ids.flip(1).cuda()
        eager = own(other, use_cache=False).logits.clone()
        given.copy_(other)
        graph.replay()
        torch.cuda.synchronize()
    note("graph_has_the_bits_of_eager", torch.equal(captured, eager))
    generated = own.generate(ids.cuda(), max_new_tokens=8, do_sample=False)
    note("generated", list(generated.shape))
    original = tempfile.mkdtemp()
    from small_models import model as small

    small(kind).save_pretrained(original)
    made = load(original, quantization_config=NvFp4Config(exclude=["lm_head", KEPT]), dtype=torch.bfloat16, device_map="cuda")
    note("distance_quantised_here", distance(logits(made, ids.cuda()), expected))


def by_vllm():
    class Stub(types.ModuleType):
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *call, **named: 1 / 0

    class Operators:
        def __getattr__(self, name):
            if name not in ("silu_and_mul", "gelu_and_mul"):
                raise AttributeError(name)


    names = "_C", "_C_stable_libtorch", "_moe_C", "_moe_C_stable_libtorch", "vllm_flash_attn", "vllm_flash_attn.flash_attn_interface"
    for name in names:
        sys.modules[f"vllm.{name}"] = Stub(f"vllm.{name}")
    torch.ops._C = Operators()
    import vllm.platforms
    from vllm.platforms.cuda import CudaPlatform

    vllm.platforms.current_platform = CudaPlatform()
    import vllm
    import vllm._custom_ops as ops

    for name in dir(ops):
        if "support" in name and callable(getattr(ops, name)):
            setattr(ops, name, lambda *call, **named: False)
    import vllm_model
    from vllm.model_executor.model_loader import get_model
    from vllm.plugins import load_general_plugins

    def topk_softmax(weights, indices, positions, logits, renormalize=False, *others, **more):
        own, chosen = torch.softmax(logits.float(), -1).topk(indices.shape[-1], -1)
        weights.copy_(own / own.sum(-1, keepdim=True) if renormalize else own)
        indices.copy_(chosen)

    ops.topk_softmax = topk_softmax
    load_general_plugins()
    note("vllm", vllm.__version__)
    config = vllm_model.settings(folder)
    note("chosen", [type(config.quant_config).__name__, str(config.attention_config.backend)])
    with vllm_model.context(config, 0, 1, tempfile.mktemp()):
        made = get_model(vllm_config=config)
        from vllm.model_executor.layers.attention import Attention

        backends = [
            type(layer.impl).__module__ for layer in config.compilation_config.static_forward_context.values() if isinstance(layer, Attention)
        ]
        note("attention_by_vllms_choice", sorted(set(backends)))
        methods = {name: type(module.quant_method).__name__ for name, module in made.named_modules() if hasattr(module, "quant_method")}
        note("methods", sorted(set(methods.values())))
        linear = [module for name, module in made.named_modules() if methods.get(name) == "LinearMethod"]
        note("repacked", [sum(part.tokens == "bfloat16" for one in linear for part in one.nvfp4), sum(len(one.nvfp4) for one in linear)])
        layers = vllm_model.give_caches(config, "cuda")
        given = ids.cuda()
        whole = vllm_model.step(made, config, layers, given, 0, 24)
        note("distance", distance(whole, expected))
        vllm_model.give_caches(config, "cuda")
        parts = [vllm_model.step(made, config, layers, given, *own) for own in ((0, 20), (20, 23), (23, 24))]
        note("distance_in_steps", distance(torch.cat(parts, 1), expected))

        # A decode step in a graph, replayed with other tokens and keys.
        from gauntlet.engines._vllm_attention import Builder
        from vllm.forward_context import set_forward_context
        from vllm.v1.attention.backend import CommonAttentionMetadata

        table = torch.tensor([[3, 1], [5, 2]], dtype=torch.int32, device="cuda")
        starts = torch.arange(3, dtype=torch.int32)
        slots = torch.tensor([1 * 16 + 7, 2 * 16 + 7], device="cuda")
        common = CommonAttentionMetadata(
            query_start_loc=starts.cuda(), query_start_loc_cpu=starts, seq_lens=torch.tensor([24, 24], dtype=torch.int32, device="cuda"),
            num_reqs=2, num_actual_tokens=2, max_query_len=1, max_seq_len=48, block_table_tensor=table, slot_mapping=slots,
        )
        metadata = Builder(None, list(layers), config, torch.device("cuda")).build_for_cudagraph_capture(common)
        last, positions = given[:, 23].clone(), torch.tensor([23, 23], device="cuda")
        with torch.no_grad(), set_forward_context(
            dict.fromkeys(layers, metadata), config, num_tokens=2, slot_mapping=dict.fromkeys(layers, slots)
        ):
            decode = lambda: made.compute_logits(made(last, positions))
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                decode()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                captured = decode()
            last.copy_(torch.tensor([5, 77], device="cuda"))
            common.seq_lens.copy_(torch.tensor([24, 22], dtype=torch.int32))
            positions.copy_(torch.tensor([23, 21]))
            slots.copy_(torch.tensor([1 * 16 + 7, 2 * 16 + 5]))
            graph.replay()
            torch.cuda.synchronize()
            replayed = captured.clone()
            eager = decode()
        note("graph_has_the_bits_of_eager", torch.equal(replayed, eager))

        # A layer under torch.compile, captured too.
        layer = linear[0]
        x = torch.randn(5, 256, device="cuda", dtype=torch.bfloat16)
        with torch.no_grad():
            compiled = torch.compile(lambda tokens: layer.quant_method.apply(layer, tokens) * 2, fullgraph=True)
            compiled(x)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                doubled = compiled(x)
            x.copy_(torch.randn(5, 256))
            graph.replay()
            torch.cuda.synchronize()
            note("compiled_and_captured_has_the_bits", torch.equal(doubled, layer.quant_method.apply(layer, x) * 2))


{"transformers": by_transformers, "vllm": by_vllm}[engine]()
