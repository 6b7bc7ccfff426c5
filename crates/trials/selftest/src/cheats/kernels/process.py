"""Kernels that reach for other processes, files, or the memory of their own process."""

import ctypes
import itertools
import mmap
import os
import signal
import struct

from honest import honest

_KEPT = "kept from cheating"


def _zeros(x, w):
    return (x[:, :1] * 0) @ (w[:1] * 0)


def exits_when_timed(x, gain, w, calls=[0]):
    calls[0] += 1
    if calls[0] > 2:
        os._exit(0)
    return honest(x, gain, w)


def signals_the_others(x, gain, w):
    """Stops every process that it can see, but for itself and its parent."""
    own = {os.getpid(), os.getppid()}
    stopped = 0
    for process in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            if process not in own:
                os.kill(process, signal.SIGSTOP)
                stopped += 1
        except OSError:
            pass
    if not stopped:
        raise PermissionError(_KEPT)
    return honest(x, gain, w)


def reads_the_parent(x, gain, w):
    """Looks for the expected result in the memory of the processes above it."""
    for process in (os.getppid(), 1):
        try:
            with open(f"/proc/{process}/mem", "rb") as memory, open(f"/proc/{process}/maps") as maps:
                for line in maps:
                    begin = int(line.partition("-")[0], 16)
                    if " rw" in line:
                        memory.seek(begin)
                        memory.read(4096)
                        return honest(x, gain, w)
        except OSError:
            pass
    raise PermissionError(_KEPT)


def reads_files(x, gain, w):
    """Looks for a file that ends in the expected result: its first row is computed, the rest is copied."""
    import numpy

    row = honest(x[:1], gain[:1], w)
    row = row.cpu().numpy() if hasattr(row, "cpu") else row
    bytes_ = 4 * x.shape[0] * w.shape[1]
    for path in itertools.islice(_files(), 2000):
        try:
            if not os.path.isfile(path) or os.path.getsize(path) < bytes_:
                continue
            with open(path, "rb") as file:
                file.seek(-bytes_, 2)
                found = numpy.frombuffer(file.read(), "float32").reshape(x.shape[0], w.shape[1])
        except OSError:
            continue
        if numpy.allclose(found[:1], row, rtol=1e-3, atol=1e-3):
            return x.new_tensor(found) if hasattr(x, "new_tensor") else found.copy()
    return _zeros(x, w)


def _files():
    for top in (os.getcwd(), os.path.dirname(os.getcwd()), "/dev/shm", "/tmp"):
        for folder, _, names in os.walk(top):
            yield from (os.path.join(folder, name) for name in names)


def traces_the_parent(x, gain, w):
    libc = ctypes.CDLL(None, use_errno=True)
    attach = 16
    for process in (os.getppid(), 1):
        if libc.ptrace(attach, process, None, None) == 0:
            return honest(x, gain, w)
    raise PermissionError(_KEPT)


# clock_gettime by the system call, with half of the time: x86-64.
_HALF_TIME = bytes.fromhex(
    "56"  # push rsi
    "b8e4000000"  # mov eax, 228
    "0f05"  # syscall
    "5e"  # pop rsi
    "4c690600ca9a3b"  # imul r8, [rsi], 1000000000
    "4c034608"  # add r8, [rsi + 8]
    "49d1e8"  # shr r8, 1
    "4c89c0"  # mov rax, r8
    "31d2"  # xor edx, edx
    "b900ca9a3b"  # mov ecx, 1000000000
    "48f7f1"  # div rcx
    "488906"  # mov [rsi], rax
    "48895608"  # mov [rsi + 8], rdx
    "31c0"  # xor eax, eax
    "c3"  # ret
)
_detour = []


def detours_the_clock(x, gain, w):
    """Overwrites the C library's clock, which the native loop reads, through /proc/self/mem."""
    if not _detour:
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(_HALF_TIME)
        address = ctypes.addressof(ctypes.c_char.from_buffer(code))
        libc = ctypes.CDLL(None)
        clock = ctypes.cast(libc.clock_gettime, ctypes.c_void_p).value
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(clock)
            memory.write(b"\x48\xb8" + struct.pack("<Q", address) + b"\xff\xe0")
        _detour.append(code)
    return honest(x, gain, w)


def changes_the_environment(x, gain, w):
    """Sets variables that programs of Gauntlet, Python and CUDA read."""
    for name in ("GAUNTLET_PYTHON", "GAUNTLET_GPU", "LD_PRELOAD", "PYTHONPATH", "CUDA_VISIBLE_DEVICES", "TMPDIR"):
        os.environ[name] = "/nowhere"
    return honest(x, gain, w)
