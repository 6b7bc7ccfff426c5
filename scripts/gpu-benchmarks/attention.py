#!/usr/bin/env python3
"""Times nvfp4.attention on one Hopper GPU beside FlashAttention-3, cuDNN and PyTorch's flash kernel, after a check against fp64.

Usage: attention.py [--seed N] [--drawn N] [--only TEXT] [--fa3 FOLDER] [--json FILE]

Cases are those of CASES, and `--drawn` more of each class, of heads, groups, lengths and batches as published models have them,
drawn by the seed that is printed. A case is named `CLASS bBATCH hHEADS/KV QUERIESxKEYS dSIZE`; of few queries and chunks the mask is
causal, aligned at the end. Each contender's calls are captured in a graph over operands of more than 150 MB; graphs are
replayed in alternating turns, and the median of the turns is given, in microseconds a call. FlashAttention-3 is that of the
package `fa3-fwd` in FOLDER, with its own choice of splits and packing.
"""
from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from gauntlet import nvfp4

ROUNDS = 7
OPERAND_BYTES = 150 << 20
FORMATS = {"bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "int8": torch.int8}


@dataclass(frozen=True)
class Case:
    kind: str
    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    size: int
    causal: bool

    def __str__(self) -> str:
        return f"{self.kind} b{self.batch} h{self.heads}/{self.kv_heads} {self.queries}x{self.keys} d{self.size}"

    def key_bytes(self, form: str) -> int:
        """Of keys and values."""
        return 2 * self.batch * self.kv_heads * self.keys * self.size * FORMATS[form].itemsize


def _one(batch, keys, size=128, heads=32, kv=8):
    return Case("one", batch, heads, kv, 1, keys, size, False)


def _few(batch, queries, keys, size=128, heads=32, kv=4):
    return Case("few-alone" if batch == 1 else "few", batch, heads, kv, queries, keys, size, True)


CASES = [
    _one(1, 8192), _one(1, 32768), _one(8, 8192), _one(8, 32768), _one(32, 2048), _one(8, 8192, 64), _one(1, 8192, 128, 32, 4),
    _one(1, 131072),
    _few(1, 4, 8192), _few(1, 4, 32768), _few(1, 16, 8192), _few(1, 16, 32768), _few(1, 3, 16384), _few(1, 8, 16384, 64),
    _few(4, 4, 8192), _few(8, 4, 8192), _few(8, 16, 8192), _few(32, 4, 8192), _few(32, 16, 8192), _few(8, 8, 32768), _few(8, 4, 8192, 64),
    Case("prefill", 4, 16, 16, 4096, 4096, 128, True), Case("prefill", 1, 32, 8, 8192, 8192, 128, True),
    Case("prefill", 1, 16, 16, 2048, 2048, 64, True), Case("prefill", 4, 16, 16, 2048, 2048, 128, True),
    Case("chunk", 1, 32, 8, 512, 8192, 128, True), Case("chunk", 1, 32, 8, 1024, 16384, 128, True),
]

# (query heads, key heads, head size) of published models: Llama 3 8B and 70B, Qwen3 30B and 235B, gpt-oss, Mistral Small, GLM 4.5.
HEADS = [(32, 8, 128), (64, 8, 128), (32, 4, 128), (64, 4, 128), (64, 8, 64), (32, 8, 128), (96, 8, 128)]


def drawn(seed: int, count: int) -> list[Case]:
    """As many cases of each class."""
    random_ = random.Random(seed)
    cases = []
    for kind in ("one", "few-alone", "few", "prefill", "chunk"):
        for _ in range(count):
            heads, kv, size = random_.choice(HEADS)
            length = lambda low, high: int(2 ** random_.uniform(math.log2(low), math.log2(high)))  # noqa: E731
            batch = 1 if kind in ("few-alone", "chunk") else random_.choice((1, 2, 4, 8, 16, 32)) if kind == "one" else random_.choice((4, 8, 16, 32))
            if kind == "prefill":
                batch, queries = random_.choice((1, 2, 4)), length(1024, 8192)
                keys = queries
            else:
                keys = length(2048, 65536 if batch <= 4 else 16384)
                queries = {"one": 1, "chunk": random_.choice((128, 256, 512, 1024))}.get(kind) or random_.randint(3, 16)
            cases.append(Case(kind, batch, heads, kv, queries, keys, size, kind != "one"))
    return cases


class Operands:
    """Sets of operands of a case in one format, and calls on them."""

    def __init__(self, case: Case, form: str, seed: int) -> None:
        torch.manual_seed(seed)
        self.case, self.form = case, form
        count = min(max(2, -(-OPERAND_BYTES // case.key_bytes(form))), 16)
        self.sets = [self._drawn() for _ in range(count)]
        self.scales = {}
        if form == "e4m3":
            self.scales = {"query_scale": 1.0, "key_scale": 1.0, "value_scale": 1.0}
        elif form == "int8":
            scale = lambda heads: torch.full((case.batch, heads), 1 / 32, device="cuda")  # noqa: E731
            self.scales = {"query_scale": scale(case.heads), "key_scale": scale(case.kv_heads), "value_scale": scale(case.kv_heads)}

    def _drawn(self) -> list[torch.Tensor]:
        case = self.case
        shapes = [(case.batch, case.heads, case.queries), (case.batch, case.kv_heads, case.keys), (case.batch, case.kv_heads, case.keys)]
        drawn = []
        for shape in shapes:
            values = torch.randn(*shape, case.size, device="cuda", dtype=torch.bfloat16)
            drawn.append((values * 32).clamp(-127, 127).round().to(torch.int8) if self.form == "int8" else values.to(FORMATS[self.form]))
        return drawn

    def ours(self, index: int) -> torch.Tensor:
        return nvfp4.attention(*self.sets[index], **self.scales, is_causal=self.case.causal, out_dtype=torch.bfloat16)

    def contenders(self, with_fa3: bool) -> dict[str, object]:
        found = {"ours": self.ours}
        if with_fa3 and self.form != "int8":
            found["fa3"] = self._fa3()
        if self.form == "bf16":
            for name, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION), ("flash", SDPBackend.FLASH_ATTENTION)):
                # Of few queries PyTorch's causal mask is another one; without a mask the work is the same.
                if not self.case.causal or self.case.queries <= 16 or self.case.queries == self.case.keys:
                    found[name] = self._torch(backend)
        return found

    def _fa3(self):
        from fa3_fwd_interface import flash_attn_func

        # Its own layout: positions before heads.
        self.turned = [[operand.transpose(1, 2).contiguous() for operand in one] for one in self.sets]
        case = self.case
        scales = {}
        if self.form == "e4m3":
            ones = torch.ones(case.batch, case.kv_heads, device="cuda")
            scales = {"q_descale": ones, "k_descale": ones, "v_descale": ones}

        def call(index: int) -> torch.Tensor:
            out = flash_attn_func(*self.turned[index], causal=case.causal, num_splits=0, **scales)
            return out[0] if isinstance(out, tuple) else out

        call.turned = True
        return call

    def _torch(self, backend):
        causal = self.case.causal and self.case.queries == self.case.keys
        shared = self.case.heads != self.case.kv_heads

        def call(index: int) -> torch.Tensor:
            with sdpa_kernel([backend]):
                return scaled_dot_product_attention(*self.sets[index], is_causal=causal, enable_gqa=shared)

        call.unmasked = self.case.causal and not causal
        return call

    def error(self, call) -> float:
        """The relative root-mean-square error beside fp64, of the first sequence and at most 32 of its queries."""
        case = self.case
        found = call(0)
        torch.cuda.synchronize()
        if getattr(call, "turned", False):
            found = found.transpose(1, 2)
        query, key, value = (one[:1].double() for one in self.sets[0])
        if self.form == "int8":
            query, key, value = query / 32, key / 32, value / 32
        picked = torch.linspace(0, case.queries - 1, min(case.queries, 32)).round().long().unique().cuda()
        total = seen = 0.0
        group = case.heads // case.kv_heads
        for head in range(case.kv_heads):
            own = query[0, head * group : (head + 1) * group][:, picked]
            scores = own @ key[0, head].T / math.sqrt(case.size)
            if case.causal and not getattr(call, "unmasked", False):
                limit = picked + case.keys - case.queries
                scores.masked_fill_(torch.arange(case.keys, device="cuda")[None, :] > limit[:, None], -math.inf)
            expected = scores.softmax(-1) @ value[0, head]
            off = found[0, head * group : (head + 1) * group][:, picked].double() - expected
            total += off.square().sum().item()
            seen += expected.square().sum().item()
        return math.sqrt(total / seen)


def captured(call, count: int) -> tuple[torch.cuda.CUDAGraph, int]:
    """A graph of calls that take 2 ms or more together, and their number."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for index in range(count):
            call(index)
        stream.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record(stream)
        for index in range(count):
            call(index)
        end.record(stream)
        stream.synchronize()
        repeats = min(max(1, math.ceil(2.0 / max(begin.elapsed_time(end), 1e-3))), max(1, 400 // count))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for index in list(range(count)) * repeats:
                call(index)
    return graph, count * repeats


def timed(calls: dict[str, object], count: int) -> dict[str, list[float]]:
    """Microseconds a call of each contender, turn by turn."""
    graphs = {name: captured(call, count) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in graphs}
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for turn in range(ROUNDS):
        order = list(graphs)
        for name in order if turn % 2 == 0 else reversed(order):
            graph, number = graphs[name]
            graph.replay()
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) * 1000 / number)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--drawn", type=int, default=0, help="cases of each class to draw beside CASES")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--formats", default="bf16,e4m3,int8")
    parser.add_argument("--fa3", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no case after this time")
    given = parser.parse_args()
    if given.fa3:
        sys.path.insert(0, str(given.fa3))
    print("seed", given.seed, "on", torch.cuda.get_device_name(), flush=True)
    start, rows = time.monotonic(), []
    cases = [case for case in CASES + drawn(given.seed, given.drawn) if given.only in str(case)]
    for number, case in enumerate(cases):
        for form in given.formats.split(","):
            if time.monotonic() - start > given.seconds:
                print("left out:", case, form, flush=True)
                continue
            row = measured(case, form, number, given.fa3 is not None)
            rows.append(row)
            peers = [row["us"][name] for name in row["us"] if name != "ours"]
            ratio = f"{min(peers) / row['us']['ours']:.2f}" if peers and "ours" in row["us"] else "-"
            print(f"{case!s:42} {form:5}", *(f"{name} {us:.1f}" for name, us in row["us"].items()), "| best peer / ours", ratio,
                  f"| {case.key_bytes(form) / 1e6 / row['us'].get('ours', math.inf):.2f} TB/s |",
                  *(f"{name} {error:.1e}" for name, error in row["errors"].items()), *row["failures"].values(), flush=True)
            if given.json:
                given.json.write_text(json.dumps({"seed": given.seed, "device": torch.cuda.get_device_name(), "torch": torch.__version__, "cases": rows}))


def measured(case: Case, form: str, seed: int, with_fa3: bool) -> dict[str, object]:
    operands = Operands(case, form, seed)
    errors, failures, calls = {}, {}, {}
    for name, call in operands.contenders(with_fa3).items():
        try:
            errors[name] = operands.error(call)
            calls[name] = call
        except Exception as failure:  # a peer that does not take the case
            failures[name] = f"{name}: {str(failure).splitlines()[0][:120]}"
    times = timed(calls, len(operands.sets))
    return {
        "case": str(case), "kind": case.kind, "format": form, "key_bytes": case.key_bytes(form), "errors": errors, "failures": failures,
        "us": {name: statistics.median(turns) for name, turns in times.items()}, "turns": times,
    }


if __name__ == "__main__":
    main()
