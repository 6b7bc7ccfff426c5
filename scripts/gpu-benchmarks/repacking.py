"""How fast weights are repacked for 16-bit tokens where they lie, in the memory of a Hopper GPU.

    python repacking.py [--json FILE]

First the bytes are compared with those of the host's own code. Then each stack of matrices is repacked again and again; the time of a
call is that of `nvfp4.Weights(tensor, tokens=…)` on the host's clock, from its begin to its return, when the result is there. GB are
bytes of weights, values and scales together: each is read once and written once.
"""

import argparse
import json
import statistics
import time

import torch

from gauntlet import _native, nvfp4

# A dense layer, one whose bytes are fewer than the L2's, and experts of DeepSeek-V3 (of one rank of eight), Qwen3-30B and Mixtral 8x22B.
SHAPES = [(1, 8192, 8192), (1, 4096, 4096), (32, 4096, 7168), (128, 768, 2048), (8, 16384, 6144)]
CHECKED = [(1, 16, 256), (3, 48, 768), (2, 1040, 2304), (5, 272, 512)]
TOKENS = {"bfloat16": torch.bfloat16, "float16": torch.float16}
TURNS = 9


def drawn(shape):
    *_, n, k = shape
    values = torch.randint(0, 256, (shape[0], n, k // 2), device="cuda", dtype=torch.uint8)
    return nvfp4.Tensor(values, torch.randint(0, 256, (shape[0], n, k // 16), device="cuda", dtype=torch.uint8))


def is_as_on_the_host(shape, tokens):
    tensor = drawn(shape)
    found = nvfp4.Weights(tensor, tokens=tokens).on_gpu
    host = [part.cpu().reshape(-1).numpy() for part in (tensor.values, tensor.scales)]
    expected = _native.pack_steps(*host, shape, tokens)
    parts = zip((found.values, found.scales), expected, strict=True)
    return all((part.cpu().reshape(-1).numpy() == wanted).all() for part, wanted in parts)


def seconds(tensor, tokens):
    torch.cuda.synchronize()
    begun = time.perf_counter()
    nvfp4.Weights(tensor, tokens=tokens)
    return time.perf_counter() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    checked = [{"shape": shape, "tokens": tokens, "same": is_as_on_the_host(shape, tokens)} for shape in CHECKED for tokens in TOKENS]
    wrong = [one for one in checked if not one["same"]]
    print(f"{len(checked) - len(wrong)} of {len(checked)} stacks of matrices have the bytes of the host")
    rows = []
    for shape in SHAPES:
        tensor = drawn(shape)
        size = tensor.values.nbytes + tensor.scales.nbytes
        for tokens in TOKENS:
            seconds(tensor, tokens)
            times = [seconds(tensor, tokens) for _ in range(TURNS)]
            rate = size / statistics.median(times) / 1e9
            rows.append({"shape": shape, "tokens": tokens, "bytes": size, "seconds": times, "gb_per_s": rate})
            print(f"{'x'.join(map(str, shape)):>16} {tokens:>9} {statistics.median(times) * 1e3:8.3f} ms {rate:8.0f} GB/s", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"gpu": torch.cuda.get_device_name(), "bytes": checked, "times": rows}, file, indent=1)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
