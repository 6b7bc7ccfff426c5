"""Seconds from `import` to the first results of NVFP4 layers on a Hopper GPU, in fresh processes.

    python first_calls.py [--json FILE]

`shipped` has the kernels that come with a wheel of `scripts/wheel`, `compiled` has none and an empty cache, and `cached` is the same
a second time. PyTorch is imported and has the GPU open before the clock starts, because every program with a GPU waits for that.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CHILD = """
import json, sys, time
import torch
torch.zeros(1, device="cuda").item()
steps, begun = {}, time.perf_counter()
def step(name):
    torch.cuda.synchronize()
    steps[name] = time.perf_counter() - begun
from gauntlet import nvfp4
from gauntlet.nvfp4 import _cuda
if sys.argv[1] != "shipped":
    _cuda.BEFOREHAND = _cuda.BEFOREHAND / "none"
step("import")
def weights(*shape):
    *outer, n, k = shape
    values = torch.randint(0, 256, (*outer, n, k // 2), device="cuda", dtype=torch.uint8)
    scales = torch.full((*outer, n, k // 16), 56, device="cuda", dtype=torch.uint8)
    return nvfp4.Weights(nvfp4.Tensor(values, scales), tokens="bfloat16")
x = torch.randn(16, 2048, device="cuda", dtype=torch.bfloat16)
one = weights(4096, 2048)
step("repack")
nvfp4.linear(x, one)
step("linear")
gate, up, down = weights(16, 768, 2048), weights(16, 768, 2048), weights(16, 2048, 768)
ids = torch.randint(0, 16, (16, 4), device="cuda")
nvfp4.moe(x, ids, torch.rand(16, 4, device="cuda"), gate, up, down)
step("moe")
q = torch.randn(1, 32, 1, 128, device="cuda", dtype=torch.bfloat16)
k = torch.randn(1, 8, 4096, 128, device="cuda", dtype=torch.bfloat16)
nvfp4.attention(q, k, k)
step("attention")
print(json.dumps(steps))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, cache in [("shipped", "one"), ("compiled", "two"), ("cached", "two"), ("shipped", "three")]:
            environment = {**os.environ, "GAUNTLET_CUBIN_CACHE": str(Path(folder) / cache)}
            child = subprocess.run([sys.executable, "-c", CHILD, kind], env=environment, capture_output=True, text=True)
            if child.returncode:
                raise SystemExit(child.stderr)
            compiled = child.stderr.count("compiling ")
            rows.append({"kind": kind, "compiled": compiled, "seconds": json.loads(child.stdout)})
            steps = ", ".join(f"{name} {seconds:.2f}" for name, seconds in rows[-1]["seconds"].items())
            print(f"{kind:>9}: {compiled} kernels compiled; s until {steps}", flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"processes": rows}, indent=1))


if __name__ == "__main__":
    main()
