"""The tensors of a checkpoint for a PyTorch model: plain ones, and NVFP4 layers. Imports torch and safetensors."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open

from gauntlet.nvfp4._checkpoint import HUGE, Checkpoint, missing
from gauntlet.nvfp4._tensor import Tensor

REMEDY = "export the checkpoint again, or fetch it again"

MARKS = ("weight_packed", "weight_scale", "weight_scale_2", "weight_global_scale")
"""Tensors that only a quantised layer has. A layer of the layout ModelOpt also has `weight`, of bytes."""

UNUSED = re.compile(r"\.(input_scale|input_global_scale|(k_proj\.|v_proj\.|q_proj\.)?[qkv]_scale)$")
"""Scales of activations, and of the cache of keys and values: both stay in 16 bits here."""


class Entry(NamedTuple):
    """A tensor of a file."""

    file: Path
    dtype: str
    shape: tuple[int, ...]


class Stored:
    """The tensors of a checkpoint by name, and those that were not asked for.

    Raises:
        FileNotFoundError: There is no such checkpoint.
        ValueError: A file is not a safetensors file.
    """

    def __init__(self, path: str | PathLike[str], nan_scales_of_zeros: bool) -> None:
        self._options = {"nan_scales_of_zeros": nan_scales_of_zeros}
        self.checkpoint = Checkpoint(path, **self._options)
        self.path = self.checkpoint.path
        self.entries: dict[str, Entry] = {}
        self._suffixes: dict[str, list[str]] = {}
        self._files: dict[Path, Any] = {}
        for file in self.checkpoint.files:
            opened = self._files[file] = _opened(file)
            for name in opened.keys():  # noqa: SIM118  (it is no mapping)
                part = opened.get_slice(name)
                self.entries[name] = Entry(file, part.get_dtype(), tuple(part.get_shape()))
                layer, _, suffix = name.rpartition(".")
                self._suffixes.setdefault(layer, []).append(suffix)
        self.unused = {name for name in self.entries if not UNUSED.search(name)}
        self.huge: dict[str, float] = {}
        """The layers whose weights are too large to be believed, and how large they are."""

    def is_packed(self, layer: str) -> bool:
        """Whether a layer is stored in a quantised form."""
        weight = self.entries.get(f"{layer}.weight")
        suffixes = self._suffixes.get(layer, ())
        return any(mark in suffixes for mark in MARKS) or (weight is not None and weight.dtype == "U8")

    def packed(self, layer: str, shape: tuple[int, ...]) -> Tensor:
        """Reads an NVFP4 layer of this shape.

        Raises:
            ValueError: A tensor is missing or wrong, or the layer has one that would change its results.
        """
        suffixes = self._suffixes[layer]
        files = {self.entries[f"{layer}.{suffix}"].file for suffix in suffixes}
        where = files.pop() if len(files) == 1 else self.path
        try:
            _, found, bound = (Checkpoint(where, **self._options) if where != self.path else self.checkpoint).read(layer)
        except ValueError as error:
            raise ValueError(f"{error}; {REMEDY}") from None
        if bound > HUGE:
            self.huge[layer] = bound
        if found.shape != shape:
            raise ValueError(
                f"{where}: `{layer}` has a weight of shape {found.shape}, and the model's is {shape}; build the model from "
                "the checkpoint's config.json"
            )
        self.unused.difference_update(f"{layer}.{suffix}" for suffix in suffixes if suffix != "bias")
        return found

    def plain(self, name: str, place: torch.Tensor) -> torch.Tensor:
        """Reads a tensor that is not quantised, for a place in the model.

        Raises:
            ValueError: It is missing, has another shape, or is of integers where the model has floats.
        """
        entry = self.entries.get(name)
        if entry is None:
            raise ValueError(
                f"{self.path}: `{name}` is missing, which the model has; build the model from the checkpoint's config.json, or "
                + REMEDY
            )
        found: torch.Tensor = self._files[entry.file].get_tensor(name)
        if entry.shape != place.shape or found.is_floating_point() != place.is_floating_point():
            raise ValueError(
                f"{entry.file}: `{name}` is {entry.dtype} {list(entry.shape)}, and the model has {place.dtype} "
                f"{list(place.shape)} there; build the model from the checkpoint's config.json"
            )
        self.unused.discard(name)
        return found


def _opened(file: Path) -> Any:
    try:
        return safe_open(file, framework="pt")
    except FileNotFoundError:
        raise missing(file) from None
    except SafetensorError as error:
        raise ValueError(f"{file}: it is not a safetensors file: {error}; it may be cut short, fetch it again") from None
