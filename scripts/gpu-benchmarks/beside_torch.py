#!/usr/bin/env python3
"""Times Gauntlet's kernels and PyTorch's side by side on one Hopper GPU.

Both are timed the same way: a graph of calls that rotate over several sets of operands, replayed; the median replay,
divided by its calls. Case by case they take turns for several rounds, so that whatever the clock does befalls both.
What PyTorch offers is not the same arithmetic: bf16 operands take four times the bytes, and fp8 rounds them. GEMMs are
timed with weights as they are and repacked beforehand.

    python3 scripts/gpu-benchmarks/beside_torch.py --commit COMMIT --json FILE [--case NAME]… [--rounds 5] [--beside SCHEDULE]

`--beside before-hopper` also times the kernels that GPUs before Hopper are given, in the same turns.

The table goes to standard output, progress to standard error. Needs PyTorch 2.11 or so, and `benchmark`, built with
`cargo build --release -p gauntlet-host-cuda --example benchmark`.
"""

import argparse
import contextlib
import datetime
import json
import os
import statistics
import subprocess
import sys

import peers

REPACKED = "repacked"
STATE = "clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_event_reasons.active"


class Gauntlet:
    """`benchmark --server`: a request a line, an answer a line."""

    def __init__(self, program, commit, inputs):
        self.process = subprocess.Popen(
            [program, "--server", "--inputs", inputs],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "GAUNTLET_COMMIT": commit},
        )
        self.inputs = inputs
        greeting = self.answer()
        self.machine = greeting["machine"]
        self.problems = {case["name"]: case["problem"] for case in greeting["cases"]}

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"benchmark ended with exit code {self.process.wait()}; what it said stands above")
        return json.loads(line)

    def time(self, case, schedule):
        """The row of a case under a schedule."""
        print(json.dumps({"case": case, "schedule": schedule}), file=self.process.stdin, flush=True)
        row = self.answer()
        wrong = row.get("error") or row.get("refused")
        if wrong:
            sys.exit(f"{case}, {schedule}: {wrong}")
        if row["graph_us"] is None:
            sys.exit(f"{case}, {schedule}: with set-up in each call there is no graph to replay; use setup = once")
        return row

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def state():
    """Clocks, power, temperature and why clocks are held, as nvidia-smi tells them."""
    command = ["nvidia-smi", f"--query-gpu={STATE}", "--format=csv,noheader"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return dict(zip(STATE.split(","), answer.stdout.strip().split(", "), strict=False))


def compare(gauntlet, name, schedule, beside, rounds):
    """All times of a case on the operands that `gauntlet` has, round by round, in microseconds."""
    failed = {}
    problem = gauntlet.problems[name]
    with contextlib.ExitStack() as stack:
        contenders, times = {}, {}
        for peer, replay in peers.of(problem, gauntlet.inputs):
            try:
                contenders[peer] = stack.enter_context(replay)
                times[peer] = []
            except (RuntimeError, ValueError, NotImplementedError) as error:
                failed[peer] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                print(f"{name}: {peer} is left out: {failed[peer]}", file=sys.stderr)
        ours = {"gauntlet": schedule}
        if problem["family"] == "grouped-gemm":
            ours["repacked"] = REPACKED
        if beside:
            ours["beside"] = beside
        rows = {key: [] for key in ours}
        # Compiles, loads, and brings the clock up.
        for words in ours.values():
            gauntlet.time(name, words)
        for _ in range(rounds):
            for key, words in ours.items():
                rows[key].append(gauntlet.time(name, words))
            for peer, median in contenders.items():
                times[peer].append(median())
    return {
        "case": name,
        "inputs": gauntlet.inputs,
        "problem": problem,
        **rows,
        "peers": [{"name": peer, "us": values} for peer, values in times.items()],
        "failed": failed,
    }


def best(found, kind):
    """The least median among the peers of a kind, or none."""
    medians = [statistics.median(peer["us"]) for peer in found["peers"] if peer["name"].startswith(kind)]
    return min(medians, default=None)


def summary(found):
    """Medians over the rounds, and how many times as long the peers take."""
    ours = statistics.median(row["graph_us"] for row in found["gauntlet"])
    line = {"case": found["case"], "inputs": found["inputs"], "gauntlet_us": ours}
    if "repacked" in found:
        line["repacked_us"] = statistics.median(row["graph_us"] for row in found["repacked"])
    if "beside" in found:
        line["beside_us"] = statistics.median(row["graph_us"] for row in found["beside"])
    for kind in peers.kinds(found["problem"]):
        theirs = best(found, kind)
        line[f"{kind}_us"] = theirs
        line[f"{kind}_ratio"] = theirs and theirs / ours
    line["host_us"] = statistics.median(row["host_us"] for row in found["gauntlet"])
    return line


def table(lines):
    """A line a case."""
    def number(value, decimals):
        return "-" if value is None else f"{value:.{decimals}f}"

    text, kinds = [], None
    for line in lines:
        found = [key.removesuffix("_ratio") for key in line if key.endswith("_ratio")]
        if found != kinds:
            kinds = found
            names = [f"{kind} µs" for kind in kinds] + [f"{kind}/ours" for kind in kinds]
            text.append(f"{'case':28} {'inputs':12} {'ours µs':>9} {'repacked':>9} {'beside':>9}" + "".join(f" {name:>10}" for name in names) + f" {'host µs':>9}")
        numbers = [number(line[f"{kind}_us"], 2) for kind in kinds]
        numbers += [number(line[f"{kind}_ratio"], 3) for kind in kinds]
        text.append(
            f"{line['case']:28} {line['inputs']:12} {number(line['gauntlet_us'], 2):>9} {number(line.get('repacked_us'), 2):>9} {number(line.get('beside_us'), 2):>9}"
            + "".join(f" {value:>10}" for value in numbers)
            + f" {number(line['host_us'], 2):>9}"
        )
    return "\n".join(text)


def chosen(problems, wanted):
    """Cases by name or family; all if nothing is named."""
    unknown = [want for want in wanted if not any(want in (name, name.split("/")[0]) for name in problems)]
    if unknown:
        sys.exit(f"there is no case {unknown[0]}; there are {', '.join(problems)}")
    return [name for name in problems if not wanted or name in wanted or name.split("/")[0] in wanted]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--case", action="append", default=[], help="a case or a family; may be given again")
    arguments.add_argument("--schedule", default="automatic", help="as benchmark takes it")
    arguments.add_argument("--beside", help="a second schedule, which takes turns with the first")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--program", default="target/release/examples/benchmark")
    arguments.add_argument(
        "--inputs",
        action="append",
        choices=["wide", "competition", "outliers"],
        help="wide, if nothing is said; may be given again",
    )
    arguments.add_argument("--commit", default="unknown", help="what benchmark was built from")
    arguments.add_argument("--json", help="where raw times go")
    arguments = arguments.parse_args()

    servers = [Gauntlet(arguments.program, arguments.commit, inputs) for inputs in arguments.inputs or ["wide"]]
    before, results, lines = state(), [], []

    def write():
        found = {
            "machine": servers[0].machine,
            "torch": peers.versions(),
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "rounds": arguments.rounds,
            "before": before,
            "after": state(),
            "summary": lines,
            "cases": results,
        }
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1, ensure_ascii=False)
            file.write("\n")

    for name in chosen(servers[0].problems, arguments.case):
        for gauntlet in servers:
            print(name, gauntlet.inputs, file=sys.stderr, flush=True)
            results.append(compare(gauntlet, name, arguments.schedule, arguments.beside, arguments.rounds))
            lines.append(summary(results[-1]))
            # After each case, so that an end before the last one leaves the others.
            if arguments.json:
                write()
    for gauntlet in servers:
        gauntlet.close()
    print(table(lines))


if __name__ == "__main__":
    main()
