"""Times products whose routing only the device knows, and whole mixtures of experts, after checking their results.

    routed.py OUTPUT [--peers] [--seed N]      writes a JSON file; --peers times PyTorch's and humming's products in their place

Shapes are those of published models and others drawn at random from such configurations, by the seed that is printed. Calls are
captured, over operand sets of twice the level-2 cache or more, and replayed; times are medians, in microseconds a call.
"""

import argparse
import json
import random
import statistics
import sys
import time

import torch

torch.backends.cuda.matmul.allow_tf32 = False
BF16, SETS, REPEATS, TURNS = torch.bfloat16, 3, 5, 12
MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
SEEDS = [
    ("seed-1", [80, 176, 128, 72, 64, 248, 96, 160], 4096, 7168),
    ("seed-2", [40, 76, 168, 72, 164, 148, 196, 160], 7168, 2048),
    ("seed-3", [192, 320], 3072, 4096),
    ("seed-4", [128, 384], 4096, 1536),
]
# Experts of the model, those here, experts of a token, and the sizes of a product.
PRODUCTS = [
    ("dsv3-ep32-gateup", 256, 8, 8, 4096, 7168),
    ("dsv3-ep32-down", 256, 8, 8, 7168, 2048),
    ("dsv3-ep8-gateup", 256, 32, 8, 4096, 7168),
    ("dsv3-ep8-down", 256, 32, 8, 7168, 2048),
    ("qwen30-gateup", 128, 128, 8, 1536, 2048),
    ("qwen30-down", 128, 128, 8, 2048, 768),
    ("gptoss120-gateup", 128, 128, 4, 5760, 2880),
    ("gptoss120-down", 128, 128, 4, 2880, 2880),
    ("mixtral22-gateup", 8, 8, 2, 32768, 6144),
    ("mixtral22-down", 8, 8, 2, 6144, 16384),
]
# Experts of the model, those here, experts of a token, hidden, intermediate.
LAYERS = [
    ("qwen30", 128, 128, 8, 2048, 768, (1, 8, 64, 512, 2048, 2049, 4096, 8192)),
    ("dsv3-ep8", 256, 32, 8, 7168, 2048, (8, 64, 512, 2048, 2049, 4096)),
    ("gptoss120", 128, 128, 4, 2880, 2880, (1, 8, 64, 512, 4096)),
]


def drawn_products(seed):
    generator = random.Random(seed)
    configurations = [(64, 6, 2048, 1408), (160, 8, 5120, 1536), (256, 8, 6144, 2048), (128, 8, 4096, 1536), (64, 8, 2048, 1024), (16, 2, 4096, 6400), (384, 8, 7168, 2048)]
    for _ in range(8):
        experts, chosen, hidden, between = generator.choice(configurations)
        parts = generator.choice([1, 2, 4, 8])
        n, k = generator.choice([(2 * between, hidden), (hidden, between)])
        yield f"drawn-{experts}-{n}x{k}-part{parts}", experts, experts // parts, chosen, n, k, round(2 ** generator.uniform(0, 12))


def stack(experts, n, k):
    codes = torch.randint(0, 256, (experts, n, k // 2), device="cuda", dtype=torch.uint8) & 0b10111011
    scales = (torch.randint(0, 2, (experts, n, k // 16), device="cuda") + 1).to(torch.float32).to(torch.float8_e4m3fn)
    return codes, scales


def exact(codes, scales):
    magnitudes = torch.tensor(MAGNITUDES, device="cuda")
    values = torch.stack((codes & 15, codes >> 4), -1).view(codes.shape[0], -1)
    signed = magnitudes[(values & 7).int()] * torch.where(values > 7, -1.0, 1.0)
    return signed * scales.float().repeat_interleave(16, -1)


def routing(experts, here, chosen, tokens):
    """The experts of each token by Zipf's law with exponent 0.6, in a random order of the experts."""
    weights = (1 + torch.arange(experts, device="cuda")).float().pow(-0.6)[torch.randperm(experts, device="cuda")]
    ids = torch.multinomial(weights.expand(tokens, experts), chosen)
    counts = torch.bincount(ids.reshape(-1), minlength=experts)[:here]
    return ids, counts.tolist()


def captured(calls):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(TURNS // len(calls)):
            for call in calls:
                call()
    return graph, TURNS // len(calls) * len(calls)


def timed(calls):
    graph, count = captured(calls)
    times, begin, end = [], torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(2):
        graph.replay()
    torch.cuda.synchronize()
    for _ in range(REPEATS):
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(1000 * begin.elapsed_time(end) / count)
    return statistics.median(times)


def error(found, expected):
    found, expected = found.double(), expected.double()
    norm = expected.norm()
    return float((found - expected).norm() / norm) if norm > 0 else float(found.norm())


def ends_of(counts):
    return torch.tensor(counts, device="cuda").cumsum(0).to(torch.int32)


def checked(product, tokens, counts, codes, scales, offs):
    """The error under several routings of one captured call: as given, one expert, few, and none but with rows that are in no group."""
    result = product(tokens, offs)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = product(tokens, offs)
    worst, rows, groups = 0.0, tokens.shape[0], len(counts)
    one = [0] * groups
    one[groups // 2] = rows
    few = [0] * groups
    few[0], few[-1] = rows // 3, rows // 2
    given = offs.clone()
    for other in (counts, one, few, counts):
        offs.copy_(ends_of(other))
        result.fill_(7)
        graph.replay()
        begin = 0
        picked = sorted(range(groups), key=lambda group: -other[group])[:3] + [groups - 1]
        begins = [0, *torch.tensor(other).cumsum(0).tolist()]
        for group in picked:
            own = slice(begins[group], begins[group + 1])
            if other[group]:
                reference = tokens[own].float() @ exact(codes[group], scales[group]).T
                worst = max(worst, error(result[own], reference))
        begin = begins[-1]
        if begin < rows and not bool((result[begin:] == 7).all()):
            worst = float("inf")
    offs.copy_(given)
    return worst


def products(arguments, rows, begun):
    cases = [(name, counts, n, k, len(counts), 0) for name, counts, n, k in SEEDS]
    for name, experts, here, chosen, n, k in PRODUCTS:
        for tokens in (8, 64, 512, 4096):
            cases.append((f"{name}-{tokens}", None, n, k, here, (experts, chosen, tokens)))
    for name, experts, here, chosen, n, k, tokens in drawn_products(arguments.seed):
        cases.append((f"{name}-{tokens}", None, n, k, here, (experts, chosen, tokens)))
    made = (None, None)
    for index, (name, counts, n, k, here, drawn) in enumerate(cases):
        if time.time() - begun > arguments.limit:
            break
        torch.manual_seed(index)
        if counts is None:
            experts, chosen, tokens = drawn
            counts = routing(experts, here, chosen, tokens)[1]
        if sum(counts) == 0:
            counts[0] = 1
        if made[0] != (here, n, k):
            made = (None, None)
            sets = max(2, min(8, -(-(200 << 20) // (here * n * k))))
            made = ((here, n, k), [Peers(here, n, k) if arguments.peers else Ours(here, n, k) for _ in range(sets)])
        offs = ends_of(counts)
        tokens = [torch.randn(sum(counts), k, device="cuda", dtype=BF16) for _ in made[1]]
        row = {"case": name} | made[1][0].check(tokens[0], counts, offs)
        for kind in made[1][0].kinds:
            row[kind] = timed([lambda one=one, x=x: one.call(kind, x, offs, counts) for one, x in zip(made[1], tokens)])
        rows.append(row)
        print(row, flush=True)


class Ours:
    kinds = ("offs", "stored", "sizes")

    def __init__(self, experts, n, k):
        from gauntlet import nvfp4

        self.nvfp4 = nvfp4
        self.codes, self.scales = stack(experts, n, k)
        self.weights = nvfp4.Weights(nvfp4.Tensor(self.codes, self.scales, 1.0), tokens=BF16)
        self.stored = nvfp4.Weights(nvfp4.Tensor(self.codes, self.scales, 1.0)) if k % 256 else nvfp4.Tensor(self.codes, self.scales, 1.0)

    def call(self, kind, tokens, offs, counts):
        if kind == "sizes":
            return self.nvfp4.grouped_mm(tokens, self.weights, counts)
        return self.nvfp4.grouped_mm(tokens, self.weights if kind == "offs" else self.stored, offs=offs)

    def check(self, tokens, counts, offs):
        product = lambda x, ends: self.call("offs", x, ends, None)
        return {"error": checked(product, tokens, counts, self.codes, self.scales, offs)}


class Peers:
    def __init__(self, experts, n, k):
        from humming.layer import HummingLayer

        codes, scales = stack(experts, n, k)
        layer = HummingLayer(shape_n=n, shape_k=k, weight_config={"quant_method": "modelopt", "quant_algo": "nvfp4"}, num_experts=experts, torch_dtype=BF16).cuda()
        layer.load_from_tensors({"weight": codes, "weight_scale": scales, "weight_scale_2": torch.ones(experts, device="cuda")})
        layer.transform()
        self.layer, self.kinds = layer, ["humming"]
        if experts * n * k < 3 << 30:
            self.brain = torch.stack([exact(codes[i], scales[i]).to(BF16) for i in range(experts)])
            self.kinds.append("bf16")

    def check(self, tokens, counts, offs):
        self.layout = torch.nn.functional.pad(offs.long(), (1, 0))
        return {}

    def call(self, kind, tokens, offs, counts):
        if kind == "bf16":
            return torch._grouped_mm(tokens, self.brain.transpose(-2, -1), offs=offs)
        layout = torch.nn.functional.pad(offs.long(), (1, 0)) if not hasattr(self, "layout") else self.layout
        return self.layer(tokens, compute_config={"gemm_type": "grouped_contiguous"}, expert_layout=layout)


def layers(arguments, rows, begun):
    from gauntlet import nvfp4

    for name, experts, here, chosen, hidden, between, counts in LAYERS:
        sets = []
        for _ in range(2):
            parts = [stack(here, *shape) for shape in ((between, hidden), (between, hidden), (hidden, between))]
            sets.append((parts, [nvfp4.Weights(nvfp4.Tensor(*part, 1 / 64), tokens=BF16) for part in parts]))
        mapped = None
        if here < experts:
            mapped = torch.full((experts,), -1, dtype=torch.int32, device="cuda")
            mapped[torch.randperm(experts, device="cuda")[:here]] = torch.arange(here, dtype=torch.int32, device="cuda")
        for tokens in counts:
            if time.time() - begun > arguments.limit:
                return
            torch.manual_seed(tokens)
            ids = routing(experts, here, chosen, tokens)[0]
            scores = torch.rand(tokens, chosen, device="cuda").softmax(-1)
            inputs = [torch.randn(tokens, hidden, device="cuda", dtype=BF16) / 8 for _ in sets]
            biases = [torch.randn(here, size, device="cuda", dtype=BF16) for size in (between, between, hidden)]
            named = dict(zip(("gate_bias", "up_bias", "down_bias"), biases)) | {"alpha": 1.702, "beta": 1.0, "limit": 7.0}
            row = {"case": f"{name}-{tokens}"}
            for kind, options in (("plain", {}), ("gpt-oss", named)):
                if kind == "gpt-oss" and name != "gptoss120":
                    continue
                result = nvfp4.moe(inputs[0], ids, scores, *sets[0][1], expert_map=mapped, **options)
                row[kind + " error"] = layer_error(result, inputs[0], ids, scores, sets[0][0], mapped, options)
                row[kind] = timed([lambda x=x, w=w, o=options: nvfp4.moe(x, ids, scores, *w[1], expert_map=mapped, **o) for x, w in zip(inputs, sets)])
            rows.append(row)
            print(row, flush=True)
        del sets
        torch.cuda.empty_cache()


def layer_error(result, hidden, ids, scores, parts, mapped, options):
    picked = torch.randperm(hidden.shape[0], device="cuda")[:4].tolist()
    found, expected = [], []
    for token in picked:
        total = torch.zeros(hidden.shape[1], device="cuda", dtype=torch.float64)
        for expert, score in zip(ids[token].tolist(), scores[token].tolist()):
            place = expert if mapped is None else int(mapped[expert])
            if place < 0:
                continue
            gate, up, down = (exact(part[0][place], part[1][place]).double() / 64 for part in parts)
            x = hidden[token].double()
            first, second = gate @ x, up @ x
            if options:
                first, second = first + options["gate_bias"][place].double(), second + options["up_bias"][place].double()
                first, second = first.clamp(max=7.0), second.clamp(-7.0, 7.0)
                inner = first * torch.sigmoid(1.702 * first) * (second + 1.0)
            else:
                inner = torch.nn.functional.silu(first) * second
            sums = down @ inner
            total += score * (sums + options["down_bias"][place].double() if options else sums)
        found.append(result[token])
        expected.append(total)
    return error(torch.stack(found), torch.stack(expected))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds after which no further case begins")
    arguments = parser.parse_args()
    begun, rows = time.time(), {"products": [], "layers": []}
    print(f"seed {arguments.seed}, {torch.cuda.get_device_name()}", flush=True)
    try:
        if not arguments.peers:
            layers(arguments, rows["layers"], begun)
        products(arguments, rows["products"], begun)
    finally:
        with open(arguments.output, "w", encoding="utf-8") as file:
            json.dump({"seed": arguments.seed, "gpu": torch.cuda.get_device_name()} | rows, file)
            file.write("\n")
    return 0


sys.exit(main())
