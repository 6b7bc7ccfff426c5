"""NVFP4 weights from safetensors checkpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, overload

import numpy as np

from gauntlet import _native
from gauntlet.nvfp4._tensor import Tensor, from_parts

SUFFIX = ".weight_scale"


class Checkpoint(Mapping[str, Tensor]):
    """The NVFP4 layers of a checkpoint by name; each is read when it is asked for.

    The names of a layer's tensors decide its layout, and with it whether the stored scale multiplies or divides:
    ModelOpt stores `weight`, `weight_scale` and `weight_scale_2`, which multiplies; compressed-tensors stores
    `weight_packed`, `weight_scale` and `weight_global_scale`, which divides.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self.files, self._index = _shards(self.path)
        self._layers: list[str] | None = None

    def __getitem__(self, layer: str) -> Tensor:
        """Reads a layer.

        Raises:
            KeyError: The checkpoint has no such layer.
            ValueError: A tensor of the layer is missing or wrong; the message names it.
        """
        if layer not in self.names:
            raise KeyError(f"{self.path} has no NVFP4 layer {layer!r}; it has {_listed(self.names)}")
        return self.read(layer)[1]

    def layout(self, layer: str) -> str:
        """`ModelOpt` or `compressed-tensors`."""
        return self.read(layer)[0]

    @property
    def names(self) -> list[str]:
        """The layers that have block scales, in order."""
        if self._layers is None:
            try:
                found = {name for file in self.files for name in _native.layers(_mapped(file))}
            except ValueError as error:
                raise ValueError(f"{self.path}: {error}") from None
            self._layers = sorted(found)
        return self._layers

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"nvfp4.Checkpoint({str(self.path)!r}, {len(self)} layers)"

    def read(self, layer: str) -> tuple[str, Tensor]:
        """Reads a layer and its layout, whether or not it has block scales.

        Raises:
            ValueError: A tensor of the layer is missing or wrong; the message names it.
        """
        files = self.files
        if self._index is not None:
            own = {file for name, file in self._index.items() if name.startswith(f"{layer}.")}
            files = [file for file in self.files if file.name in own] or files
        try:
            layout, shape, parts = _native.read_layer([_mapped(file) for file in files], layer)
        except ValueError as error:
            raise ValueError(f"{files[0] if len(files) == 1 else self.path}: {error}") from None
        return layout, from_parts(shape, parts, like=parts[0])


@overload
def load(path: str | PathLike[str], layer: None = None) -> Checkpoint: ...
@overload
def load(path: str | PathLike[str], layer: str) -> Tensor: ...
def load(path: str | PathLike[str], layer: str | None = None) -> Checkpoint | Tensor:
    """Opens a checkpoint, or reads one layer of it.

    Args:
        path: A safetensors file, or a folder with `model.safetensors.index.json` or with such files.
        layer: The name of a layer, such as `model.layers.0.mlp.up_proj`.

    Returns:
        A mapping of layers, read when they are asked for; or the layer, ``[n, k]``, as numpy arrays. Its tensor scale
        always multiplies, whatever the file stores.

    Raises:
        FileNotFoundError: There is no such file.
        KeyError: The checkpoint has no such layer.
        ValueError: It is not a safetensors file, or a tensor of the layer is missing or wrong.
    """
    checkpoint = Checkpoint(path)
    return checkpoint if layer is None else checkpoint[layer]


def _shards(path: Path) -> tuple[list[Path], dict[str, str] | None]:
    """The files of a checkpoint, and its table of tensors if it has one."""
    if not path.is_dir():
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist; give a safetensors file or a folder of them")
        return [path], None
    table = path / "model.safetensors.index.json"
    if table.exists():
        index: dict[str, str] = json.loads(table.read_text())["weight_map"]
        return [path / name for name in sorted(set(index.values()))], index
    files = sorted(path.glob("*.safetensors"))
    if not files:
        raise FileNotFoundError(f"{path} holds no safetensors file; give the folder of a checkpoint")
    return files, None


def _mapped(file: Path) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of a file, read when they are used."""
    if file.stat().st_size == 0:
        raise ValueError(f"{file.name} is empty; fetch it again")
    return np.memmap(file, np.uint8, "r")


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:8]) or "none"
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown
