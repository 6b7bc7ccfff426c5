"""Tensors in files, as numpy arrays, and as torch tensors; and trees of them.

A file of tensors is a safetensors file: row-major, little-endian. A tensor in a file is a ``Stored``. Element types
that a file cannot hold travel in one that it can: packed FP4 and the other one-byte types as ``u8``, complex numbers as
pairs of floats. A tree says where tensors stand in a function's arguments or results:

    {"tensor": "x", "dtype": "float4_e2m1fn_x2", "strides": [1, 8], "device": "cpu"}   (only "tensor" is required)
    {"value": 3}     {"tuple": [tree, ...]}     {"list": [tree, ...]}     {"dict": {"key": tree, ...}}

This module needs numpy only. torch is imported when a tensor of torch is asked for.
"""

import json
import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np


class TensorError(Exception):
    """A tensor or a tree that cannot be read, written or placed; the text says which, and what to do."""


# Element types: the protocol's name, the name in a safetensors file, numpy's type (None where numpy has none), torch's.
_TYPES = [
    ("f64", "F64", "float64", "float64"),
    ("f32", "F32", "float32", "float32"),
    ("f16", "F16", "float16", "float16"),
    ("bf16", "BF16", None, "bfloat16"),
    ("f8e4m3", "F8_E4M3", None, "float8_e4m3fn"),
    ("f8e5m2", "F8_E5M2", None, "float8_e5m2"),
    ("i64", "I64", "int64", "int64"),
    ("i32", "I32", "int32", "int32"),
    ("i16", "I16", "int16", "int16"),
    ("i8", "I8", "int8", "int8"),
    ("u64", "U64", "uint64", "uint64"),
    ("u32", "U32", "uint32", "uint32"),
    ("u16", "U16", "uint16", "uint16"),
    ("u8", "U8", "uint8", "uint8"),
    ("bool", "BOOL", "bool", "bool"),
]
_BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "f8e4m3": 1, "f8e5m2": 1, "i64": 8, "i32": 4, "i16": 2, "i8": 1}
_BYTES |= {"u64": 8, "u32": 4, "u16": 2, "u8": 1, "bool": 1}
_IN_FILE = {name: file for name, file, _, _ in _TYPES}
_FROM_FILE = {file: name for name, file, _, _ in _TYPES}
_NUMPY = {name: numpy for name, _, numpy, _ in _TYPES if numpy}
_FROM_NUMPY = {numpy: name for name, numpy in _NUMPY.items()}
_TORCH = {name: torch for name, _, _, torch in _TYPES}
_FROM_TORCH = {torch: name for name, torch in _TORCH.items()}
# The same names in the package ml_dtypes, whose types numpy takes.
_ML_DTYPES = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
_FROM_NUMPY |= {theirs: name for name, theirs in _ML_DTYPES.items()}

# Element types that files cannot hold, and the stored type that carries them.
_CARRIED = {
    "float4_e2m1fn_x2": "u8",
    "float8_e8m0fnu": "u8",
    "float8_e4m3fnuz": "u8",
    "float8_e5m2fnuz": "u8",
    "complex32": "f16",
    "complex64": "f32",
    "complex128": "f64",
}

# The protocol's names of the floating-point types.
FLOATS = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2")

# The longest header that is read, as in safetensors itself.
_MOST_HEADER_BYTES = 100_000_000


@dataclass
class Stored:
    """A tensor as a file holds it."""

    data_type: str
    """The protocol's name of the element type, such as ``f32``."""
    shape: tuple
    """The shape, the slowest dimension first."""
    data: np.ndarray
    """The elements as bytes, row-major."""

    def __str__(self):
        return f"{self.data_type} {list(self.shape)}"


# Files


def read_file(path) -> "dict[str, Stored]":
    """All tensors of a safetensors file."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > _MOST_HEADER_BYTES:
            raise TensorError(f"{path} is not a safetensors file: its header would have {length} bytes")
        try:
            header = json.loads(file.read(length))
        except ValueError as error:
            raise TensorError(f"{path} is not a safetensors file: {error}") from None
        header.pop("__metadata__", None)
        begin = 8 + length
        tensors = {}
        for name, entry in header.items():
            data_type, shape = _FROM_FILE.get(entry["dtype"]), tuple(entry["shape"])
            if data_type is None:
                raise TensorError(f"{path}: tensor `{name}` has the unknown type {entry['dtype']}")
            first, last = entry["data_offsets"]
            data = np.empty(last - first, np.uint8)
            file.seek(begin + first)
            whole = math.prod(shape) * _BYTES[data_type]
            if file.readinto(data) != last - first or whole != last - first:
                raise TensorError(f"{path} ends within tensor `{name}`")
            tensors[name] = Stored(data_type, shape, data)
    return tensors


def write_file(path, tensors: "dict[str, Any]") -> int:
    """Writes tensors (``Stored``, numpy's or torch's) to a safetensors file; returns the bytes of their elements."""
    stored = {name: tensor if isinstance(tensor, Stored) else store(tensor, name) for name, tensor in tensors.items()}
    header, end = {}, 0
    for name, tensor in stored.items():
        begin, end = end, end + tensor.data.nbytes
        dtype = _IN_FILE[tensor.data_type]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [begin, end]}
    with open(path, "wb") as file:
        file.write(header_of(header))
        for tensor in stored.values():
            file.write(tensor.data.data)
    return end


def header_of(entries: dict) -> bytes:
    """The beginning of a file with these entries."""
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def header_for(specs: "list[dict]") -> bytes:
    """The beginning of a file with tensors of these names, types (``data_type``) and shapes."""
    header, end = {}, 0
    for spec in specs:
        data_type, shape = spec["data_type"], spec["shape"]
        begin, end = end, end + math.prod(shape) * _BYTES[data_type]
        header[spec["name"]] = {"dtype": _IN_FILE[data_type], "shape": shape, "data_offsets": [begin, end]}
    return header_of(header)


# Tensors of numpy and torch


def is_torch(value) -> bool:
    """Whether a value is a tensor of torch or of a subclass."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_tensor(value) -> bool:
    """Whether a value is an array of numpy or a tensor of torch, or of a subclass."""
    return isinstance(value, np.ndarray) or is_torch(value)


def dtype_name(tensor) -> str:
    """The element type as its library calls it: ``float32``, ``bfloat16``."""
    return str(tensor.dtype).removeprefix("torch.")


def types_of(tensor, where="tensor") -> "tuple[str, str | None]":
    """The stored element type, and the library's name of the type where the stored one does not tell it."""
    name = dtype_name(tensor)
    names = _FROM_TORCH if is_torch(tensor) else _FROM_NUMPY
    if name in names:
        return names[name], None
    if name in _CARRIED:
        return _CARRIED[name], name
    known = ", ".join(sorted([*names, *_CARRIED]))
    raise TensorError(f"`{where}` has the element type {name}, which cannot be kept in a file; use one of {known}")


def store(tensor, where="tensor") -> Stored:
    """A tensor as a file holds it, copied to the CPU, row-major."""
    data_type, carried = types_of(tensor, where)
    shape = tuple(tensor.shape) + ((2,) if carried and carried.startswith("complex") else ())
    if is_torch(tensor):
        tensor = _torch_elements(tensor, where)
    elif tensor.dtype.byteorder == ">":
        tensor = tensor.astype(tensor.dtype.newbyteorder("<"))
    return Stored(data_type, shape, np.ascontiguousarray(tensor).reshape(-1).view(np.uint8))


def _torch_elements(tensor, where):
    """A tensor of torch as an array of numpy whose elements have the same bits."""
    torch = sys.modules["torch"]
    if tensor.layout is not torch.strided:
        raise TensorError(f"`{where}` has the layout {tensor.layout}; return a dense tensor, such as by `.to_dense()`")
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return tensor.view(_carrier(torch, tensor.dtype)).contiguous().cpu().numpy()


def _carrier(torch, dtype):
    """A type of the same size that every operation of torch takes, so that packed and small floats can be copied."""
    sizes = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return sizes.get(dtype.itemsize, dtype)


def restore(stored: Stored, library: str, device="cpu", dtype=None, strides=None):
    """A new tensor of a library (``numpy`` or ``torch``) with the elements of a stored one. ``dtype`` is the library's
    element type where the stored type does not tell it, ``strides`` counts elements."""
    tensor = restore_numpy(stored, dtype, strides) if library == "numpy" else None
    return restore_torch(stored, device, dtype, strides) if tensor is None else tensor


def numpy_dtype(data_type: str, dtype=None) -> np.dtype:
    """numpy's element type for a stored one. Types that numpy does not have come from ml_dtypes where it is installed,
    and are otherwise the unsigned integers that hold their bits."""
    name = dtype or _NUMPY.get(data_type) or _ML_DTYPES.get(data_type)
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        return np.dtype(f"uint{8 * _BYTES[data_type]}")


def converted(tensor, data_type: str):
    """A tensor of the same library with its elements converted to a stored type."""
    return tensor.to(torch_dtype(data_type)) if is_torch(tensor) else tensor.astype(numpy_dtype(data_type))


def zeros(data_type: str, shape) -> Stored:
    """A stored tensor of zeros."""
    return Stored(data_type, tuple(shape), np.zeros(math.prod(shape) * _BYTES[data_type], np.uint8))


def empty(data_type: str, shape, library: str, device="cpu", dtype=None):
    """A new tensor of a library without values, row-major. ``shape`` is the one of the stored tensor."""
    if library == "numpy":
        return _empty_numpy(numpy_dtype(data_type, dtype), shape)
    torch, kind = import_torch(), torch_dtype(data_type, dtype)
    shape = shape[:-1] if kind.is_complex else shape
    return torch.empty(tuple(shape), dtype=_carrier(torch, kind), device=device).view(kind)


def _empty_numpy(kind, shape):
    """Aligned like torch's tensors: where arrays begin moves times otherwise."""
    shape = tuple(shape[:-1] if kind.kind == "c" else shape)
    length = math.prod(shape) * kind.itemsize
    memory = np.empty(length + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + length].view(kind).reshape(shape)


def restore_numpy(stored: Stored, dtype=None, strides=None) -> np.ndarray:
    """A new array of numpy with the elements of a stored tensor."""
    kind = numpy_dtype(stored.data_type, dtype)
    array = _empty_numpy(kind, stored.shape)
    shape = array.shape
    array.reshape(-1).view(np.uint8)[:] = stored.data
    if strides is None:
        return array
    placed = np.empty(1 + _last(shape, strides), kind)
    steps = [stride * kind.itemsize for stride in strides]
    view = np.lib.stride_tricks.as_strided(placed, shape, steps)
    view[...] = array
    return view


def torch_dtype(data_type: str, dtype=None):
    """torch's element type for a stored one."""
    torch = import_torch()
    name = dtype or _TORCH[data_type]
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise TensorError(f"torch {torch.__version__} has no element type {name}; install a newer torch")
    return found


def import_torch():
    """torch, or an error that says how to get it."""
    try:
        import torch
    except ImportError as error:
        raise TensorError(
            f"torch cannot be imported ({error}): install it into the Python at {sys.executable}, "
            "or name another Python by GAUNTLET_PYTHON"
        ) from None
    return torch


def restore_torch(stored: Stored, device="cpu", dtype=None, strides=None):
    """A new tensor of torch with the elements of a stored one."""
    torch = import_torch()
    kind = torch_dtype(stored.data_type, dtype)
    carrier = _carrier(torch, kind)
    shape = stored.shape[:-1] if kind.is_complex else stored.shape
    data = torch.from_numpy(stored.data.copy()).to(device)
    tensor = (data.view(carrier) if stored.data.nbytes else data.to(carrier)).reshape(shape)
    if strides is not None:
        # A dimension with stride 0 repeats one slice.
        full = [size if stride else min(size, 1) for size, stride in zip(shape, strides)]
        placed = torch.empty_strided(full, strides, dtype=carrier, device=device)
        placed.copy_(tensor[tuple(slice(0, size) for size in full)])
        tensor = placed.expand(shape)
    return tensor.view(kind)


def _last(shape, strides):
    """The offset of the last element."""
    return 0 if 0 in shape else sum((size - 1) * stride for size, stride in zip(shape, strides))


def strides_of(tensor) -> "list[int]":
    """The strides, counted in elements."""
    return list(tensor.stride()) if is_torch(tensor) else [step // tensor.itemsize for step in tensor.strides]


def in_double(tensor):
    """A tensor of the same library in f64, or in pairs of f64 where it is complex; integers, and bytes that hold packed numbers, stay
    as they are."""
    data_type, carried = types_of(tensor)
    if carried is None:
        kind = "float64" if data_type in FLOATS else None
    else:
        kind = "complex128" if carried.startswith("complex") else None
    if kind is None:
        return tensor
    return tensor.to(getattr(import_torch(), kind)) if is_torch(tensor) else tensor.astype(kind)


def is_row_major(tensor) -> bool:
    """Whether the elements lie one after the other in row-major order."""
    return tensor.is_contiguous() if is_torch(tensor) else tensor.flags.c_contiguous


def is_narrower(data_type: str, other: str) -> bool:
    """Whether elements of a stored type take fewer bytes than those of another."""
    return _BYTES[data_type] < _BYTES[other]


# Memory


def version(tensor):
    """How often a tensor of torch was written; None for an array."""
    return tensor._version if is_torch(tensor) else None


def is_changed(tensor, before, stored: Stored) -> bool:
    """Whether a tensor that was restored from a stored one was written since its version was ``before``."""
    return version(tensor) != before if is_torch(tensor) else not np.array_equal(store(tensor).data, stored.data)


def sharing(tensor, others: "dict[str, Any]"):
    """The name of the first of other tensors whose memory a tensor lies in; None if there is none."""
    if not is_torch(tensor):
        return next((name for name, other in others.items() if np.may_share_memory(tensor, other)), None)

    def memory(own):
        return own.untyped_storage().data_ptr() if own.numel() else None

    own = memory(tensor)
    return next((name for name, other in others.items() if own is not None and memory(other) == own), None)


# Trees


def leaves(tree) -> "list[dict]":
    """The leaves of a tree that stand for tensors, in order."""
    if "tensor" in tree:
        return [tree]
    if "value" in tree:
        return []
    return [leaf for branch in _branches(tree) for leaf in leaves(branch)]


def _branches(tree):
    if "dict" in tree:
        return tree["dict"].values()
    for kind in ("tuple", "list"):
        if kind in tree:
            return tree[kind]
    raise TensorError(f"{json.dumps(tree)} is not a tree: it has neither tensor, value, tuple, list nor dict")


def mapped(tree, change):
    """A tree with its leaves changed."""
    if "tensor" in tree:
        return change(tree)
    if "dict" in tree:
        return {"dict": {key: mapped(branch, change) for key, branch in tree["dict"].items()}}
    return {kind: [mapped(branch, change) for branch in value] if kind != "value" else value for kind, value in tree.items()}


def plant(tree, place):
    """The value of a tree: ``place(leaf)`` gives the tensor of each leaf."""
    if "tensor" in tree:
        return place(tree)
    if "value" in tree:
        return tree["value"]
    if "dict" in tree:
        return {key: plant(branch, place) for key, branch in tree["dict"].items()}
    values = [plant(branch, place) for branch in _branches(tree)]
    return tuple(values) if "tuple" in tree else values


def plant_stored(tree, stored: "dict[str, Stored]", library: str, device="cpu"):
    """The value of a tree whose tensors come from a file."""

    def place(leaf):
        where = leaf.get("device", device)
        return restore(stored[leaf["tensor"]], library, where, leaf.get("dtype"), leaf.get("strides"))

    return plant(tree, place)


def describe(value, name="", device="cpu", tensors=None) -> "tuple[dict, dict]":
    """The tree of a value, and its tensors by name. Tensors of a dict have its keys as names, those of a sequence are
    numbered, and the names of nested ones are joined by dots. ``device`` is the one that is not written down."""
    tensors = {} if tensors is None else tensors
    if is_tensor(value) or isinstance(value, np.generic):
        value = value if is_tensor(value) else np.asarray(value)
        name = name or "0"
        tensors[name] = value
        leaf, (_, carried) = {"tensor": name}, types_of(value, name)
        if carried:
            leaf["dtype"] = carried
        if not is_row_major(value):
            leaf["strides"] = strides_of(value)
        if is_torch(value) and value.device.type != device:
            leaf["device"] = value.device.type
        return leaf, tensors

    def below(key, branch):
        return describe(branch, f"{name}.{key}" if name else str(key), device, tensors)[0]

    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TensorError(f"`{name or 'the value'}` has the key {key!r}; keys must be strings")
        return {"dict": {key: below(key, branch) for key, branch in value.items()}}, tensors
    if isinstance(value, (tuple, list)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [below(index, branch) for index, branch in enumerate(value)]}, tensors
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}, tensors
    kind = type(value)
    raise TensorError(
        f"`{name or 'the value'}` is a {kind.__module__}.{kind.__qualname__}; only arrays of numpy, tensors of torch, "
        "numbers, strings, None, and tuples, lists and dicts of these can be given to a kernel"
    )
