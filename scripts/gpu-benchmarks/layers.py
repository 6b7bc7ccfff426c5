#!/usr/bin/env python3
"""Times the PyTorch face of the kernels on one Hopper GPU: routing on the device, whole mixtures of experts, models, attention.

    python3 scripts/gpu-benchmarks/layers.py --commit COMMIT --json FILE [--only PART]…

Parts, each in a process of its own so that a failure leaves the others:

    routing  a product whose plan was made on the host beside the same with the routing on the device; and one captured graph
             for a hundred routings, each compared with PyTorch's product of the dequantised weights
    moe      a mixture of experts, captured, beside the same steps with PyTorch's bf16 grouped products and, if it is
             installed, those of humming-kernels
    host     what an eager call costs the host, by wall clock
    models   a random Llama and a random Qwen3-MoE of transformers: logits beside the dequantised model, and tokens per second of
             a prefill and of a step of one token a text, captured, beside the model in bf16
    attention
             nvfp4.attention in bf16, e4m3 and int8, captured, beside PyTorch's scaled_dot_product_attention in bf16 with cuDNN and
             with FlashAttention; and what an eager call costs the host

Needs the package `gauntlet`, PyTorch, and for the models transformers 5.
"""

import argparse
import copy
import datetime
import json
import statistics
import subprocess
import sys
import time
import traceback

import torch
from torch.nn.functional import silu

from gauntlet import nvfp4
import operands
import peers

SETS = peers.SETS
ROUTINGS = 100
# Products: name, experts, N, K, and the tokens that the router sends to all experts together.
PRODUCTS = [
    ("deepseek-v3-ep8-gate-up", 32, 4096, 7168, (64, 512, 4096)),
    ("qwen3-235b-down", 128, 4096, 1536, (64, 512, 4096, 16384)),
]
# Layers: name, experts, hidden size, intermediate size, experts of a token, numbers of tokens.
LAYERS = [
    ("deepseek-v3-ep8", 32, 7168, 2048, 8, (8, 64, 512)),
    ("qwen3-235b", 128, 4096, 1536, 8, (8, 64, 512, 2048)),
]
# Attention: name, batch, heads, key heads, queries, keys, head size. All causal.
ATTENTION = [
    ("decode-b1", 1, 32, 8, 1, 8192, 128),
    ("decode-b8", 8, 32, 8, 1, 8192, 128),
    ("prefill", 4, 16, 16, 4096, 4096, 128),
]
HOST_CALLS, HOST_SERIES = 300, 7


def stack(experts, n, k, seed=0):
    """Random weights as checkpoints store them, with scales of one sign."""
    generator = torch.Generator("cuda").manual_seed(seed)
    values = torch.randint(0, 256, (experts, n, k // 2), generator=generator, device="cuda", dtype=torch.uint8)
    scales = torch.rand((experts, n, k // 16), generator=generator, device="cuda") + 0.5
    return nvfp4.Tensor(values, scales.to(torch.float8_e4m3fn), (0.01,))


def dequantized(tensor, dtype=torch.bfloat16):
    """Weights as PyTorch multiplies them: exact before the tensor scale, and rounded with it."""
    low, high = tensor.values & 15, tensor.values >> 4
    codes = torch.stack((low, high), -1).flatten(-2).int()
    magnitudes = torch.tensor(operands.MAGNITUDES, device="cuda", dtype=torch.float32)
    values = magnitudes[codes & 7] * torch.where(codes > 7, -1.0, 1.0)
    scales = tensor.scales.float().repeat_interleave(16, -1) * tensor.tensor_scales[0]
    return (values * scales).to(dtype)


def routed(experts, total, seed=1):
    """Tokens of each expert: uneven, some of them none."""
    generator = torch.Generator().manual_seed(seed)
    shares = -torch.rand(experts, generator=generator).log()
    return torch.bincount(torch.multinomial(shares, total, replacement=True, generator=generator), minlength=experts)


def timed(call):
    """Median microseconds of a call in a graph of many, in rotation over the sets of operands."""
    with peers.replayed(call) as median:
        return median()


def relative_rms(found, expected):
    difference = (found.double() - expected.double()).pow(2).mean().sqrt()
    return (difference / expected.double().pow(2).mean().sqrt()).item()


def routing():
    """Times with the plan of the host and with the routing on the device; then a hundred routings in one graph."""
    rows = []
    for name, experts, n, k, totals in PRODUCTS:
        weights = [stack(experts, n, k, seed) for seed in range(SETS)]
        for total in totals:
            sizes = routed(experts, total)
            offs = sizes.cumsum(0).to("cuda", torch.int32)
            tokens = [torch.randn(total, k, device="cuda", dtype=torch.bfloat16) for _ in range(SETS)]
            counts = sizes.tolist()
            rounds = {"host_plan_us": [], "device_routing_us": []}
            for _ in range(3):
                rounds["host_plan_us"].append(timed(lambda i: nvfp4.grouped_mm(tokens[i], weights[i], counts)))
                rounds["device_routing_us"].append(timed(lambda i: nvfp4.grouped_mm(tokens[i], weights[i], offs=offs)))
            row = {"case": f"{name}-{total}", "busy_experts": sum(count > 0 for count in counts), "rounds": rounds}
            row |= {key: statistics.median(values) for key, values in rounds.items()}
            row["weights_bytes"] = sum(count > 0 for count in counts) * n * k * 9 // 16
            rows.append(row)
            print(row["case"], round(row["host_plan_us"], 1), round(row["device_routing_us"], 1), flush=True)
        del weights
    return {"rows": rows, "one_graph": one_graph()}


def one_graph():
    """One captured product with routing on the device, replayed for a hundred routings."""
    experts, n, k, total = 128, 520, 1040, 777
    weights = nvfp4.Weights(stack(experts, n, k))
    exact = dequantized(stack(experts, n, k), torch.float32).double()
    tokens = torch.zeros(total, k, device="cuda", dtype=torch.bfloat16)
    offs = torch.zeros(experts, device="cuda", dtype=torch.int32)
    warm = torch.cuda.Stream()
    with torch.cuda.stream(warm):
        nvfp4.grouped_mm(tokens, weights, offs=offs, out_dtype=torch.float32)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=warm):
        result = nvfp4.grouped_mm(tokens, weights, offs=offs, out_dtype=torch.float32)
    worst = 0.0
    for seed in range(ROUTINGS):
        used = int(torch.randint(0, total + 1, (), generator=torch.Generator().manual_seed(seed)))
        sizes = routed(experts, used, seed) if used else torch.zeros(experts, dtype=torch.int64)
        offs.copy_(sizes.cumsum(0).to(torch.int32))
        tokens.copy_(torch.randn(total, k, device="cuda"))
        graph.replay()
        torch.cuda.synchronize()
        expert_of = torch.repeat_interleave(torch.arange(experts), sizes).cuda()
        for expert in expert_of.unique().tolist():
            own = expert_of == expert
            expected = tokens[:used][own].double() @ exact[expert].T
            bound = tokens[:used][own].double().abs() @ exact[expert].abs().T
            worst = max(worst, ((result[:used][own].double() - expected).abs() / bound).max().item())
    return {"routings": ROUTINGS, "experts": experts, "n": n, "k": k, "tokens": total, "largest_error_over_sum_of_magnitudes": worst}


def mixture(hidden, ids, scores, products):
    """A mixture of experts by PyTorch's operators: sort by expert, gather, two grouped products, weighted sums."""
    first, second = products
    experts = first.experts
    flat = ids.reshape(-1)
    order = torch.argsort(flat, stable=True)
    ends = torch.searchsorted(flat[order], torch.arange(experts, device="cuda"), right=True).to(torch.int32)
    sums = first(hidden[order // ids.shape[1]], ends)
    gate, up = sums.chunk(2, -1)
    results = second(silu(gate) * up, ends)
    rows = torch.empty_like(order)
    rows[order] = torch.arange(order.shape[0], device="cuda")
    own = results[rows].view(*ids.shape, hidden.shape[1])
    return (own.float() * scores[:, :, None]).sum(1).to(hidden.dtype)


class Brain:
    """PyTorch's grouped product of bf16 weights."""

    def __init__(self, experts, n, k):
        self.experts = experts
        self.weights = dequantized(stack(experts, n, k))

    def __call__(self, tokens, ends):
        return torch._grouped_mm(tokens, self.weights.transpose(-2, -1), offs=ends)


class Humming:
    """The grouped product of humming-kernels."""

    def __init__(self, experts, n, k):
        self.experts = experts
        self.layer = peers.humming_layer("competition", False, experts, n, k)

    def __call__(self, tokens, ends):
        layout = torch.nn.functional.pad(ends.long(), (1, 0))
        return self.layer(tokens, compute_config={"gemm_type": "grouped_contiguous"}, expert_layout=layout)


def moe():
    """Whole mixtures of experts."""
    rows = []
    for name, experts, hidden_size, between, chosen, counts in LAYERS:
        ours = [tuple(stack(experts, *shape, seed) for shape in ((between, hidden_size), (between, hidden_size), (hidden_size, between))) for seed in range(SETS)]
        theirs = {"bf16": Brain, "humming": Humming} if peers.importlib.util.find_spec("humming") else {"bf16": Brain}
        repacked = [tuple(nvfp4.Weights(one, tokens=torch.bfloat16) for one in layer) for layer in ours]
        made = {}
        for kind, product in theirs.items():
            made[kind] = [(product(experts, 2 * between, hidden_size), product(experts, hidden_size, between)) for _ in range(2)]
        for tokens in counts:
            hidden = [torch.randn(tokens, hidden_size, device="cuda", dtype=torch.bfloat16) for _ in range(SETS)]
            scores, ids = torch.randn(tokens, experts, device="cuda").softmax(-1).topk(chosen)
            row = {"case": f"{name}-{tokens}-tokens"}
            rounds = {"gauntlet_us": [], "repacked_us": []} | {f"{kind}_us": [] for kind in made}
            for _ in range(3):
                rounds["gauntlet_us"].append(timed(lambda i: nvfp4.moe(hidden[i], ids, scores, *ours[i])))
                rounds["repacked_us"].append(timed(lambda i: nvfp4.moe(hidden[i], ids, scores, *repacked[i])))
                for kind, products in made.items():
                    rounds[f"{kind}_us"].append(timed(lambda i: mixture(hidden[i], ids, scores, products[i % 2])))
            row |= {key: statistics.median(values) for key, values in rounds.items()} | {"rounds": rounds}
            gate, up, down = (dequantized(one) for one in ours[0])
            reference = mixture(hidden[0].float(), ids, scores, (Exact(gate, up), Exact(down)))
            row["relative_rms"] = relative_rms(nvfp4.moe(hidden[0], ids, scores, *ours[0]), reference)
            rows.append(row)
            print({key: value for key, value in row.items() if key != "rounds"}, flush=True)
        del ours, repacked, made
        torch.cuda.empty_cache()
    return rows


class Exact:
    """A grouped product in f32, an expert at a time, of one or two matrices of weights."""

    def __init__(self, *weights):
        self.experts = weights[0].shape[0]
        self.weights = weights

    def __call__(self, tokens, ends):
        begins = [0, *ends.tolist()]
        parts = []
        for expert, (begin, end) in enumerate(zip(begins, begins[1:])):
            own = tokens[begin:end]
            parts.append(torch.cat([own @ one[expert].float().T for one in self.weights], -1))
        return torch.cat(parts)


def attention():
    """Attention of bf16, and of 8 bits with a scale for each tensor."""
    rows = []
    for name, batch, heads, kv_heads, queries, keys, size in ATTENTION:
        sequences = [{"queries": queries, "keys": keys}] * batch
        shapes = ((heads, queries), (kv_heads, keys), (kv_heads, keys))
        drawn = [[torch.randn(batch, *shape, size, device="cuda", dtype=torch.bfloat16) for shape in shapes] for _ in range(SETS)]
        calls = {"bf16_us": lambda i: nvfp4.attention(*drawn[i], is_causal=True)}
        scales = {f"{operand}_scale": torch.full((1,), 0.03, device="cuda") for operand in ("query", "key", "value")}
        eights = [[one.to(torch.float8_e4m3fn) for one in tensors] for tensors in drawn]
        integers = [[(one / 0.03).round().clamp(-127, 127).to(torch.int8) for one in tensors] for tensors in drawn]
        calls["e4m3_us"] = lambda i: nvfp4.attention(*eights[i], query_scale=1.0, key_scale=1.0, value_scale=1.0, is_causal=True)
        calls["int8_us"] = lambda i: nvfp4.attention(*integers[i], **scales, is_causal=True)
        problem = {"sequences": sequences, "heads": heads, "kv_heads": kv_heads, "head_size": size, "causal": queries > 1}
        for kind, call in peers.attention(problem, "competition", torch.bfloat16).items():
            try:
                call(0)
            except RuntimeError as error:
                print(f"{name}: {kind} does not compute it: {error}", flush=True)
            else:
                calls[f"torch_{kind.replace(' ', '_')}_us"] = call
        rounds = {key: [] for key in calls}
        for _ in range(3):
            for key, call in calls.items():
                rounds[key].append(timed(call))
        row = {"case": name} | {key: statistics.median(values) for key, values in rounds.items()} | {"rounds": rounds}
        row["keys_and_values_bytes"] = 2 * 2 * batch * kv_heads * keys * size
        # The last queries of the first sequence, which see all keys or nearly all.
        last = [drawn[0][0][:1, :, -64:], drawn[0][1][:1], drawn[0][2][:1]]
        expected = nvfp4.attention(*[one.cpu() for one in last], is_causal=True, out_dtype=torch.float32)
        found = nvfp4.attention(*drawn[0], is_causal=True)[:1, :, -64:]
        row["relative_rms_beside_the_cpu"] = relative_rms(found.cpu(), expected)
        rows.append(row)
        print({key: value for key, value in row.items() if key != "rounds"}, flush=True)
        if name == "decode-b1":
            eager = {
                "nvfp4.attention, bf16": lambda: calls["bf16_us"](0),
                "nvfp4.attention, e4m3 with numbers": lambda: calls["e4m3_us"](0),
                "nvfp4.attention, int8 with tensors": lambda: calls["int8_us"](0),
                "torch sdpa, bf16": lambda: torch.nn.functional.scaled_dot_product_attention(*drawn[0], enable_gqa=True),
            }
            rows.append({"case": "host", "eager": host_times(eager)})
    return rows


def host():
    """Microseconds of the host for an eager call."""
    from gauntlet.nvfp4 import torch_ops

    weights = stack(2, 64, 256)
    single = nvfp4.Tensor(weights.values[0], weights.scales[0], weights.tensor_scales[:1])
    repacked, repacked_single = (nvfp4.Weights(one, tokens=torch.bfloat16) for one in (weights, single))
    tokens = torch.randn(2, 256, device="cuda", dtype=torch.bfloat16)
    offs = torch.tensor([1, 2], device="cuda", dtype=torch.int32)
    plain = torch.randn(64, 256, device="cuda", dtype=torch.bfloat16)
    calls = {
        "nvfp4.grouped_mm, sizes": lambda: nvfp4.grouped_mm(tokens, weights, [1, 1]),
        "nvfp4.grouped_mm, offs": lambda: nvfp4.grouped_mm(tokens, weights, offs=offs),
        "torch_ops.grouped_mm, sizes": lambda: torch_ops.grouped_mm(tokens, weights, [1, 1]),
        "nvfp4.linear": lambda: nvfp4.linear(tokens, single),
        "nvfp4.grouped_mm, sizes, repacked": lambda: nvfp4.grouped_mm(tokens, repacked, [1, 1]),
        "nvfp4.grouped_mm, offs, repacked": lambda: nvfp4.grouped_mm(tokens, repacked, offs=offs),
        "nvfp4.linear, repacked": lambda: nvfp4.linear(tokens, repacked_single),
        "torch bf16 matmul": lambda: tokens @ plain.t(),
    }
    return host_times(calls)


def host_times(calls):
    """Microseconds of the host for each of the calls: the best of several series, as the machine does other things too."""
    found = {}
    for name, call in calls.items():
        series = []
        for _ in range(HOST_SERIES):
            call()
            torch.cuda.synchronize()
            begun = time.perf_counter()
            for _ in range(HOST_CALLS):
                call()
            series.append((time.perf_counter() - begun) * 1e6 / HOST_CALLS)
        torch.cuda.synchronize()
        found[name] = {"best_us": min(series), "series_us": series}
        print(name, round(min(series), 1), flush=True)
    return found


def models():
    """A dense model and a mixture of experts."""
    import transformers

    common = {"vocab_size": 4096, "num_hidden_layers": 2, "max_position_embeddings": 2048, "pad_token_id": 0}
    llama = transformers.LlamaConfig(
        **common, hidden_size=4096, intermediate_size=11008, num_attention_heads=32, num_key_value_heads=8)
    qwen = transformers.Qwen3MoeConfig(
        **common, hidden_size=2048, intermediate_size=6144, num_attention_heads=32, num_key_value_heads=4, head_dim=128,
        moe_intermediate_size=768, num_experts=64, num_experts_per_tok=8, norm_topk_prob=True)
    found = []
    for kind, config in ((transformers.LlamaForCausalLM, llama), (transformers.Qwen3MoeForCausalLM, qwen)):
        torch.manual_seed(1)
        plain = kind(config).eval().to("cuda", torch.bfloat16)
        converted = nvfp4.convert(copy.deepcopy(plain))
        row = {"model": kind.__name__, "transformers": transformers.__version__}
        with torch.no_grad():
            dequantised = dequantised_model(plain, converted)
            ids = torch.randint(0, 4096, (2, 128), device="cuda")
            row["logits_relative_rms_beside_dequantised"] = relative_rms(converted(ids).logits, dequantised(ids).logits)
            for name, batch, length in (("prefill", 1, 2048), ("decode", 16, 1)):
                ids = torch.randint(0, 4096, (batch, length), device="cuda")
                for kind_of_weights, model in (("nvfp4", converted), ("bf16", plain)):
                    row[f"{name}_{kind_of_weights}_tokens_per_second"] = batch * length / timed_model(model, ids) * 1e6
        found.append(row)
        print(row, flush=True)
    return found


def dequantised_model(plain, converted):
    """The bf16 model with the values of the NVFP4 weights."""
    model = copy.deepcopy(plain)
    modules = dict(converted.named_modules())
    for name, module in model.named_modules():
        other = modules.get(name)
        if type(other).__module__ != "gauntlet.nvfp4.modules":
            continue
        if hasattr(other, "gate_proj"):
            gate, up, down = (unpacked(getattr(other, part).packed()) for part in ("gate_proj", "up_proj", "down_proj"))
            module.gate_up_proj.data.copy_(torch.cat([gate, up], dim=1))
            module.down_proj.data.copy_(down)
        elif hasattr(module, "weight"):
            module.weight.data.copy_(unpacked(other.packed()))
    return model


def unpacked(tensor):
    """The bf16 values of a packed matrix, or of a stack of them."""
    return nvfp4.dequantize(tensor.to("cpu"), torch.bfloat16).cuda()


def timed_model(model, ids):
    """Microseconds of a forward pass without a cache, captured."""
    with peers.replayed(lambda _: model(ids, use_cache=False).logits) as median:
        return median()


def run_part(part):
    """What a part found, in a process of its own; None if it failed. What it prints is shown as it comes."""
    found = None
    with subprocess.Popen([sys.executable, __file__, "--part", part], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("RESULT "):
                found = json.loads(line.removeprefix("RESULT "))
            else:
                print(line, end="", flush=True)
    return found


PARTS = {"routing": routing, "moe": moe, "host": host, "models": models, "attention": attention}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--commit", default="unknown", help="what the package was built from")
    arguments.add_argument("--only", action="append", choices=PARTS, help="only this part; may be repeated")
    arguments.add_argument("--json", help="where the times go")
    arguments.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    arguments = arguments.parse_args()
    if arguments.part:
        try:
            found = PARTS[arguments.part]()
        except Exception:
            traceback.print_exc()
            return 1
        print("RESULT " + json.dumps(found))
        return 0

    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    results = {"machine": peers.versions() | {"driver": driver.stdout.strip()}, "commit": arguments.commit,
               "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}
    failed = []
    for part in arguments.only or PARTS:
        found = run_part(part)
        if found is None:
            failed.append(part)
        else:
            results[part] = found
        # After each part, so that an end before the last one leaves the others.
        if arguments.json:
            with open(arguments.json, "w", encoding="utf-8") as file:
                json.dump(results, file, indent=1)
                file.write("\n")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
