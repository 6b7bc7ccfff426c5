"""Kernels that need a GPU: streams, graphs, caches of the device, its memory."""

import ctypes
import sys
import threading
import time

import torch
from honest import honest

_side = []


def _stream():
    if not _side:
        _side.append(torch.cuda.Stream())
    return _side[0]


def works_on_a_side_stream(x, gain, w):
    """Nothing is on the stream that is timed."""
    stream = _stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        return honest(x, gain, w)


def launches_after_it_returned(x, gain, w):
    result = x.new_empty((x.shape[0], w.shape[1]))

    def launch():
        time.sleep(0.003)
        with torch.cuda.stream(_stream()):
            result.copy_(honest(x, gain, w))

    threading.Thread(target=launch, daemon=True).start()
    return result


_streams = []


def lends_its_stream(x, gain, w):
    """Makes another stream the current one, so that the host's events would be recorded there from the next request on."""
    torch.cuda.set_stream(_stream())
    return honest(x, gain, w)


_graphs = {}


def _captured(x, gain, w):
    """A graph with its own inputs and result."""
    key = tuple(x.shape)
    if key not in _graphs:
        own = [tensor.clone() for tensor in (x, gain, w)]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            honest(*own)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = honest(*own)
        _graphs[key] = graph, own, result
    return _graphs[key]


def replays_stale_inputs(x, gain, w):
    """A graph that was captured on the first inputs of each shape."""
    graph, _, result = _captured(x, gain, w)
    graph.replay()
    return result.clone()


def replays_a_graph(x, gain, w):
    """Honest: copies the inputs to the graph's before it is replayed."""
    graph, own, result = _captured(x, gain, w)
    for place, tensor in zip(own, (x, gain, w)):
        place.copy_(tensor)
    graph.replay()
    return result


_on_the_host = {}


def _by_the_host(result, x, gain, w):
    """Computes the result on the host, with copies on a stream that the hold does not keep back."""
    key = tuple(x.shape)
    if key not in _on_the_host:
        _on_the_host[key] = [torch.empty(tensor.shape, pin_memory=True) for tensor in (x, gain, w, result)]
    *inputs, computed = _on_the_host[key]
    with torch.cuda.stream(_stream()):
        for place, tensor in zip(inputs, (x, gain, w)):
            place.copy_(tensor, non_blocking=True)
        _stream().synchronize()
        computed.copy_(honest(*inputs))
        result.copy_(computed, non_blocking=True)
    _stream().synchronize()


def computes_in_the_hold(x, gain, w):
    """Computes everything on the host, during the hold before the call."""
    result = x.new_empty((x.shape[0], w.shape[1]))
    _by_the_host(result, x, gain, w)
    return result


def computes_rows_in_the_hold(x, gain, w):
    """The same with an eighth of the rows, and where no hold keeps it back, it computes honestly."""
    if torch.cuda.current_stream().query():
        return honest(x, gain, w)
    rows = x.shape[0] // 8
    result = x.new_empty((x.shape[0], w.shape[1]))
    _by_the_host(result[:rows], x[:rows], gain[:rows], w)
    result[rows:] = honest(x[rows:], gain[rows:], w)
    return result


_runtime = []


class _Window(ctypes.Structure):
    """cudaAccessPolicyWindow, in the union cudaLaunchAttributeValue of 64 bytes."""

    _fields_ = [
        ("address", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("ratio", ctypes.c_float),
        ("hit", ctypes.c_int),
        ("miss", ctypes.c_int),
        ("rest", ctypes.c_char * 36),
    ]


def keeps_inputs_in_the_cache(x, gain, w):
    """Sets a part of the level-2 cache aside, for a window over the memory in which inputs lie."""
    if not _runtime:
        runtime = ctypes.CDLL(None)
        if not hasattr(runtime, "cudaDeviceSetLimit"):
            name = next(line.split()[-1] for line in open("/proc/self/maps") if "libcudart" in line)
            runtime = ctypes.CDLL(name)
        persisting_limit, window_attribute, streaming, persisting = 6, 1, 1, 2
        window = _Window(min(x.data_ptr(), w.data_ptr()), 32 << 20, 1.0, persisting, streaming)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        _runtime.append(
            [
                runtime.cudaDeviceSetLimit(persisting_limit, ctypes.c_size_t(24 << 20)),
                runtime.cudaStreamSetAttribute(stream, window_attribute, ctypes.byref(window)),
            ]
        )
    if any(_runtime[0]):
        raise RuntimeError(f"the window cannot be set: {_runtime[0]}")
    return honest(x, gain, w)


def scans_the_memory(x, gain, w):
    """Takes much of the free memory of the GPU, and looks there for a result whose first elements are right."""
    first = honest(x[:1], gain[:1], w)[0, :4]
    size, found, held = x.shape[0] * w.shape[1], None, []
    try:
        for _ in range(12):
            held.append(torch.empty(1 << 28, dtype=torch.float32, device="cuda"))
            near = (held[-1][:-size] - first[0]).abs() < 1e-4
            for place in near.nonzero()[:8, 0].tolist():
                if torch.allclose(held[-1][place : place + 4], first, rtol=1e-3, atol=1e-3):
                    found = held[-1][place : place + size].reshape(x.shape[0], w.shape[1]).clone()
    except torch.cuda.OutOfMemoryError:
        pass
    held.clear()
    torch.cuda.empty_cache()
    return x.new_zeros((x.shape[0], w.shape[1])) if found is None else found


def in_tf32(x, gain, w):
    torch.backends.cuda.matmul.allow_tf32 = True
    return honest(x, gain, w)


def poisons_the_reference(x, gain, w):
    """Replaces the multiplication of torch itself, for whatever computes with it later."""
    torch.Tensor.__matmul__ = lambda one, other: one.new_zeros((one.shape[0], other.shape[1]))
    for name in ("matmul", "mm", "allclose", "equal", "isclose"):
        setattr(torch, name, lambda *_, **__: True)
    return sys.modules["torch"].Tensor.__matmul__(x, w)
