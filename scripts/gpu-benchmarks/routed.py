"""Times products whose routing the device knows, and whole mixtures, beside PyTorch on a Hopper GPU of its own.

    routed.py JSON [--parts products,drawn,layers,host] [--seed N] [--bf16] [--limit SECONDS]

Calls are captured, with operands that change from call to call and exceed the level-2 cache, and replayed in turns with the peers' calls.
Times are medians, in microseconds a call. Every product is compared with a product in f64 of a part of its rows.
"""

import argparse
import json
import random
import statistics
import time

import torch

from gauntlet import nvfp4

BF16 = torch.bfloat16
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
    ("gptoss120-down", 128, 128, 4, 2880, 2880),
    ("gptoss120-gateup", 128, 128, 4, 5760, 2880),
    ("mixtral22-gateup", 8, 8, 2, 32768, 6144),
    ("mixtral22-down", 8, 8, 2, 6144, 16384),
]
TOKENS = (8, 64, 512, 4096, 16384)
MODELS = [(64, 6, 2048, 1408), (160, 8, 5120, 1536), (256, 8, 6144, 2048), (128, 8, 4096, 1536), (64, 8, 2048, 1024), (16, 2, 4096, 6400), (384, 8, 7168, 2048)]
# Experts of the model, those here, experts of a token, hidden, intermediate.
LAYERS = [
    ("qwen30", 128, 128, 8, 2048, 768, (1, 8, 64, 512, 2048, 4096, 8192)),
    ("dsv3-ep8", 256, 32, 8, 7168, 2048, (8, 64, 512, 4096)),
    ("gptoss120", 128, 128, 4, 2880, 2880, (1, 8, 64, 512, 4096)),
]


def stack(experts, n, k):
    codes = torch.randint(0, 256, (experts, n, k // 2), device="cuda", dtype=torch.uint8) & 0b10111011
    scales = (torch.randint(0, 2, (experts, n, k // 16), device="cuda") + 1).to(torch.float32).to(torch.float8_e4m3fn)
    return codes, scales


def exact(codes, scales):
    values = torch.stack((codes & 15, codes >> 4), -1).view(codes.shape[0], -1)
    signed = torch.tensor(MAGNITUDES, device="cuda")[(values & 7).int()] * torch.where(values > 7, -1.0, 1.0)
    return signed * scales.float().repeat_interleave(16, -1)


def routing(experts, chosen, tokens):
    """The experts of each token by Zipf's law with exponent 0.6, in a random order of the experts."""
    weights = (1 + torch.arange(experts, device="cuda")).float().pow(-0.6)[torch.randperm(experts, device="cuda")]
    return torch.multinomial(weights.expand(tokens, experts), chosen)


def captured(calls, count):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph, results = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph, stream=stream):
        for i in range(count):
            results.append(calls[i % len(calls)]())
    return graph, results


def timed(by_kind, turns=7, count=12):
    """Microseconds a call of each kind, in turns, and the first result of each."""
    graphs = {kind: captured(calls, count) for kind, calls in by_kind.items()}
    for graph, _ in graphs.values():
        graph.replay()
    times, begin, end = {kind: [] for kind in graphs}, *(torch.cuda.Event(enable_timing=True) for _ in range(2))
    for turn in range(turns):
        for kind in list(graphs) if turn % 2 else list(graphs)[::-1]:
            begin.record()
            graphs[kind][0].replay()
            end.record()
            end.synchronize()
            times[kind].append(begin.elapsed_time(end) * 1000 / count)
    return {kind: round(statistics.median(t), 2) for kind, t in times.items()}, {kind: results[0] for kind, (_, results) in graphs.items()}


class Product:
    """A stack of weights, as each kind takes it."""

    def __init__(self, kinds, here, n, k):
        self.codes, self.scales = stack(here, n, k)
        self.weights = nvfp4.Weights(nvfp4.Tensor(self.codes, self.scales, 1.0), tokens=BF16)
        if "bf16" in kinds:
            self.brain = torch.stack([exact(self.codes[i], self.scales[i]).to(BF16) for i in range(here)])

    def call(self, kind, x, offs, counts):
        if kind == "offs":
            return nvfp4.grouped_mm(x, self.weights, offs=offs)
        if kind == "sizes":
            return nvfp4.grouped_mm(x, self.weights, counts)
        if kind == "bf16":
            return torch._grouped_mm(x, self.brain.transpose(-2, -1), offs=offs)
        return [part @ self.brain[i].T for i, part in enumerate(x.split(counts)) if counts[i]]


def error(own, x, counts, result):
    begins = [0]
    for count in counts:
        begins.append(begins[-1] + count)
    worst = 0.0
    for i in {*sorted(range(len(counts)), key=lambda i: -counts[i])[:2], max(i for i, count in enumerate(counts) if count)}:
        rows = slice(begins[i], min(begins[i + 1], begins[i] + 128))
        wanted = x[rows].double() @ exact(own.codes[i], own.scales[i]).double().T
        worst = max(worst, float((result[rows].double() - wanted).norm() / wanted.norm()))
    return round(worst, 5)


def product_cases(seed, parts):
    if "products" in parts:
        yield from ((name, counts, n, k, len(counts), None) for name, counts, n, k in SEEDS)
        for name, experts, here, chosen, n, k in PRODUCTS:
            yield from ((f"{name}-{tokens}", None, n, k, here, (experts, chosen, tokens)) for tokens in TOKENS)
    if "drawn" in parts:
        draw = random.Random(seed)
        for _ in range(10):
            experts, chosen, hidden, between = draw.choice(MODELS)
            part = draw.choice([1, 2, 4, 8])
            n, k = draw.choice([(2 * between, hidden), (hidden, between)])
            tokens = round(2 ** draw.uniform(0, 12))
            yield f"drawn-{experts}-{n}x{k}-part{part}-{tokens}", None, n, k, experts // part, (experts, chosen, tokens)


def products(options, rows):
    made, key = None, None
    for index, (name, counts, n, k, here, drawn) in enumerate(product_cases(options.seed, options.parts)):
        if time.time() > options.end:
            return
        torch.manual_seed(options.seed + index)
        if counts is None:
            counts = torch.bincount(routing(*drawn).reshape(-1), minlength=drawn[0])[:here].tolist()
        counts[0] += sum(counts) == 0
        kinds = ["offs", "sizes"] + (["bf16"] + ["loop"] * (here <= 8) if options.bf16 else [])
        if key != (here, n, k):
            made = None
            made = [Product(kinds, here, n, k) for _ in range(max(2, min(8, -(-(200 << 20) // (here * n * k)))))]
            key = (here, n, k)
        offs = torch.tensor(counts, device="cuda").cumsum(0).to(torch.int32)
        xs = [torch.randn(sum(counts), k, device="cuda", dtype=BF16) for _ in made]
        calls = {kind: [lambda own=own, x=x, kind=kind: own.call(kind, x, offs, counts) for own, x in zip(made, xs)] for kind in kinds}
        times, results = timed(calls, *((3, len(made)) if sum(counts) > 8192 else (7, 12)))
        rows.append({"case": name} | times | {"error": error(made[0], xs[0], counts, results["offs"])})
        print(rows[-1], flush=True)


def layers(options, rows):
    for name, experts, here, chosen, hidden, between, counts in LAYERS:
        torch.manual_seed(options.seed)
        sets = [
            [nvfp4.Weights(nvfp4.Tensor(*stack(here, *shape), 1 / 64), tokens=BF16) for shape in ((between, hidden), (between, hidden), (hidden, between))]
            for _ in range(2)
        ]
        mapped = None
        if here < experts:
            mapped = torch.full((experts,), -1, dtype=torch.int32, device="cuda")
            mapped[torch.randperm(experts, device="cuda")[:here]] = torch.arange(here, dtype=torch.int32, device="cuda")
        for tokens in counts:
            if rows and time.time() > options.end:
                return
            # The routing of each call is another one than that of the call before.
            ids = [routing(experts, chosen, tokens) for _ in range(6)]
            scores = torch.rand(tokens, chosen, device="cuda").softmax(-1)
            xs = [torch.randn(tokens, hidden, device="cuda", dtype=BF16) / 8 for _ in sets]
            calls = [lambda i=i: nvfp4.moe(xs[i % 2], ids[i], scores, *sets[i % 2], expert_map=mapped) for i in range(6)]
            times, _ = timed({"moe": calls}, 7 if tokens < 4096 else 3, 12)
            rows.append({"case": f"{name}-{tokens}"} | times)
            print(rows[-1], flush=True)
        del sets


def host(options, rows):
    """The host's time of a call, in microseconds: while the GPU is behind."""
    groups, n, k = 32, 1024, 1024
    weights = nvfp4.Weights(nvfp4.Tensor(*stack(groups, n, k), 1.0), tokens=BF16)
    x, draw = torch.randn(512, k, device="cuda", dtype=BF16), random.Random(options.seed)

    def sizes_of(total):
        cuts = sorted(draw.randint(0, total) for _ in range(groups - 1))
        return [b - a for a, b in zip([0, *cuts], [*cuts, total])]

    lists = [sizes_of(512) for _ in range(60)]
    totals = [draw.randint(256, 512) for _ in range(60)]
    others = [sizes_of(total) for total in totals]
    tensors = [x[:total] for total in totals]
    offs = [torch.tensor(one, device="cuda").cumsum(0).to(torch.int32) for one in others]
    same = lists[0]
    ways = {
        "offs, the same rows": lambda i: nvfp4.grouped_mm(x, weights, offs=offs[0]),
        "offs, other rows each time": lambda i: nvfp4.grouped_mm(tensors[i], weights, offs=offs[i]),
        "sizes, the same": lambda i: nvfp4.grouped_mm(x, weights, same),
        "sizes, others of the same sum": lambda i: nvfp4.grouped_mm(x, weights, lists[i]),
        "sizes, others of any sum": lambda i: nvfp4.grouped_mm(tensors[i], weights, others[i]),
    }
    for name, call in ways.items():
        for _ in range(20):
            if "same" in name and "others" not in name:
                call(0)
        times = []
        for i in range(60):
            torch.cuda.synchronize()
            begun = time.perf_counter_ns()
            call(i)
            times.append((time.perf_counter_ns() - begun) / 1000)
        rows.append({"case": name, "first": round(times[0], 1), "median": round(statistics.median(times), 1), "longest": round(max(times[1:]), 1)})
        print(rows[-1], flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("output")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=["products", "drawn", "layers", "host"])
    parser.add_argument("--bf16", action="store_true", help="PyTorch's products too")
    parser.add_argument("--seed", type=int, default=20261129)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which no further case begins")
    options = parser.parse_args()
    options.end = time.time() + options.limit
    result = {"seed": options.seed, "gpu": torch.cuda.get_device_name()}
    print(result, flush=True)
    for part, work in (("host", host), ("products", products), ("layers", layers)):
        if part in options.parts or (part == "products" and "drawn" in options.parts):
            result[part] = []
            work(options, result[part])
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(result, file)
        file.write("\n")


main()
