"""What else there is for the same problem, each as a graph to replay.

Names of PyTorch's products begin with the format of the operands, `bf16` or `fp8`; those of attention with the back end,
`cudnn` or `flash`, and all of those take fp16, for PyTorch has no other attention in 8 bits. Problems with bf16 tokens are also
given to the kernels of humming-kernels, which multiply bf16 tokens by NVFP4 weights as vLLM does on Hopper: names begin with
`humming`. Without that package (pip install humming-kernels) they are left out.
"""

import contextlib
import importlib.util
import statistics

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention, silu

import operands

CALLS = 60
REPLAYS = 15
REPLAYS_BEFORE = 3
SETS = 4


def versions():
    """PyTorch, the CUDA it was built for, and the GPU it sees."""
    return {"torch": torch.__version__, "cuda": torch.version.cuda, "device": torch.cuda.get_device_name()}


@contextlib.contextmanager
def replayed(call):
    """Records calls that rotate over the sets; gives a function that replays them and returns the median microseconds."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            for index in range(SETS):
                call(index)
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for index in range(CALLS):
            call(index % SETS)

    def replay():
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) * 1e3 / CALLS

    def median():
        for _ in range(REPLAYS_BEFORE):
            replay()
        return statistics.median(replay() for _ in range(REPLAYS))

    try:
        yield median
    finally:
        graph.reset()
        torch.cuda.empty_cache()


def of(problem, inputs):
    """The peers of a problem on operands of a kind: names, with what enters their graphs."""
    torch.manual_seed(0)
    if problem["family"] == "attention":
        return [(name, replayed(call)) for name, call in attention(problem, inputs).items()]
    groups, dual = problem["groups"], problem["form"] == "swiglu"
    calls = single(groups[0], inputs, dual) if len(groups) == 1 else grouped(groups, inputs, dual)
    if has_brain_tokens(problem) and importlib.util.find_spec("humming"):
        calls |= humming(groups, inputs, dual)
    return [(name, replayed(call)) for name, call in calls.items()]


def kinds(problem):
    """What the names of a problem's peers begin with."""
    if problem["family"] == "attention":
        return ["cudnn", "flash"]
    return ["humming", "bf16", "fp8"] if has_brain_tokens(problem) else ["bf16", "fp8"]


def has_brain_tokens(problem):
    return problem.get("tokens") == "bf16"


def humming_layer(inputs, dual, experts, n, k):
    """NVFP4 weights that humming has repacked for its kernels; `experts` is none for a dense layer."""
    from humming.layer import HummingLayer

    weights = {"quant_method": "modelopt", "quant_algo": "nvfp4"}
    layer = HummingLayer(shape_n=n, shape_k=k, weight_config=weights, num_experts=experts, torch_dtype=torch.bfloat16).cuda()
    packed, scales = operands.stored(inputs, dual, *([experts] if experts else []), n, k)
    layer.load_from_tensors({"weight": packed, "weight_scale": scales, "weight_scale_2": torch.ones(experts or 1, device="cuda")})
    layer.transform()
    return layer


def humming(groups, inputs, dual):
    """Both weights of the dual form are one matrix, and `silu` is PyTorch's."""
    n, k = groups[0]["n"], groups[0]["k"]
    lengths = [group["m"] for group in groups]
    experts = len(groups) if len(groups) > 1 else None
    tokens = products(inputs, dual)(sum(lengths), k)
    layers = [humming_layer(inputs, dual, experts, n * (2 if dual else 1), k) for _ in range(SETS)]
    routing = {}
    if experts:
        ends = torch.tensor([0, *lengths], device="cuda").cumsum(0)
        routing = {"compute_config": {"gemm_type": "grouped_contiguous"}, "expert_layout": ends}

    def call(i):
        sums = layers[i](tokens[i], **routing)
        return silu(sums[:, :n]) * sums[:, n:] if dual else sums

    return {"humming w4a16": call}


def attention(problem, inputs, dtype=torch.float16):
    """A batch of equal sequences in a type of 16 bits, operands N(0, 1) or, if `inputs` are wide, as Gauntlet draws those."""
    lengths = {(sequence["queries"], sequence["keys"]) for sequence in problem["sequences"]}
    if len(lengths) != 1:
        raise ValueError("PyTorch is asked only for equal sequences")
    if inputs == "outliers":
        raise ValueError("attention's operands are drawn for PyTorch as wide ones or N(0, 1), not with outliers")
    [(queries, keys)] = lengths
    batch, heads, kv_heads, size, causal = (
        len(problem["sequences"]),
        problem["heads"],
        problem["kv_heads"],
        problem["head_size"],
        problem["causal"],
    )

    def operand(heads, positions, exponents):
        tensors = random(batch, heads, positions, size)
        return [(widened(tensor, *exponents) if inputs == "wide" else tensor).to(dtype) for tensor in tensors]

    query = operand(heads, queries, (-2, 1))
    key, value = operand(kv_heads, keys, (-2, 1)), operand(kv_heads, keys, (-4, 4))

    # Gauntlet's mask ends where queries and keys end. `is_causal` begins where they begin, which is the same for equally
    # many; for others PyTorch's bias of that name is for flash alone, and cuDNN takes the mask itself.
    for_cudnn = for_flash = {"is_causal": causal}
    if causal and queries != keys:
        for_cudnn = {"attn_mask": torch.ones(queries, keys, dtype=torch.bool, device="cuda").tril(keys - queries)}
        for_flash = {"attn_mask": causal_lower_right(queries, keys)}

    def by(backend, mask):
        options = {**mask, **({"enable_gqa": True} if heads != kv_heads else {})}

        def call(index):
            with sdpa_kernel(backend):
                return scaled_dot_product_attention(query[index], key[index], value[index], **options)

        return call

    name = {torch.float16: "fp16", torch.bfloat16: "bf16"}[dtype]
    return {
        f"cudnn {name}": by(SDPBackend.CUDNN_ATTENTION, for_cudnn),
        f"flash {name}": by(SDPBackend.FLASH_ATTENTION, for_flash),
    }


def widened(tensor, least, most):
    """Heads of magnitudes between two powers of two, and one in 64 values eight times as large."""
    magnitudes = torch.empty(*tensor.shape[:2], 1, 1, device="cuda").uniform_(least, most).exp2()
    outliers = torch.rand(tensor.shape, device="cuda") < 1 / 64
    return tensor * magnitudes * torch.where(outliers, 8.0, 1.0)


def random(*shape):
    """A tensor for each set."""
    return [torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for _ in range(SETS)]


def products(inputs, dual):
    """A function that draws operands of a shape, for each set."""
    return lambda *shape: [operands.drawn(inputs, dual, *shape) for _ in range(SETS)]


def fp8(tensors):
    return [operands.fp8(tensor) for tensor in tensors]


def fp8_scales(*shape):
    return torch.full(shape, operands.FP8_UNIT, device="cuda")


def single(shape, inputs, dual):
    """One group: two products of the dual form may also be one with both weights on top of each other."""
    m, n, k = shape["m"], shape["n"], shape["k"]
    drawn = products(inputs, dual)
    tokens, first = drawn(m, k), drawn(n, k)
    scale = fp8_scales()

    def scaled(tokens, weights):
        return torch._scaled_mm(tokens, weights.t(), scale, scale, out_dtype=torch.bfloat16)

    if not dual:
        tokens8, first8 = fp8(tokens), fp8(first)
        return {
            "bf16 matmul": lambda i: tokens[i] @ first[i].t(),
            "fp8 scaled_mm": lambda i: scaled(tokens8[i], first8[i]),
        }

    second = drawn(n, k)
    both = [torch.cat(pair) for pair in zip(first, second, strict=True)]
    tokens8, both8 = fp8(tokens), fp8(both)

    def gated(sums):
        return silu(sums[:, :n]) * sums[:, n:]

    return {
        "bf16 two matmuls, silu, mul": lambda i: silu(tokens[i] @ first[i].t()) * (tokens[i] @ second[i].t()),
        "bf16 one matmul, silu, mul": lambda i: gated(tokens[i] @ both[i].t()),
        "fp8 one scaled_mm, silu, mul": lambda i: gated(scaled(tokens8[i], both8[i])),
    }


def grouped(groups, inputs, dual):
    """Several groups with the same weights' sizes."""
    sizes = {(group["n"], group["k"]) for group in groups}
    if len(sizes) != 1:
        raise ValueError("PyTorch's grouped products take weights of one size")
    [(n, k)] = sizes
    lengths = [group["m"] for group in groups]
    count, total = len(groups), sum(lengths)
    drawn = products(inputs, dual)
    tokens, first = drawn(total, k), drawn(count, n, k)
    ends = torch.tensor(lengths, device="cuda").cumsum(0).to(torch.int32)
    token_scales, weight_scales = fp8_scales(total), fp8_scales(count, n)
    tokens8, first8 = fp8(tokens), fp8(first)

    def product(tokens, weights):
        return torch._grouped_mm(tokens, weights.transpose(-2, -1), offs=ends)

    def scaled(tokens, weights):
        return torch._scaled_grouped_mm(
            tokens,
            weights.transpose(-2, -1),
            token_scales,
            weight_scales,
            offs=ends,
            out_dtype=torch.bfloat16,
            use_fast_accum=True,
        )

    if not dual:
        def loop(i):
            return [part @ weights.t() for part, weights in zip(tokens[i].split(lengths), first[i], strict=True)]

        return {
            "bf16 grouped_mm": lambda i: product(tokens[i], first[i]),
            "bf16 a matmul a group": loop,
            "fp8 scaled_grouped_mm": lambda i: scaled(tokens8[i], first8[i]),
        }

    second = drawn(count, n, k)
    second8 = fp8(second)
    return {
        "bf16 two grouped_mm, silu, mul": lambda i: silu(product(tokens[i], first[i])) * product(tokens[i], second[i]),
        "fp8 two scaled_grouped_mm, silu, mul": lambda i: silu(scaled(tokens8[i], first8[i]))
        * scaled(tokens8[i], second8[i]),
    }
