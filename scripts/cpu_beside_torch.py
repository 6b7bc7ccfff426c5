"""What cpu-attention-beside-torch and cpu-gemm-beside-torch share: a worker of Gauntlet and PyTorch that take turns,
call by call, in one run; whoever waits sleeps."""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import torch


# Seconds before each turn, after which the threads of whoever had the one before sleep instead of looking for work.
PAUSE = 0.02


class Worker:
    """`gauntlet worker cpu`: JSON lines over its standard input and output."""

    def __init__(self, program, threads, simd):
        command = [program, "worker", "cpu", "--threads", str(threads)]
        if simd:
            command += ["--simd", simd]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.calls = 0

    def ask(self, call, **words):
        self.calls += 1
        print(json.dumps({"id": self.calls, "call": call, **words}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the worker ended with exit code {self.process.wait()}; what it said stands above")
        reply = json.loads(line)
        if "error" in reply:
            sys.exit(f"{call}: {reply['error']['message']}")
        return reply

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def write_safetensors(path, tensors):
    """Writes (name, type, shape, bytes) tuples; the format is a length, a JSON header, and the bytes."""
    header, data = {}, b""
    for name, kind, shape, content in tensors:
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def read_f16(path, shape):
    """The result of a call: one matrix a sequence and head, in order."""
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    parts = sorted((place["data_offsets"][0], place) for name, place in header.items() if name != "__metadata__")
    data = b"".join(content[begin + place["data_offsets"][0] : begin + place["data_offsets"][1]] for _, place in parts)
    return torch.frombuffer(bytearray(data), dtype=torch.float16).reshape(shape)


def milliseconds(work):
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


class Ours:
    """One schedule of Gauntlet on one case, with sets of operands that rotate."""

    def __init__(self, worker, problem, schedule, paths):
        self.worker, self.sets = worker, len(paths)
        worker.ask("build", problem=problem, schedule=schedule)
        worker.ask("load", inputs=[str(path) for path in paths], copies=len(paths))

    def result(self, shape, folder):
        """What it computes of the first set."""
        self.worker.ask("run", copy=0)
        self.worker.ask("output", path=str(folder / "output"))
        return read_f16(folder / "output", shape)

    def __call__(self, turn):
        samples = self.worker.ask("time", copies=[turn % self.sets], phases=False)["samples"]
        return samples[0]["call"] * 1e3


class Theirs:
    """A function of PyTorch, with sets of operands that rotate."""

    def __init__(self, function, sets):
        self.function, self.sets = function, sets

    def result(self):
        """What it computes of the first set."""
        return self.function(*self.sets[0])

    def __call__(self, turn):
        operands = self.sets[turn % len(self.sets)]
        return milliseconds(lambda: self.function(*operands))


def nrmse(found, wanted):
    """Root mean square error over the root mean square of the result in fp64."""
    return ((found.double() - wanted).pow(2).mean() / wanted.pow(2).mean()).sqrt().item()


def take_turns(contenders, arguments):
    """All times of each contender in milliseconds."""
    times = {title: [] for title in contenders}
    order = list(contenders)
    for turn in range(-arguments.warm_up, arguments.rounds):
        # Nobody always follows the same one.
        order = order[1:] + order[:1]
        for title in order:
            time.sleep(PAUSE)
            # Wakes its own threads, which is not counted: calls in a row find them awake.
            contenders[title](turn - 1)
            elapsed = contenders[title](turn)
            if turn >= 0:
                times[title].append(elapsed)
    return times


def machine(threads):
    model = next(
        (line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    return {
        "processor": model,
        "system": platform.platform(),
        "threads": threads,
        "first-in-first-out": os.sched_getscheduler(0) == os.SCHED_FIFO,
        "nice": os.nice(0),
        "load": os.getloadavg(),
    }


def report(cases, title_width):
    """One line a contender, and how many times as fast as it each schedule of Gauntlet is: the median of each turn's
    ratio, as neighbours in time share what disturbs them."""
    for case in cases:
        ours = {title: times for title, times in case["milliseconds"].items() if title.startswith("gauntlet")}
        for title, times in case["milliseconds"].items():
            ratios = [
                statistics.median(their / our for our, their in zip(own, times, strict=True))
                for own in ours.values()
                if title not in ours
            ]
            low, middle, high = statistics.quantiles(times, n=4)
            print(
                f"{case['case']:{title_width}} {middle:8.3f} ms ({low:.3f}…{high:.3f}, least {min(times):.3f})  "
                f"NRMSE {case['nrmse'][title]:.1e}  {title}" + "".join(f"  {ratio:.2f}×" for ratio in ratios)
            )


def run(documentation, cases, default_schedule, compare):
    """Reads the arguments, has `compare(workers, name, arguments, folder)` time each case, and reports. Without a schedule
    asked for it is `default_schedule(details)`, of what the worker says of itself."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gauntlet", default="target/release/gauntlet", help="the program")
    parser.add_argument("--schedule", action="append", help="a schedule as JSON; may be given several times")
    parser.add_argument("--simd", help="instruction set of Gauntlet's worker; the best there is by default")
    parser.add_argument("--case", action="append", choices=sorted(cases), help="only this case")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--warm-up", type=int, default=5, help="rounds that are not counted")
    parser.add_argument("--sets", type=int, default=4, help="sets of operands")
    parser.add_argument("--json", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    schedules = [json.loads(text) for text in arguments.schedule or []] or [None]
    found = []
    with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        workers = {}
        for schedule in schedules:
            worker = Worker(arguments.gauntlet, arguments.threads, arguments.simd)
            stack.callback(worker.close)
            description = worker.ask("describe")
            schedule = schedule or default_schedule(description["details"])
            words = ", ".join(f"{word} {value}" for word, value in schedule.items())
            workers[f"gauntlet ({words})"] = (worker, schedule)
        for name in arguments.case or cases:
            found.append(compare(workers, name, arguments, pathlib.Path(folder)))
    report(found, max(map(len, cases)))
    result = {
        "date": datetime.date.today().isoformat(),
        "machine": machine(arguments.threads),
        "gauntlet": description,
        "torch": torch.__version__,
        "cases": found,
    }
    arguments.json.write_text(json.dumps(result, indent=1) + "\n")
