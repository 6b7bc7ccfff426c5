#!/usr/bin/env python3
"""Measures the figures of a Hopper GPU that simulations need and no data sheet has.

Each micro-benchmark is a kernel of its own, compiled for sm_90a at run time. Times inside a kernel are clock64 of one
multiprocessor, so that the clock of the moment does not matter; times of whole kernels are device events around a
replayed graph. Needs CuPy and a Hopper GPU.

    python3 scripts/gpu-parameters/measure.py COMMIT > results/DATE-h200-parameters.json

One thread waits, arms a barrier and starts each copy, so that copies of 4 KiB are bound by its instructions: about 130
cycles each. Launches in a stream are bound by the Python that makes them.
"""

import datetime
import json
import statistics
import subprocess
import sys

import cupy

import kernels

REPEATS = 15


def compiled(source, name):
    return cupy.RawModule(code=source, backend="nvrtc", options=("-arch=sm_90a", "--std=c++17")).get_function(name)


def cycles(source, blocks, threads, arguments=(), shared=0, name="measure"):
    """What the kernel writes for its first block, per repeat (a list of lists of int)."""
    function = compiled(source, name)
    function.max_dynamic_shared_size_bytes = shared
    readings = []
    for _ in range(REPEATS + 2):
        out = cupy.zeros(64, dtype=cupy.int64)
        function((blocks,), (threads,), (out, *arguments), shared_mem=shared)
        readings.append(out.get().tolist())
    return readings[2:]


class Report:
    """Figures with their spread."""

    def __init__(self):
        self.parameters = []

    def add(self, name, unit, values, note=""):
        self.parameters.append(
            {
                "name": name,
                "unit": unit,
                "value": statistics.median(values),
                "low": min(values),
                "high": max(values),
                "samples": len(values),
                "note": note,
            }
        )
        last = self.parameters[-1]
        print(f"{name:58} {last['value']:12.4g} {unit:10} [{last['low']:.4g} … {last['high']:.4g}]", file=sys.stderr)


def matrix(report):
    count = 1024
    for columns in [8, 16, 32, 64, 96, 128, 192, 256]:
        for flight in [1, 2, 4, 16] if columns in (64, 256) else [16]:
            readings = cycles(kernels.wgmma(columns, flight, count), 1, 128, shared=100 * 1024)
            report.add(
                f"wgmma.m64n{columns}k16.in-flight-{flight}",
                "cycles",
                [reading[0] / count for reading in readings],
                "one warp group, fp16 from shared memory with fp32 sums, cycles an instruction, waiting for each group",
            )
    for warps in [1, 4, 8]:
        count = 512
        values = [reading[0] / count / 4 for reading in cycles(kernels.mma_sync(count), 1, 32 * warps)]
        report.add(f"mma-sync.m16n8k16.warps-{warps}", "cycles", values, "cycles an instruction of one warp, 4 independent")


def arithmetic(report):
    for threads in [128, 256, 512]:
        count = 512
        values = [count * 32 * threads / reading[0] for reading in cycles(kernels.convert(count), 1, threads, (1,))]
        report.add(
            f"convert.nvfp4-to-fp16.threads-{threads}",
            "op/clk",
            values,
            "values a clock and multiprocessor, registers to registers, one scale for 16 values",
        )
        values = [count * 8 * threads / reading[0] for reading in cycles(kernels.exponential(count), 1, threads)]
        report.add(f"exponential.threads-{threads}", "op/clk", values, "ex2.approx a clock and multiprocessor")


def barriers(report):
    count = 256
    for threads in [128, 256, 384]:
        values = [reading[0] / count for reading in cycles(kernels.block_barrier(count), 1, threads)]
        report.add(f"block-barrier.threads-{threads}", "cycles", values, "__syncthreads in a loop of nothing else")
    values = [reading[0] / count for reading in cycles(kernels.hand_over(count), 1, 64, shared=1024)]
    report.add("full-and-empty-barrier", "cycles", values, "two warps hand a slot back and forth: one round trip")
    counter = cupy.zeros(1, dtype=cupy.int32)
    values = [reading[0] / count for reading in cycles(kernels.counter(count), 1, 32, (counter,))]
    report.add("counter-in-global-memory", "cycles", values, "atomicAdd that waits for its value")


def copies(report):
    large = cupy.random.randint(0, 255, size=1 << 30, dtype=cupy.uint8)
    for size in [1024, 2048, 4096, 8192, 16384, 32768]:
        for where in ["memory", "l2"]:
            readings = cycles(kernels.copy_latency(size, where), 1, 32, (large,), shared=40 * 1024)
            values = [cycle for reading in readings for cycle in reading[:8]]
            report.add(f"bulk-copy.latency.{where}.bytes-{size}", "cycles", values, "one copy, from issue to full barrier")
    for size in [4096, 8192, 16384]:
        for slots in [1, 2, 4, 6, 8, 12]:
            for where, span, blocks in [("memory", 1 << 28, 132), ("l2", 1 << 22, 132), ("l2", 1 << 22, 1)]:
                each = span // blocks // size * size
                steps = max(each // size, 2048)
                source = kernels.copy_stream(size, slots, steps, each)
                readings = cycles(source, blocks, 32, (large,), shared=size * slots + 1024)
                report.add(
                    f"bulk-copy.rate.{where}.blocks-{blocks}.bytes-{size}.slots-{slots}",
                    "B/clk",
                    [steps * size / reading[0] for reading in readings],
                    "into one block, slots in flight, nothing done with them",
                )


def stores(report):
    out = cupy.zeros(1 << 28, dtype=cupy.uint8)
    for how in ["direct", "bulk"]:
        for blocks in [1, 132]:
            count = 64
            readings = cycles(kernels.store(how, count), blocks, 128, (out,), shared=40 * 1024)
            values = [count * 128 * 128 * 2 / reading[0] for reading in readings]
            report.add(
                f"store.{how}.blocks-{blocks}",
                "B/clk",
                values,
                "128 × 128 fp16 tiles out of one block: by the layout of wgmma's sums, or rows by bulk copies",
            )


def launches(report):
    empty = compiled(kernels.EMPTY, "measure")
    stream = cupy.cuda.Stream(non_blocking=True)
    count = 200
    for blocks in [1, 132, 1320]:
        with stream:
            stream.begin_capture()
            for _ in range(count):
                empty((blocks,), (128,), ())
            graph = stream.end_capture()
        for how in ["graph", "stream"]:
            values = []
            for _ in range(REPEATS + 2):
                start, end = cupy.cuda.Event(), cupy.cuda.Event()
                with stream:
                    start.record()
                    if how == "graph":
                        graph.launch(stream)
                    else:
                        for _ in range(count):
                            empty((blocks,), (128,), ())
                    end.record()
                end.synchronize()
                values.append(cupy.cuda.get_elapsed_time(start, end) * 1e3 / count)
            report.add(f"launch.{how}.blocks-{blocks}", "µs", values[2:], "an empty kernel of 128 threads after another")


def clock_under_load():
    """Hz of a multiprocessor while all multiply."""
    readings = cycles(kernels.loaded_clock(60000), 132, 128, shared=100 * 1024)
    return [reading[0] / reading[1] * 1e9 for reading in readings]


def main():
    report = Report()
    clock = clock_under_load()
    report.add("clock.matrix-load", "MHz", [value / 1e6 for value in clock], "all multiprocessors in wgmma, zeros as operands")
    matrix(report)
    arithmetic(report)
    barriers(report)
    copies(report)
    stores(report)
    launches(report)
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True, check=True
    ).stdout.strip()
    json.dump(
        {
            "device": properties["name"].decode(),
            "processors": properties["multiProcessorCount"],
            "driver": driver,
            "commit": sys.argv[1] if len(sys.argv) > 1 else "unknown",
            "date": datetime.date.today().isoformat(),
            "parameters": report.parameters,
        },
        sys.stdout,
        indent=1,
        ensure_ascii=False,
    )
    print()


if __name__ == "__main__":
    main()
