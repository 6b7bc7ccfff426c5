#!/usr/bin/env python3
"""Compares Gauntlet's operators with their peers, one comparison after another, and collects intervals and verdicts in one file.

    python3 run.py --json FILE [--only NAME]… [--budget 180] [--seconds 3600]

In each comparison the peer is the baseline. Comparisons that FILE already holds are kept; those that are made anew replace theirs.
After `--seconds` no further comparison begins. A comparison whose peer is not installed is left out.
"""

import argparse
import contextlib
import datetime
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# Name, task, baseline, candidate, and a module that the baseline needs.
COMPARISONS = [
    ("products-loop", "products", "by_torch.py:loop", "ours.py:sizes", "torch"),
    ("routed-humming", "routed_products", "by_humming.py:routed", "ours.py:routed", "humming"),
    ("nvfp4-torch-fp8", "rounded_products", "by_torch.py:fp8", "ours.py:nvfp4_sizes", "torch"),
    ("attention-fa3", "attention", "by_fa3.py:attention", "ours.py:attention", "fa3_fwd_interface"),
    ("drawn-products-humming", "drawn_products", "by_humming.py:routed", "ours.py:routed", "humming"),
    ("products-grouped-mm", "products", "by_torch.py:routed", "ours.py:sizes", "torch"),
    ("attention-flash", "attention", "by_torch.py:flash", "ours.py:attention", "torch"),
    ("attention-cudnn", "attention", "by_torch.py:cudnn", "ours.py:attention", "torch"),
    ("experts-humming", "experts", "by_humming.py:moe", "ours.py:moe", "humming"),
    ("nvfp4-torch", "nvfp4_products", "by_torch.py:loop", "ours.py:nvfp4_sizes", "torch"),
    ("drawn-attention-fa3", "drawn_attention", "by_fa3.py:attention", "ours.py:attention", "fa3_fwd_interface"),
    ("cpu-torch", "cpu_products", "by_torch.py:loop", "ours.py:nvfp4_sizes", "torch"),
    ("dense-humming", "dense_products", "by_humming.py:dense", "ours.py:sizes", "humming"),
    ("routed-torch", "routed_products", "by_torch.py:routed", "ours.py:routed", "torch"),
    ("experts-torch", "experts", "by_torch.py:moe", "ours.py:moe", "torch"),
    ("dense-torch", "dense_products", "by_torch.py:loop", "ours.py:sizes", "torch"),
    ("drawn-products-torch", "drawn_products", "by_torch.py:routed", "ours.py:routed", "torch"),
    ("drawn-attention-cudnn", "drawn_attention", "by_torch.py:cudnn", "ours.py:attention", "torch"),
]
ON_CPU = "cpu-"  # what such names begin with is compared where PyTorch sees no GPU
PACKAGES = ("torch", "humming-kernels", "nvidia-cudnn-cu13")
MIN_SECONDS = 75


def machine(name, record):
    if name.startswith(ON_CPU):
        environment = record.get("environment") or {}
        return f"{environment.get('processor')}, {environment.get('processors')} processors"
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    with contextlib.suppress(OSError):
        name, driver = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()[0].split(", ")
        return f"{name}, driver {driver}"
    return "no GPU"


def versions():
    found = {}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def compared(task, baseline, candidate, budget, on_cpu):
    """The record of `gauntlet compare`, or what it said in place of one."""
    environment = {**os.environ, **({"CUDA_VISIBLE_DEVICES": ""} if on_cpu else {})}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        command = [sys.executable, "-m", "gauntlet", "compare", baseline, candidate, "--task", f"{task}.py", "--budget", f"{budget:.0f}s"]
        done = subprocess.run([*command, "--json", file], cwd=FOLDER, env=environment, capture_output=True, text=True, check=False)
        print(done.stdout, done.stderr[-2000:], flush=True)
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"reason": done.stderr[-2000:]}


def interval(found):
    return found and {key: found[key] for key in ("estimate", "lower", "upper")}


def collected(record):
    """What a table needs of a record. Times are in seconds, intervals natural logarithms of the baseline's time over ours."""
    comparison = record.get("comparison") or {}
    assessment = comparison.get("assessment") or {}
    intervals = {one["name"]: one for one in assessment.get("problems", [])}
    cases = [
        {
            "case": case["case"], "baseline": case["baseline"], "candidate": case["candidate"],
            "interval": interval(intervals[case["case"]]["interval"]),
        }
        for case in comparison.get("cases", [])
    ]
    return {
        "version": record.get("version"), "verdict": record.get("verdict"), "side": record.get("side"), "reason": record.get("reason"),
        "suite": interval(assessment.get("suite")), "cases": cases, "pairs": (comparison.get("spent") or {}).get("pairs"),
        "spent": comparison.get("spent"), "findings": record.get("findings"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--only", action="append", help="a comparison's name; may be given again")
    parser.add_argument("--budget", type=float, default=180, help="seconds of each comparison")
    parser.add_argument("--seconds", type=float, default=3600)
    given = parser.parse_args()
    begun = time.monotonic()
    result = json.loads(given.json.read_text(encoding="utf-8")) if given.json.exists() else {"comparisons": {}}
    result["drawn-with-seed"] = json.loads((FOLDER / "drawn.json").read_text(encoding="utf-8"))["seed"]
    print("shapes drawn with seed", result["drawn-with-seed"], flush=True)
    for name, task, baseline, candidate, needed in COMPARISONS:
        left = given.seconds - (time.monotonic() - begun)
        if given.only and name not in given.only or left < MIN_SECONDS:
            continue
        if importlib.util.find_spec(needed) is None:
            print(f"{name}: left out, {needed} is not installed", flush=True)
            continue
        print(f"== {name}", flush=True)
        record = compared(task, baseline, candidate, min(given.budget, left), name.startswith(ON_CPU))
        about = {"task": f"{task}.py", "baseline": baseline, "candidate": candidate}
        when = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        result["comparisons"][name] = about | {"machine": machine(name, record), "packages": versions(), "date": when} | collected(record)
        given.json.write_text(json.dumps(result, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
