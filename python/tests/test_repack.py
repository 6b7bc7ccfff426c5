"""Models whose NVFP4 weights are repacked: what a GPU is asked for, without one; on a Hopper GPU, its results."""

import copy
import ctypes
import gc

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
pytest.importorskip("transformers", minversion="5", reason="transformers 5 is not installed: pip install transformers")

from messages import error  # noqa: E402
from recorder import recorder  # noqa: E402, F401
from small_models import KINDS, logits, model, rms, tokens  # noqa: E402
from tensors import drawn, needs_hopper  # noqa: E402

from gauntlet import _native, nvfp4  # noqa: E402
from gauntlet.nvfp4 import _arrays, _cuda_mixture, _layer_ops, modules  # noqa: E402

BETWEEN = 256
"""The width of an expert: with 128, its second product has rows that are filled up, and it is not repacked."""


@pytest.fixture
def gpu(monkeypatch, recorder):  # noqa: F811
    """Tensors on the CPU stand for those on a Hopper GPU."""
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    recorder.repack = repacked_on_the_host
    return recorder


def repacked_on_the_host(stream, shape, addresses, tokens):
    """What the kernel does in the GPU's memory."""
    matrices, rows, depth = shape
    sizes = [matrices * rows * depth // values_a_byte for values_a_byte in (2, 16)]
    at = [np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address)) for size, address in zip(2 * sizes, addresses, strict=True)]
    at[2][:], at[3][:] = _native.pack_steps(at[0], at[1], shape, tokens)


def converted(kind, between=BETWEEN):
    return nvfp4.convert(model(kind, between=between))


def packed_parts(root):
    return {name: part for name, part in root.named_modules() if isinstance(part, modules.PackedWeights)}


def stack(part, packing):
    shape = part.shape if len(part.shape) == 3 else (1, *part.shape)
    return _native.Stack(shape, part.weight_scale_2.reshape(-1).tolist(), packing)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_all_weights_are_replaced_by_as_many_bytes_in_another_order(gpu, kind, dtype):
    one = converted(kind)
    before = copy.deepcopy(packed_parts(one))
    other = copy.deepcopy(one)
    assert nvfp4.repack(one, getattr(torch, dtype)) is one
    found = packed_parts(one)
    assert found.keys() == before.keys() and len(found) == {"llama": 14, "qwen3_moe": 14}[kind]
    for name, part in found.items():
        own = before[name]
        shape = own.shape if len(own.shape) == 3 else (1, *own.shape)
        bytes_of = [buffer.view(torch.uint8).reshape(-1).numpy() for buffer in (own.weight, own.weight_scale)]
        expected = _native.pack_steps(*bytes_of, shape, dtype)
        for buffer, kept, wanted in zip((part.weight, part.weight_scale), (own.weight, own.weight_scale), expected, strict=True):
            assert (buffer.shape, buffer.dtype) == (kept.shape, kept.dtype)
            assert buffer.view(torch.uint8).reshape(-1).tolist() == wanted.tolist()
            assert not torch.equal(buffer.view(torch.uint8), kept.view(torch.uint8))
        assert torch.equal(part.weight_scale_2, own.weight_scale_2)
        assert part.tokens == dtype and f"tokens='{dtype}'" in repr(part)
    # Buffers that another model shares are not overwritten.
    assert all(torch.equal(part.weight, before[name].weight) for name, part in packed_parts(other).items())
    # A second time there is nothing to do.
    kept = {name: part.weight for name, part in found.items()}
    nvfp4.repack(one, dtype)
    assert all(part.weight is kept[name] for name, part in found.items())


def test_shared_buffers_are_repacked_for_each_module_by_itself(gpu):
    pair = torch.nn.Sequential(*(nvfp4.convert(torch.nn.Linear(256, 32, bias=False)) for _ in range(2)))
    pair[1].weight, pair[1].weight_scale = pair[0].weight, pair[0].weight_scale
    nvfp4.repack(pair)
    assert torch.equal(pair[0].weight, pair[1].weight)


def test_the_kernels_of_all_layers_are_loaded_together(gpu):
    one = converted("qwen3_moe")
    block = one.model.layers[0]
    block.self_attn.q_proj.bias = torch.nn.Parameter(torch.zeros(256))
    nvfp4.repack(one)
    [(name, products)] = gpu.calls
    gate, down = stack(block.mlp.experts.gate_proj, "steps"), stack(block.mlp.experts.down_proj, "steps")
    assert name == "load"
    assert [(k, first.n, second is None, formats, is_routed) for k, first, second, formats, is_routed in products] == [
        (256, 256, True, ("bfloat16", "float32"), False),
        (256, 128, True, ("bfloat16", "bfloat16"), False),
        (256, gate.n, False, ("bfloat16", "bfloat16"), True),
        (BETWEEN, down.n, True, ("bfloat16", "float32"), True),
    ]


def test_a_gpu_is_asked_for_products_of_repacked_weights(gpu, monkeypatch):
    one = nvfp4.repack(converted("qwen3_moe"))
    block = one.model.layers[0]
    gpu.calls.clear()
    x = torch.zeros(5, 256, dtype=torch.bfloat16)
    q = block.self_attn.q_proj
    for _ in range(2):
        q(x)
    assert [call[0] for call in gpu.calls] == ["enqueue", "enqueue"]
    for call in gpu.calls:
        assert (call[4], call[6][:2]) == (stack(q, "steps"), (q.weight.data_ptr(), q.weight_scale.data_ptr()))

    monkeypatch.setattr(_cuda_mixture, "is_hopper", lambda device: True)
    monkeypatch.setattr(_arrays, "device_name", lambda array: "cuda:0")
    gpu.calls.clear()
    experts = block.mlp.experts
    experts(x, torch.zeros(5, 2, dtype=torch.int64), torch.ones(5, 2))
    assert [call[0] for call in gpu.calls] == ["enqueue_arrange", "load", "enqueue_routed", "enqueue_routed", "enqueue_combine"]
    dual, plain = gpu.calls[2:4]
    assert dual[4:6] == (stack(experts.gate_proj, "steps"), stack(experts.up_proj, "steps"))
    assert plain[4:6] == (stack(experts.down_proj, "steps"), None)


def test_prepared_weights_are_prepared_again_after_they_are_repacked(gpu, monkeypatch):
    layer = nvfp4.convert(torch.nn.Linear(256, 32, bias=False))
    monkeypatch.setattr(_arrays, "device_name", lambda array: "cuda:0")
    x = torch.zeros(3, 256, dtype=torch.bfloat16)
    layer(x)
    nvfp4.repack(layer)
    layer(x)
    assert [call[4] for call in gpu.calls if call[0] == "enqueue"] == [stack(layer, "canonical"), stack(layer, "steps")]
    # The operator tells weights in both orders apart, even if they are the same tensors.
    layer.tokens = None
    layer(x)
    assert gpu.calls[-1][4] == stack(layer, "canonical")


def test_other_tokens_are_refused(gpu, monkeypatch):
    layer = nvfp4.repack(nvfp4.convert(torch.nn.Linear(256, 32, bias=False)))
    monkeypatch.setattr(_arrays, "device_name", lambda array: "cuda:0")
    with pytest.raises(ValueError, match="weights: they were repacked for bfloat16 tokens, and these are float16"):
        layer(torch.zeros(3, 256, dtype=torch.float16))


REPACKED = "the weights were repacked for bfloat16 tokens, in an order that only the kernels of a Hopper GPU read; "


def test_what_would_take_repacked_weights_for_a_checkpoints_is_refused(gpu):
    one = converted("qwen3_moe")
    state = one.state_dict()
    nvfp4.repack(one)
    name, layer = "model.layers.0.self_attn.q_proj", one.model.layers[0].self_attn.q_proj
    assert error(one.state_dict, ValueError) == f"{name}.weight: {REPACKED}save the model before nvfp4.repack"
    assert error(layer.state_dict, ValueError) == f"weight: {REPACKED}save the model before nvfp4.repack"
    assert error(lambda: one.load_state_dict(state), ValueError) == (
        f"{name}.weight: {REPACKED}load the state into a model before nvfp4.repack"
    )
    assert error(lambda: one.load_state_dict(state, assign=True), ValueError).startswith(f"{name}.weight: {REPACKED}")
    assert error(layer.packed, ValueError) == f"weight: {REPACKED}take the tensor before nvfp4.repack"
    weight = nvfp4.quantize(torch.ones(256, 256))
    assert error(lambda: layer.fill(weight), ValueError) == f"tensor: {REPACKED}fill the weights before nvfp4.repack"
    assert error(lambda: layer.to("meta"), ValueError) == f"meta: {REPACKED}move the model there before nvfp4.repack"
    experts = one.model.layers[0].mlp.experts
    for refused in (experts.state_dict, experts.up_proj.packed, lambda: experts.to("meta")):
        assert REPACKED in error(refused, ValueError)


def test_a_checkpoint_is_not_loaded_into_repacked_weights(gpu, tmp_path):
    from safetensors.torch import save_file

    one = nvfp4.convert(torch.nn.Sequential(torch.nn.Linear(256, 32, bias=False)))
    save_file(one.state_dict(), tmp_path / "model.safetensors")
    nvfp4.repack(one)
    before = one[0].weight.clone()
    assert REPACKED in error(lambda: nvfp4.load_checkpoint(one, tmp_path / "model.safetensors"), ValueError)
    assert torch.equal(one[0].weight, before)


def test_a_repacked_model_is_copied_and_keeps_the_types_of_its_buffers(gpu):
    one = nvfp4.repack(converted("qwen3_moe"))
    for changed in (copy.deepcopy(one), copy.deepcopy(one).to(torch.bfloat16), copy.deepcopy(one).half()):
        for name, part in packed_parts(changed).items():
            own = one.get_submodule(name)
            assert part.tokens == own.tokens == "bfloat16"
            for buffer, kept in zip(part.buffers(), own.buffers(), strict=True):
                assert buffer is not kept and buffer.dtype == kept.dtype
                assert torch.equal(buffer.reshape(-1).view(torch.uint8), kept.reshape(-1).view(torch.uint8))


def test_what_does_not_fit_stays_as_it_is(gpu):
    one = converted("qwen3_moe", between=128)
    nvfp4.repack(one)
    block = one.model.layers[0]
    assert block.self_attn.q_proj.tokens == "bfloat16"
    # Gate and up would fit, but down has rows of 128 values.
    assert [part.tokens for part in packed_parts(block.mlp.experts).values()] == [None] * 3
    block.mlp.experts.state_dict()
    pair = torch.nn.Sequential(torch.nn.Linear(256, 24, bias=False), torch.nn.Linear(256, 32, bias=False))
    assert [layer.tokens for layer in nvfp4.repack(nvfp4.convert(pair))] == [None, "bfloat16"]


def test_a_model_without_weights_to_repack_is_refused_with_the_reason(gpu, monkeypatch):
    def refusal(built, *dtype):
        return error(lambda: nvfp4.repack(built, *dtype), ValueError)

    def layer(k, n):
        return nvfp4.convert(torch.nn.Linear(k, n, bias=False))

    assert refusal(torch.nn.ReLU()) == "model: ReLU has no NVFP4 layers; call nvfp4.convert or nvfp4.load_checkpoint first"
    assert refusal(torch.nn.Sequential(layer(240, 16), layer(256, 24))) == (
        "model: of its 2 NVFP4 layers none can be repacked; 0: its weights have rows of 240 values, and only multiples of 256 are "
        "repacked"
    )
    assert refusal(layer(256, 24)).endswith("Linear: its weights have 24 rows, and only multiples of 16 are repacked")
    before = nvfp4.repack(layer(256, 32))
    assert refusal(before, torch.float16).endswith("its weights were repacked for bfloat16 tokens before")
    where = "its weights are on cpu, and only a Hopper GPU reads repacked ones; move the model to one first"
    for name, value in (("get_device_capability", lambda device: (8, 0)), ("get_device_capability", lambda device: (10, 0))):
        monkeypatch.setattr(torch.cuda, name, value)
        assert refusal(layer(256, 32)).endswith(where)
    monkeypatch.setattr(torch.Tensor, "is_cuda", False)
    assert refusal(layer(256, 32)).endswith(where)
    assert error(lambda: nvfp4.repack([]), TypeError) == "model: it is a list; nvfp4.repack takes a torch.nn.Module"
    assert error(lambda: nvfp4.repack(layer(256, 32), torch.float32), TypeError) == (
        "tokens: weights are not repacked for float32; give bfloat16 or float16"
    )


def test_a_mixture_of_both_orders_is_refused(gpu):
    experts = nvfp4.repack(converted("qwen3_moe")).model.layers[0].mlp.experts
    experts.up_proj = modules.PackedWeights(experts.up_proj.shape)
    x = torch.zeros(5, 256, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match="gate_proj, up_proj, down_proj: only some of them were repacked"):
        experts(x, torch.zeros(5, 2, dtype=torch.int64), torch.ones(5, 2))
    # The matrix that came later is repacked too.
    nvfp4.repack(experts)
    assert experts.up_proj.tokens == "bfloat16"


def test_repacked_weights_on_the_cpu_are_refused():
    layer = nvfp4.convert(torch.nn.Linear(256, 32, bias=False))
    layer.tokens = "bfloat16"
    with pytest.raises(ValueError, match="weights: they are on cpu, and were repacked for bfloat16 tokens on a Hopper GPU"):
        layer(drawn(3, 256).bfloat16())


@needs_hopper
class TestOnHopper:
    """Repacked models on a GPU."""

    @staticmethod
    def both(kind, dtype=torch.bfloat16):
        plain = converted(kind).to("cuda", dtype)
        return plain, nvfp4.repack(copy.deepcopy(plain), dtype)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_layers_give_the_bits_of_repacked_weights(self, dtype):
        plain, repacked = self.both("qwen3_moe", dtype)
        own, other = (one.model.layers[0] for one in (plain, repacked))
        x = drawn(5, 256).to("cuda", dtype)
        found = other.self_attn.q_proj(x)
        assert torch.equal(found, nvfp4.linear(x, nvfp4.Weights(own.self_attn.q_proj.packed(), tokens=dtype)))
        # The sums differ in float32, and the result is rounded once.
        rounding = torch.finfo(dtype).eps
        torch.testing.assert_close(found, own.self_attn.q_proj(x), rtol=rounding, atol=1e-4)

        scores, ids = torch.softmax(drawn(5, 8, seed=2), -1).cuda().topk(2)
        parts = [own.mlp.experts.get_submodule(f"{name}_proj").packed() for name in ("gate", "up", "down")]
        weights = [nvfp4.Weights(part, tokens=dtype) for part in parts]
        found = other.mlp.experts(x, ids, scores)
        assert torch.equal(found, nvfp4.moe(x, ids, scores, *weights))
        torch.testing.assert_close(found, own.mlp.experts(x, ids, scores), rtol=2 * rounding, atol=1e-3)

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_whole_model_gives_nearly_the_same_logits(self, kind):
        plain, repacked = self.both(kind)
        ids = tokens().cuda()
        found, expected = logits(repacked, ids), logits(plain, ids)
        # As much as two bfloat16 models differ that round the same steps not always the same way. A mixture of experts may also choose
        # another expert where two are nearly equal.
        assert rms(found.double() - expected.double()) <= {"llama": 0.02, "qwen3_moe": 0.1}[kind] * rms(expected)
        assert torch.equal(logits(copy.deepcopy(repacked), ids), found)

    def test_a_layer_is_captured_in_a_graph(self):
        _, repacked = self.both("qwen3_moe")
        block = repacked.model.layers[0].mlp
        x = drawn(1, 5, 256).to("cuda", torch.bfloat16)
        with torch.no_grad():
            expected = block(x)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                found = block(x)
        for factor in (1, 2):
            x.mul_(factor)
            graph.replay()
            with torch.no_grad():
                assert torch.equal(found, block(x))
        assert not torch.equal(found, expected)

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_compiled_block_is_compiled_again_once_it_is_repacked(self, kind):
        plain, repacked = self.both(kind)
        block, other = plain.model.layers[0].mlp, repacked.model.layers[0].mlp
        x = drawn(1, 5, 256).to("cuda", torch.bfloat16)
        compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
        with torch.no_grad():
            assert torch.equal(compiled(x), block(x))
            nvfp4.repack(block)
            assert torch.equal(compiled(x), other(x))

    def test_memory_is_what_it_was(self):
        plain = converted("qwen3_moe").to("cuda", torch.bfloat16)
        nvfp4.repack(copy.deepcopy(plain))
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        nvfp4.repack(plain)
        assert torch.cuda.memory_allocated() == before

    def test_it_stays_on_gpus(self):
        _, repacked = self.both("llama")
        assert REPACKED in error(repacked.model.layers[0].mlp.cpu, ValueError)
        ids = tokens().cuda()
        expected = logits(repacked, ids)
        assert torch.equal(logits(repacked.to("cuda"), ids), expected)

    def test_weights_that_were_prepared_before_are_freed(self):
        layer = nvfp4.convert(torch.nn.Linear(256, 32, bias=False)).to("cuda")
        x = drawn(3, 256).to("cuda", torch.bfloat16)
        layer(x)
        gc.collect()
        count = len(_layer_ops._prepared)
        nvfp4.repack(layer)
        layer(x)
        assert len(_layer_ops._prepared) == count
