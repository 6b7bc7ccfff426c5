"""numpy arrays and PyTorch tensors as the flat bytes that the native part takes, and back."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

# Types that numpy lacks, by the module that adds them.
ADDED = {"bfloat16", "float8_e4m3fn", "float4_e2m1fn_x2"}


def is_torch(array: object) -> bool:
    """Whether it is a PyTorch tensor; imports nothing."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def is_array(array: object) -> bool:
    """Whether it is a numpy array or a PyTorch tensor."""
    return isinstance(array, np.ndarray) or is_torch(array)


def is_foreign(array: object) -> bool:
    """Whether it is an array of another library, which may be seen through DLPack."""
    return not is_array(array) and hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__")


def imported(array: Any) -> Any:
    """A PyTorch tensor over the memory of another library's array; anything else as it is.

    Raises:
        ValueError: PyTorch is not installed.
    """
    if not is_foreign(array):
        return array
    try:
        import torch
    except ImportError:
        raise ValueError(
            f"a {type(array).__name__} is computed through PyTorch, which is not installed; install torch, or give numpy arrays"
        ) from None
    return torch.from_dlpack(array)


def exported(result: Any, like: Any) -> Any:
    """An array of the library of `like` over the memory of a PyTorch tensor, without a copy; the tensor itself if that library
    has no array namespace (as the Python array API standard defines it) to import it."""
    namespace = getattr(like, "__array_namespace__", None)
    take = None if namespace is None else getattr(namespace(), "from_dlpack", None)
    return result if take is None else take(result)


def check_is_array(name: str, array: object) -> None:
    """Raises TypeError unless it is a numpy array or a PyTorch tensor."""
    if not is_array(array):
        found = type(array).__name__
        raise TypeError(f"{name}: it is a {found}; give a numpy array or a PyTorch tensor")


def is_cuda(array: Any) -> bool:
    """Whether it lies in the memory of an NVIDIA GPU."""
    return is_torch(array) and bool(array.is_cuda)


def dtype_name(array: Any) -> str:
    """The name of the element type, the same for numpy, ml_dtypes and PyTorch."""
    return str(array.dtype).removeprefix("torch.")


def device_name(array: Any) -> str:
    """Where it lies: ``cpu``, ``cuda:0`` and so on."""
    return str(array.device) if is_torch(array) else "cpu"


def check(name: str, array: Any, dtypes: Sequence[str], shape: Sequence[int | None] | None = None) -> None:
    """Raises unless the array has one of the types, the shape (``None`` for any size), and is contiguous."""
    check_is_array(name, array)
    found = dtype_name(array)
    if found not in dtypes:
        raise TypeError(f"{name}: its dtype is {found}; use {' or '.join(dtypes)}")
    sizes = tuple(int(size) for size in array.shape)
    if shape is not None:
        fits = len(sizes) == len(shape) and all(
            wanted is None or size == wanted for size, wanted in zip(sizes, shape, strict=True)
        )
        if not fits:
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            raise ValueError(f"{name}: its shape is {sizes}; it must be ({wanted})")
    check_contiguous(name, array)


def check_contiguous(name: str, array: Any) -> None:
    """Raises unless the elements lie one after another, the last dimension fastest."""
    if is_torch(array):
        if not array.is_contiguous():
            raise ValueError(f"{name}: its strides are {tuple(array.stride())}; make it contiguous with .contiguous()")
    elif not array.flags.c_contiguous:
        raise ValueError(f"{name}: its strides are {array.strides} bytes; make it contiguous with np.ascontiguousarray")


def check_same_device(arrays: dict[str, Any]) -> str:
    """The device of all of them; raises ValueError if they differ, or are on a device without kernels."""
    (first, array), *others = arrays.items()
    device = device_name(array)
    for name, other in others:
        if device_name(other) != device:
            raise ValueError(
                f"{name}: it is on {device_name(other)}, and {first} on {device}; move it with .to({device!r})"
            )
        if is_torch(other) != is_torch(array):
            raise TypeError(f"{name}: give arrays of one library; {first} is a {type(array).__name__}")
    if device.partition(":")[0] not in ("cpu", "cuda"):
        raise ValueError(f"{first}: it is on {device}; the kernels run on cpu and cuda, so move it with .to('cpu')")
    return device


def on_cpu(name: str, array: Any) -> None:
    """Raises ValueError unless it lies in the memory of the processor."""
    device = device_name(array)
    if device != "cpu":
        raise ValueError(f"{name}: it is on {device}, and this function works on the CPU; move it with .cpu()")


def flat_bytes(array: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of a contiguous array on the CPU, without a copy."""
    if is_torch(array):
        torch = sys.modules["torch"]
        return array.detach().contiguous().view(torch.uint8).reshape(-1).numpy()  # type: ignore[no-any-return]
    if array.size == 0:
        return np.empty(0, np.uint8)
    flat: np.ndarray[Any, np.dtype[np.uint8]] = array.reshape(-1).view(np.uint8)
    return flat


def flat_floats(array: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The elements of a floating array on the CPU as float32, exact: without a copy if they are, and are aligned."""
    if is_torch(array):
        return array.detach().float().reshape(-1).numpy()  # type: ignore[no-any-return]
    return np.require(array, np.float32, ("C", "A")).reshape(-1)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """numpy's type of this name; those that numpy lacks come from ml_dtypes.

    Raises:
        ValueError: ml_dtypes is needed and not installed.
    """
    if name not in ADDED:
        plain: np.dtype[Any] = np.dtype(name)
        return plain
    try:
        import ml_dtypes
    except ImportError:
        raise ValueError(
            f"numpy has no {name}; install the package ml_dtypes, or choose float32, or give PyTorch tensors"
        ) from None
    added: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return added


def check_result_dtype(like: Any, dtype: str) -> None:
    """Raises ValueError if no array of this type can be made in the library of `like`."""
    if not is_torch(like):
        numpy_dtype(dtype)


def from_bytes(
    data: np.ndarray[Any, np.dtype[np.uint8]], dtype: str, shape: Sequence[int], like: Any
) -> Any:
    """An array of the library of `like` over these bytes, without a copy."""
    if is_torch(like):
        torch = sys.modules["torch"]
        return torch.from_numpy(data).view(getattr(torch, dtype)).reshape(tuple(shape))
    return data.view(numpy_dtype(dtype)).reshape(tuple(shape))


def converted(array: Any, dtype: str) -> Any:
    """The array with elements of another type."""
    if is_torch(array):
        return array.to(getattr(sys.modules["torch"], dtype))
    return array.astype(numpy_dtype(dtype), copy=False)


def with_zero_rows(array: Any, rows: int) -> Any:
    """The array with rows of zeros after its own, so that there are `rows`."""
    if is_torch(array):
        longer = array.new_zeros((rows, *array.shape[1:]))
    else:
        longer = np.zeros((rows, *array.shape[1:]), array.dtype)
    longer[: array.shape[0]] = array
    return longer


def dtype_argument(name: str, dtype: object, default: str, like: Any) -> str:
    """The name of a type that is given as a name, a numpy type or a PyTorch type."""
    if dtype is None:
        return default
    text = dtype if isinstance(dtype, str) else str(getattr(dtype, "__name__", dtype))
    text = text.removeprefix("torch.")
    if text not in ("float64", "float32", "float16", "bfloat16"):
        raise TypeError(f"{name}: {dtype!r} is not supported; use float32, float16 or bfloat16")
    check_result_dtype(like, text)
    return text
