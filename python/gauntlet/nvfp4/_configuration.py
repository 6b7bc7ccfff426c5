"""What the files beside a checkpoint say about its quantisation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gauntlet.nvfp4._tensor import BLOCK

FILES = {"hf_quant_config.json": "quantization", "config.json": "quantization_config"}
"""The files that describe a quantised checkpoint, and the part of each that does."""

METHODS = ("modelopt", "compressed-tensors")
ALGORITHMS = ("NVFP4", "W4A16_NVFP4")
"""ModelOpt's names of NVFP4 weights without a change of their inputs. Activations stay in 16 bits here, quantised or not."""

FORMAT = "nvfp4-pack-quantized"
WEIGHTS = {
    "num_bits": (4,),
    "type": ("float",),
    "group_size": (BLOCK,),
    "strategy": ("tensor_group",),
    "symmetric": (True,),
    "dynamic": (False,),
    # The two that leave the stored columns in their order.
    "actorder": (None, "weight", "static"),
    "block_structure": (None,),
}
"""The quantisation of weights that is computed here, by the keys that both quantisers write."""

Difference = tuple[str, Any, str]


def excluded(folder: Path) -> list[str]:
    """The patterns of modules that a checkpoint leaves out of quantisation; none if no file says so.

    Raises:
        ValueError: A file describes something other than NVFP4 weights, or is broken; the message names file, key and value.
    """
    patterns: list[str] = []
    for file, part in FILES.items():
        path = folder / file
        settings = _object(path, _read(path), part) if path.is_file() else {}
        if not settings:
            continue
        check(path, part, settings)
        patterns += [name for key in ("ignore", "exclude_modules") for name in _names(path, settings, key)]
    return patterns


def check(path: Path | str, part: str, settings: dict[str, Any]) -> None:
    """Looks at the settings that are under a key of a file.

    Raises:
        ValueError: They describe something other than NVFP4 weights, or are broken.
    """
    for key, found, wanted in _differences(path, settings):
        raise ValueError(
            f"{path}: `{part}.{key}` is {found!r}, and only {wanted} is computed here; quantise the model again with that, "
            "or load it with the library that wrote it"
        )


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise _broken(path, "it is not a JSON object") from None


def _object(path: Path | str, found: Any, key: str) -> dict[str, Any]:
    """What is under a key that may be left out or null."""
    if not isinstance(found, dict):
        raise _broken(path, "it is not a JSON object")
    inner = found.get(key) or {}
    if not isinstance(inner, dict):
        raise _broken(path, f"`{key}` is {inner!r}, and not an object")
    return inner


def _names(path: Path | str, settings: dict[str, Any], key: str) -> list[str]:
    names = settings.get(key) or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _broken(path, f"`{key}` is {names!r}, and not a list of names")
    return names


def _broken(path: Path | str, fault: str) -> ValueError:
    return ValueError(f"{path}: {fault}; fetch it again")


def _differences(path: Path | str, settings: dict[str, Any]) -> Iterator[Difference]:
    """Keys with what they have and what these kernels compute, where that is not the same."""
    method = settings.get("quant_method", "modelopt")
    yield from _other("quant_method", method, METHODS)
    if method == "modelopt":
        yield from _other("quant_algo", settings.get("quant_algo"), ALGORITHMS)
    else:
        yield from _other("format", settings.get("format"), (FORMAT,))
    yield from _other("group_size", settings.get("group_size", BLOCK), (BLOCK,))
    for key in ("pre_quant_scale", "has_zero_point"):
        yield from _other(key, settings.get(key) or False, (False,))
    # Rotations of activations, without which the stored weights multiply the wrong vectors.
    yield from _other("transform_config", settings.get("transform_config") or None, (None,))
    sparsity = _object(path, settings, "sparsity_config")
    yield from _other("sparsity_config.format", sparsity.get("format", "dense"), ("dense",))
    groups = _object(path, settings, "config_groups")
    for name in groups:
        group = _object(path, groups, name)
        place = f"config_groups.{name}"
        yield from _other(f"{place}.format", group.get("format") or FORMAT, (FORMAT,))
        weights = _object(path, group, "weights")
        for key, wanted in WEIGHTS.items():
            yield from _other(f"{place}.weights.{key}", weights.get(key, wanted[0]), wanted)
        # Inputs of 4 bits, or none, stay in 16 bits; others, such as FP8, belong to another algorithm.
        for end, most in (("input_activations", (4, 16)), ("output_activations", (16,))):
            bits = _object(path, group, end).get("num_bits", 16)
            yield from _other(f"{place}.{end}.num_bits", bits, most)


def _other(key: str, found: Any, wanted: tuple[Any, ...]) -> Iterator[Difference]:
    if not any(found == one and type(found) is type(one) for one in wanted):
        yield key, found, " or ".join(repr(one) for one in wanted)
