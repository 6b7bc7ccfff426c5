"""Tasks: what is to be computed, on which inputs, and what counts as right."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gauntlet import _functions
from gauntlet._errors import kind

Function = Callable[..., Any]
Cases = Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Task:
    """What is to be computed.

    Args:
        generate: Draws the inputs of a case: ``generate(**case, seed)`` returns a dict of named arrays or tensors.
        reference: The expected result of those inputs, called by their names. Without one, the baseline of a comparison
            stands in, so that an error which both kernels share is not found.
        cases: Sizes, one dict a case; or ``{"correctness": [...], "benchmark": [...]}``.
        tolerance: ``{"rtol": ..., "atol": ...}``, or ``"check"`` if only `check` decides; by default by the output's type.
        check: The task's own check, ``check(inputs, output, expected)``; returns None or a message.
        constant: Names of inputs that stay the same from call to call, such as weights.
        deterministic: Whether equal inputs must give equal bits in every call; sums by atomic additions of floats do not.
        work: ``work(**case)`` returns ``{"flops": ..., "bytes": ...}``.
        name: What it is called.
        path: A task that is kept in a file or folder: Gauntlet's own format, GPU MODE's, KernelBench's or FlashInfer's. It
            stands alone.
        accepts: Names of null kernels that pass, of which the task knows, such as ``["view"]``; see ``gauntlet audit``.

    Raises:
        TypeError: An argument is of another type.
        ValueError: `path` stands beside other arguments, or there are neither cases nor a path.
    """

    generate: Function | None = None
    reference: Function | None = None
    cases: Cases = ()
    tolerance: Any = None
    check: Function | None = None
    constant: Sequence[str] = ()
    deterministic: bool = True
    work: Function | None = None
    name: str = "task"
    path: str | Path | None = None
    accepts: Sequence[str] = ()
    parameters: Sequence[str] = field(default=(), repr=False)
    """Names for the inputs if `generate` returns a tuple or a single array."""

    def __post_init__(self) -> None:
        if self.path is not None:
            if self.generate is not None or self.reference is not None or self.cases:
                raise ValueError("path: it stands beside other arguments; a task in a file is described there")
            return
        if self.generate is None:
            raise ValueError("generate: it is left out; give a function that draws the inputs of a case")
        for name in ("generate", "reference", "check", "work"):
            function = getattr(self, name)
            if function is not None and not callable(function):
                raise TypeError(f"{name}: it is {kind(function)}; give a function")
        if self.tolerance not in (None, "check") and not isinstance(self.tolerance, dict):
            raise TypeError(
                f'tolerance: it is {self.tolerance!r}; give a dict such as {{"rtol": 1e-3, "atol": 1e-3}}, one for each '
                'output by name, or "check"'
            )
        if not self.cases:
            raise ValueError('cases: there are none; give at least one, such as [{"rows": 512}], or [{}] without sizes')
        _plain_cases(self.cases)

    @classmethod
    def define(cls, **arguments: Any) -> Callable[[type], Task]:
        """A decorator that makes a task of a class with the functions `generate`, `reference`, `check` and `work`.

        >>> @Task.define(cases=[{"count": 1024}])
        ... class Doubling:
        ...     def generate(count, seed):
        ...         import numpy as np
        ...
        ...         return {"x": np.random.default_rng(seed).random(count, np.float32)}
        ...
        ...     def reference(x):
        ...         return x * 2
        """

        def made(described: type) -> Task:
            own = {
                name: getattr(described, name)
                for name in ("generate", "reference", "cases", "tolerance", "check", "constant", "deterministic", "accepts", "work")
                if name in vars(described)
            }
            return cls(name=described.__name__, **{**own, **arguments})

        return made

    def write(self, folder: Path) -> Path:
        """Writes the task where the command finds it; returns the path for ``--task``."""
        if self.path is not None:
            return Path(self.path).absolute()
        place = folder / _word(self.name)
        place.mkdir()
        file = place / "task.py"
        lines = [_functions.preamble(), f"cases = {_plain_cases(self.cases)!r}"]
        for name in ("generate", "reference", "check", "work"):
            function = getattr(self, name)
            if function is None:
                continue
            try:
                found = _functions.place(function)
            except TypeError as error:
                raise TypeError(f"{name}: {error}") from None
            lines.append(f"{name} = find({found!r})")
        if self.parameters:
            lines.append("from gauntlet._task import named")
            lines.append(f"generate = named(generate, {list(self.parameters)!r})")
        if self.tolerance is not None:
            lines.append(f"tolerance = {self.tolerance!r}")
        if self.constant:
            constant = [self.constant] if isinstance(self.constant, str) else list(self.constant)
            lines.append(f"constant = {constant!r}")
        if self.accepts:
            accepts = [self.accepts] if isinstance(self.accepts, str) else list(self.accepts)
            lines.append(f"accepts = {accepts!r}")
        if not self.deterministic:
            lines.append("deterministic = False")
        file.write_text("\n".join(lines) + "\n")
        return file


def named(generate: Function, parameters: Sequence[str]) -> Function:
    """The same generator, whose tuple or single array gets these names."""
    import functools

    @functools.wraps(generate)
    def named_generate(**case: Any) -> Mapping[str, Any]:
        drawn = generate(**case)
        if isinstance(drawn, Mapping):
            return drawn
        values = drawn if isinstance(drawn, (tuple, list)) else (drawn,)
        if len(values) > len(parameters):
            raise ValueError(
                f"inputs returned {len(values)} values, and the baseline takes {len(parameters)}: {', '.join(parameters)}"
            )
        return dict(zip(parameters, values, strict=False))

    return named_generate


def parameters_of(function: object) -> list[str]:
    """The names of a function's positional parameters; none if it has no signature."""
    try:
        found = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in found if parameter.kind in positional]


def _plain_cases(cases: Cases) -> Any:
    plain: Any
    if isinstance(cases, Mapping):
        plain = {name: _dicts(own) for name, own in cases.items()}
    else:
        plain = _dicts(cases)
    try:
        json.dumps(plain)
    except TypeError as error:
        raise TypeError(f"cases: {error}; a case is a dict of numbers, texts and lists") from None
    return plain


def _dicts(cases: object) -> list[dict[str, Any]]:
    if not isinstance(cases, (list, tuple)) or not all(isinstance(case, Mapping) for case in cases):
        raise TypeError(
            f'cases: {cases!r} is no list of dicts; give a dict for each case, such as [{{"rows": 512}}], or '
            '{"correctness": […], "benchmark": […]}'
        )
    return [dict(case) for case in cases]


def _word(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name) or "task"
