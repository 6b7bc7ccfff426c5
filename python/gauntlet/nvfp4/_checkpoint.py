"""NVFP4 weights from safetensors checkpoints."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np

from gauntlet import _native
from gauntlet.nvfp4 import _configuration
from gauntlet.nvfp4._tensor import Tensor, from_parts

HUGE = 1e4
"""Weights are hardly ever above 100. A scale that was stored for the other layout is the reciprocal of the right one, and gives
weights of 70,000 or more for all whose largest is between 0.01 and 100."""

OTHER_SCALE = "found = nvfp4.load(path, layer); nvfp4.Tensor(found.values, found.scales, 1 / found.tensor_scale)"
"""How to take a scale the other way."""


class Layer(NamedTuple):
    """A layer as it was read."""

    layout: str
    tensor: Tensor
    bound: float
    """No weight's magnitude exceeds it, and the largest is not far below."""


class Checkpoint(Mapping[str, Tensor]):
    """The NVFP4 layers of a checkpoint by name; each is read when it is asked for.

    The names of a layer's tensors decide its layout, and with it whether the stored scale multiplies or divides:
    ModelOpt stores `weight`, `weight_scale` and `weight_scale_2`, which multiplies; compressed-tensors stores
    `weight_packed`, `weight_scale` and `weight_global_scale`, which divides.

    Args:
        path: As in `load`.
        nan_scales_of_zeros: As in `load`.
    """

    def __init__(self, path: str | PathLike[str], *, nan_scales_of_zeros: bool = False) -> None:
        self.path = Path(path)
        self.files, self._index = _shards(self.path)
        self.excluded = _configuration.excluded(self.path if self.path.is_dir() else self.path.parent)
        self._layers: list[str] | None = None
        self._nan_scales_of_zeros = nan_scales_of_zeros

    def __getitem__(self, layer: str) -> Tensor:
        """Reads a layer.

        Raises:
            KeyError: The checkpoint has no such layer.
            ValueError: A tensor of the layer is missing or wrong; the message names it.
        """
        if layer not in self.names:
            raise KeyError(f"{self.path} has no NVFP4 layer {layer!r}; it has {_listed(self.names)}")
        found = self.read(layer)
        if found.bound > HUGE:
            warnings.warn(
                f"{self.path}: weights of `{layer}` are as large as {found.bound:.0e}. Its scale seems to be stored the other way: in "
                f"the layout {found.layout} it {'multiplies' if found.layout == 'ModelOpt' else 'divides'}. If so: {OTHER_SCALE}",
                stacklevel=2,
            )
        return found.tensor

    def layout(self, layer: str) -> str:
        """`ModelOpt` or `compressed-tensors`."""
        return self.read(layer).layout

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

    def read(self, layer: str) -> Layer:
        """Reads a layer, whether or not it has block scales.

        Raises:
            ValueError: A tensor of the layer is missing or wrong, or changes what it computes; the message names it.
        """
        files = self.files
        if self._index is not None:
            own = {file for name, file in self._index.items() if name.startswith(f"{layer}.")}
            files = [file for file in self.files if file.name in own] or files
        try:
            layout, shape, parts, bound = _native.read_layer(
                [_mapped(file) for file in files], layer, self._nan_scales_of_zeros
            )
        except ValueError as error:
            raise ValueError(f"{files[0] if len(files) == 1 else self.path}: {error}") from None
        return Layer(layout, from_parts(shape, parts, like=parts[0]), bound)


@overload
def load(path: str | PathLike[str], layer: None = None, *, nan_scales_of_zeros: bool = False) -> Checkpoint: ...
@overload
def load(path: str | PathLike[str], layer: str, *, nan_scales_of_zeros: bool = False) -> Tensor: ...
def load(
    path: str | PathLike[str], layer: str | None = None, *, nan_scales_of_zeros: bool = False
) -> Checkpoint | Tensor:
    """Opens a checkpoint, or reads one layer of it.

    Scales of activations and of the cache of keys and values are not used: both stay in 16 bits. A scale that seems to be stored for
    the other layout, so that weights are above 10,000, is a warning.

    Args:
        path: A safetensors file, or a folder with `model.safetensors.index.json` or with such files.
        layer: The name of a layer, such as `model.layers.0.mlp.up_proj`.
        nan_scales_of_zeros: A block scale that is NaN counts as 0 where all 16 codes are 0, as in some published checkpoints.
            Elsewhere it stays an error.

    Returns:
        A mapping of layers, read when they are asked for; or the layer, ``[n, k]``, as numpy arrays. Its tensor scale
        always multiplies, whatever the file stores.

    Raises:
        FileNotFoundError: There is no such file.
        KeyError: The checkpoint has no such layer.
        ValueError: It is not a safetensors file, or a tensor of the layer is missing or wrong; or the layer has a tensor, or
            the checkpoint a configuration (`config.json` or `hf_quant_config.json` beside it), of something that is not
            computed here, such as AWQ. The message names file and tensor or key.
    """
    checkpoint = Checkpoint(path, nan_scales_of_zeros=nan_scales_of_zeros)
    return checkpoint if layer is None else checkpoint[layer]


def _shards(path: Path) -> tuple[list[Path], dict[str, str] | None]:
    """The files of a checkpoint, and its table of tensors if it has one."""
    if not path.is_dir():
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist; give a safetensors file or a folder of them")
        return [path], None
    table = path / "model.safetensors.index.json"
    if table.exists():
        index = _table(table)
        return [path / name for name in sorted(set(index.values()))], index
    files = sorted(path.glob("*.safetensors"))
    if not files:
        raise FileNotFoundError(f"{path} holds no safetensors file; give the folder of a checkpoint")
    return files, None


def _table(path: Path) -> dict[str, str]:
    """The file of each tensor, by an index."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ValueError(f"{path}: it is not JSON; fetch it again") from None
    table = found.get("weight_map") if isinstance(found, dict) else None
    if not isinstance(table, dict) or not table or not all(isinstance(file, str) and file for file in table.values()):
        raise ValueError(f"{path}: it has no `weight_map` from tensors to the names of files; fetch it again")
    return table


def _mapped(file: Path) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of a file, read when they are used."""
    if not file.is_file():
        raise missing(file)
    if file.stat().st_size == 0:
        raise ValueError(f"{file.name} is empty; fetch it again")
    return np.memmap(file, np.uint8, "r")


def missing(file: Path) -> FileNotFoundError:
    """The error of a file that is only named."""
    return FileNotFoundError(f"{file} does not exist, and the checkpoint's index names it; fetch it")


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:8]) or "none"
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown
