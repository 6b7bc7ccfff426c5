from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

def main(arguments: Sequence[str], program: Sequence[str]) -> int: ...
def version() -> str: ...

class Refused(ValueError): ...
class Failed(RuntimeError): ...

def ask(
    kernels: tuple[str | None, str],
    all_gates: bool,
    options: dict[str, Any],
    program: Sequence[str],
    tell: Callable[[str], object] | None,
) -> str: ...
def add_pairs(
    file: PathLike[str], pairs: int, program: Sequence[str], tell: Callable[[str], object] | None
) -> str: ...
def visible(text: str) -> str: ...
def percent(log: float) -> str: ...
def percent_interval(logs: tuple[float, float, float]) -> str: ...
def percent_span(logs: tuple[float, float, float]) -> str: ...
def threads() -> int: ...
def set_threads(threads: int) -> None: ...
def quantize(
    values: NDArray[np.float32], rows: int, columns: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], float]: ...
def dequantize(
    packed: NDArray[np.uint8],
    scales: NDArray[np.uint8],
    shape: tuple[int, int],
    scale: float,
    dtype: str,
) -> NDArray[np.uint8]: ...
def layers(file: NDArray[np.uint8]) -> list[str]: ...
def read_layer(
    files: Sequence[NDArray[np.uint8]], layer: str, nan_scales_of_zeros: bool
) -> tuple[str, tuple[int, int], tuple[NDArray[np.uint8], NDArray[np.uint8], float], float]: ...

class Matrices:
    def __new__(
        cls,
        packed: NDArray[np.uint8],
        block_scales: NDArray[np.uint8],
        rows: Sequence[int],
        columns: int,
        scales: Sequence[float],
    ) -> Matrices: ...

class Stack:
    n: int
    def __new__(
        cls, sizes: tuple[int, int, int], scales: Sequence[float], packing: str
    ) -> Stack: ...

class AttentionShape:
    def __new__(
        cls, sizes: tuple[int, int, int, int, int, int], words: tuple[str, str, str], causal: bool
    ) -> AttentionShape: ...

class RaggedShape:
    def __new__(
        cls, sizes: tuple[int, int, int, int, int, int], words: tuple[str, str, str], causal: bool
    ) -> RaggedShape: ...

class CudaLibrary:
    def __new__(cls, ordinal: int, beforehand: PathLike[str] | None) -> CudaLibrary: ...
    def enqueue(
        self,
        stream: int,
        is_capturing: bool,
        k: int,
        first: Stack,
        second: Stack | None,
        addresses: tuple[int, int, int, int],
        token_scales: Sequence[float],
        formats: tuple[str, str],
        tokens: Sequence[int],
        buffers: tuple[int, int, int],
    ) -> None: ...
    def enqueue_routed(
        self,
        stream: int,
        is_capturing: bool,
        k: int,
        first: Stack,
        second: Stack | None,
        addresses: tuple[int, int, int, int],
        token_scales: Sequence[float],
        formats: tuple[str, str],
        routing: tuple[int, int, bool],
        buffers: tuple[int, int, int],
        epilogue: tuple[tuple[int, int], str, tuple[float, float, float]] | None,
    ) -> None: ...
    def load(
        self, products: Sequence[tuple[int, Stack, Stack | None, tuple[str, str], bool]]
    ) -> None: ...
    def enqueue_arrange(
        self,
        stream: int,
        sizes: tuple[int, int, int, int],
        inputs: tuple[int, int],
        map: tuple[int, int],
        bytes: tuple[int, int],
        results: tuple[int, int, int, int, int],
        output: str,
    ) -> None: ...
    @staticmethod
    def mixture_scratch(sizes: tuple[int, int, int, int]) -> int: ...
    def enqueue_combine(
        self,
        stream: int,
        sizes: tuple[int, int, int, int],
        buffers: tuple[int, int, int, int],
        formats: tuple[str, str],
    ) -> None: ...
    def enqueue_attention(
        self,
        stream: int,
        is_capturing: bool,
        shape: AttentionShape,
        buffers: tuple[int, int, int, int],
        scales: Sequence[int] | None,
        numbers: Sequence[float] | None,
    ) -> None: ...
    def repack(
        self, stream: int, shape: tuple[int, int, int], buffers: tuple[int, int, int, int], tokens: str
    ) -> None: ...
    def enqueue_ragged_attention(
        self,
        stream: int,
        is_capturing: bool,
        shape: RaggedShape,
        buffers: tuple[int, int, int, int],
        scales: Sequence[int] | None,
        numbers: Sequence[float] | None,
        lengths: tuple[int, int, int, int],
        pages: tuple[int, int],
        strides: Sequence[tuple[int, int, int]],
    ) -> None: ...

def pack_steps(
    values: NDArray[np.uint8], scales: NDArray[np.uint8], shape: tuple[int, int, int], tokens: str
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]: ...
def grouped_mm(
    tokens: Matrices, weights: Matrices, second: Matrices | None, output: str
) -> NDArray[np.uint8]: ...
def grouped_mm_of_floats(
    elements: NDArray[np.uint8],
    dtype: str,
    sizes: Sequence[int],
    weights: Matrices,
    second: Matrices | None,
    output: str,
) -> NDArray[np.uint8]: ...
def moe(
    elements: NDArray[np.uint8],
    dtypes: tuple[str, str],
    sizes: tuple[int, int, int],
    ids: NDArray[np.int64],
    weights: NDArray[np.float32],
    experts: tuple[Matrices, Matrices, Matrices],
    expert_map: NDArray[np.int64] | None,
) -> NDArray[np.uint8]: ...
def attention(
    query: tuple[NDArray[np.uint8], NDArray[np.float32]],
    key: tuple[NDArray[np.uint8], NDArray[np.float32]],
    value: tuple[NDArray[np.uint8], NDArray[np.float32]],
    sizes: tuple[int, int, int, int, int, int],
    words: tuple[str, str, str],
    causal: bool,
) -> NDArray[np.uint8]: ...
