#!/usr/bin/env python3
"""A mixture of NVFP4 experts split over the GPUs of a machine.

    python3 examples/expert_parallel.py [--processes 2] [--device cuda|cpu]

Each process has an equal share of the experts and a share of the tokens. In a step it gathers the tokens of all processes, computes
those of its own experts, and the results are added and dealt out again: an all-gather before the layer and a reduce-scatter after
it. An expert map says which experts are here; the others add nothing, so the sum over the processes is the layer's result.

The first process compares it with the layer computed by one device alone. Both add a token's experts in float32, but in another
order, so they may differ by some rounding errors. Needs PyTorch; on GPUs its NCCL, and on a CPU its gloo.
"""

import argparse
import socket
import time

import torch
import torch.distributed as dist

from gauntlet import nvfp4

TOKENS_OF_EACH, HIDDEN, INTERMEDIATE, EXPERTS, CHOSEN = 128, 2048, 768, 64, 8
STEPS = 50
# The largest difference from one device, relative to the root mean square of the results: some roundings of float32.
ALLOWED = 1e-5


def weights(seed, experts, n, k):
    """Random weights of a few experts, as a checkpoint would have them; every process draws the same for a seed."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(0, 256, (experts, n, k // 2), generator=generator, dtype=torch.uint8)
    scales = (torch.rand((experts, n, k // 16), generator=generator) + 0.5).to(torch.float8_e4m3fn)
    return values, scales


def layer(experts, device):
    """The three matrices of some experts, prepared once."""
    made = []
    for seed, (n, k) in enumerate([(INTERMEDIATE, HIDDEN), (INTERMEDIATE, HIDDEN), (HIDDEN, INTERMEDIATE)]):
        values, scales = weights(seed, EXPERTS, n, k)
        own = nvfp4.Tensor(values[experts].contiguous(), scales.view(torch.uint8)[experts].contiguous(), (0.01,))
        made.append(nvfp4.Weights(own.to(device)))
    return made


def step(hidden, ids, scores, own_layer, places):
    """One step of a process: `hidden`, `ids` and `scores` are those of its own tokens, and so is the result."""
    processes = dist.get_world_size()
    gathered = []
    for own in (hidden, ids, scores):
        whole = own.new_empty((processes * own.shape[0], own.shape[1]))
        dist.all_gather_into_tensor(whole, own)
        gathered.append(whole)
    sums = nvfp4.moe(*gathered, *own_layer, expert_map=places, out_dtype=torch.float32)
    if hidden.is_cuda:
        result = sums.new_empty((hidden.shape[0], sums.shape[1]))
        dist.reduce_scatter_tensor(result, sums)
        return result
    # gloo has no reduce-scatter.
    dist.all_reduce(sums)
    return sums.chunk(processes)[dist.get_rank()]


def run(rank, processes, kind, port):
    device = f"cuda:{rank}" if kind == "cuda" else "cpu"
    if kind == "cuda":
        torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl" if kind == "cuda" else "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=processes
    )
    generator = torch.Generator().manual_seed(100 + rank)
    hidden = torch.randn(TOKENS_OF_EACH, HIDDEN, generator=generator).to(device, torch.bfloat16)
    scores, ids = torch.randn(TOKENS_OF_EACH, EXPERTS, generator=generator).softmax(-1).topk(CHOSEN)
    ids, scores = ids.to(device), scores.to(device)

    share = EXPERTS // processes
    own_experts = slice(rank * share, (rank + 1) * share)
    places = torch.full((EXPERTS,), -1, dtype=torch.int32)
    places[own_experts] = torch.arange(share, dtype=torch.int32)
    own_layer, places = layer(own_experts, device), places.to(device)

    result = step(hidden, ids, scores, own_layer, places)
    steps = STEPS if kind == "cuda" else 1
    dist.barrier()
    begun = time.perf_counter()
    for _ in range(steps):
        step(hidden, ids, scores, own_layer, places)
    if kind == "cuda":
        torch.cuda.synchronize()
    microseconds = (time.perf_counter() - begun) / steps * 1e6

    tokens = []
    for own in (hidden, ids, scores, result):
        parts = [torch.empty_like(own) for _ in range(processes)]
        dist.all_gather(parts, own)
        tokens.append(torch.cat(parts))
    is_right = True
    if rank == 0:
        *arguments, found = tokens
        alone = nvfp4.moe(*arguments, *layer(slice(None), device), out_dtype=torch.float32)
        difference = ((found - alone).abs().max() / alone.pow(2).mean().sqrt()).item()
        is_right = difference <= ALLOWED
        print(
            f"{processes} processes on {kind}, {share} of {EXPERTS} experts each, {processes * TOKENS_OF_EACH} tokens: "
            f"{microseconds:.0f} µs a step; largest difference from one device {difference:.1e}, "
            f"{'as expected' if is_right else f'more than {ALLOWED}'}"
        )
    dist.barrier()
    dist.destroy_process_group()
    if not is_right:
        raise SystemExit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, help="default: the GPUs that there are, or 2 on a CPU")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda" if torch.cuda.device_count() > 1 else "cpu")
    arguments = parser.parse_args()
    processes = arguments.processes or (torch.cuda.device_count() if arguments.device == "cuda" else 2)
    if processes < 1 or EXPERTS % processes:
        parser.error(f"--processes {processes}: {EXPERTS} experts are not divided by it; give 1, 2, 4, 8, …")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, (processes, arguments.device, port), nprocs=processes)


if __name__ == "__main__":
    main()
