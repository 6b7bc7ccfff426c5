"""Which modules a list of names excludes, and what the configuration of a checkpoint says about it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from gauntlet.nvfp4._tensor import BLOCK

FILES = {"hf_quant_config.json": "quantization", "config.json": "quantization_config"}
"""The files that describe a quantised checkpoint, and the part of each that does."""

ALGORITHM = "NVFP4"
FORMAT = "nvfp4-pack-quantized"


def is_excluded(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns names the module, or a module that contains it. A pattern is a name, perhaps with ``*``,
    or a regular expression for the beginning of a name after ``re:``."""
    return any(
        re.match(pattern[3:], name) is not None
        if pattern.startswith("re:")
        else fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*")
        for pattern in patterns
    )


def of_checkpoint(folder: Path) -> list[str]:
    """The patterns of modules that a checkpoint leaves out of quantisation; none if no file says so.

    Raises:
        ValueError: A file describes something other than NVFP4 weights; the message names file, key and value.
    """
    patterns: list[str] = []
    for file, part in FILES.items():
        path = folder / file
        if not path.is_file():
            continue
        try:
            settings = json.loads(path.read_text(encoding="utf-8")).get(part)
        except (ValueError, AttributeError):
            raise ValueError(f"{path}: it is not a JSON object; fetch it again") from None
        if settings:
            for key, found, wanted in _differences(settings):
                raise ValueError(
                    f"{path}: `{part}.{key}` is {found!r}, and only {wanted!r} is computed here; quantise the model again "
                    "with that, or load it with the library that wrote it"
                )
            patterns += [*(settings.get("ignore") or []), *(settings.get("exclude_modules") or [])]
    return patterns


def _differences(settings: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Keys with what they have and what these kernels compute, where that is not the same."""
    method = settings.get("quant_method", "modelopt")
    if method not in ("modelopt", "compressed-tensors"):
        yield "quant_method", method, "modelopt"
    if method == "modelopt" and settings.get("quant_algo") != ALGORITHM:
        yield "quant_algo", settings.get("quant_algo"), ALGORITHM
    if method == "compressed-tensors" and settings.get("format") != FORMAT:
        yield "format", settings.get("format"), FORMAT
    if settings.get("group_size", BLOCK) != BLOCK:
        yield "group_size", settings["group_size"], BLOCK
    if settings.get("transform_config"):
        # Rotations of activations, without which the stored weights multiply the wrong vectors.
        yield "transform_config", settings["transform_config"], None
    for name, group in (settings.get("config_groups") or {}).items():
        weights = group.get("weights") or {}
        for key, wanted in (("num_bits", 4), ("type", "float"), ("group_size", BLOCK)):
            if weights.get(key, wanted) != wanted:
                yield f"config_groups.{name}.weights.{key}", weights[key], wanted
