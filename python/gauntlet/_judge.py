"""The judge: compares kernels in fresh processes and says what is shown."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gauntlet import _functions, _native, _program, _verdict
from gauntlet._errors import GauntletError, kind
from gauntlet._task import Cases, Function, Task, parameters_of
from gauntlet._verdict import Verdict

Kernel = Callable[..., Any] | str | os.PathLike[str]
Progress = bool | Callable[[str], None] | None


def compare(
    baseline: Kernel,
    candidate: Kernel,
    *,
    inputs: Function | None = None,
    reference: Function | None = None,
    cases: Cases | None = None,
    task: Task | str | os.PathLike[str] | None = None,
    tolerance: Any = None,
    constant: Sequence[str] = (),
    case: str | Sequence[str] = (),
    budget: str = "45s",
    pairs: int | None = None,
    device: str | None = None,
    warm: bool = False,
    regime: str = "isolated",
    scope: str = "device",
    activity: bool = False,
    quick: bool = False,
    progress: Progress = None,
) -> Verdict:
    """Compares two kernels: are both right, and which is faster?

    Each trial is a fresh pair of processes, and both kernels get the same inputs. Functions are found there by module or
    file and qualified name, those of a notebook or a closure by cloudpickle.

    Args:
        baseline: A function, or a kernel as the command takes it, such as ``"softmax.py:slow"`` or ``"stages=2"``.
        candidate: Another one, which the verdict is about.
        inputs: Draws the inputs of a case: ``inputs(**case, seed)`` returns a dict of named arrays; a tuple or a single
            array is given the names of the baseline's parameters.
        reference: What is right; the baseline if it is left out.
        cases: Sizes, one dict a case; one case without sizes if they are left out.
        task: A `Task`, or a path or name as ``--task`` takes it, in place of inputs, reference, cases, tolerance and
            constant.
        tolerance: As in `Task`.
        constant: As in `Task`.
        case: The name of a timed case of the task, or several: only these are timed.
        budget: Time for the comparison, such as ``"30s"`` or ``"5m"``.
        pairs: At most this many pairs of processes, at least 6; as many as the time allows if it is left out.
        device: A GPU's name, such as ``"h100"``; this machine's processor if it is left out.
        warm: Whether inputs may stay in the caches between calls.
        regime: ``"isolated"`` times short requests with pauses between them; ``"sustained"`` puts each kernel under load
            for half a second or more before it is timed.
        scope: How calls on a GPU are clocked: ``"device"`` on the device alone, as in a captured graph; ``"call"`` from the
            call of the function until its results are there, with what the host does.
        activity: Whether what a GPU does in calls is traced after the last pair; the report shows it.
        quick: Whether the kernels are your own and trusted: seconds in place of tens of seconds, and nothing is done against a
            kernel that wants to deceive.
        progress: Whether progress is shown on standard error; by default at a terminal. Or a function, which is called with
            each event as a line of text.

    Returns:
        The verdict.

    Raises:
        TypeError: An argument is of another type, or a function cannot be found by a fresh process.
        ValueError: Arguments contradict each other.
        BadInput: The task or a kernel cannot be used; the message says where and what to do.
        Broken: The command fails.
    """
    task = _task(task, baseline, inputs, reference, cases, tolerance, constant)
    with tempfile.TemporaryDirectory(prefix="gauntlet-") as temporary:
        folder = Path(temporary)
        kernels = (_text(folder, "baseline", baseline), _text(folder, "candidate", candidate))
        options = _options(folder, task, case, budget, pairs, device, warm, regime, scope, activity, quick)
        names = _names(baseline, candidate)
        return _answer(_native.ask, kernels, False, options, folder=folder, progress=progress, names=names)


def judge(
    candidate: Kernel,
    task: Task | str | os.PathLike[str],
    *,
    baseline: Kernel | None = None,
    case: str | Sequence[str] = (),
    budget: str = "45s",
    pairs: int | None = None,
    device: str | None = None,
    warm: bool = False,
    regime: str = "isolated",
    scope: str = "device",
    activity: bool = False,
    quick: bool = False,
    progress: Progress = None,
) -> Verdict:
    """Sends a kernel through all gates, and compares it with a baseline.

    Args:
        candidate: As in `compare`.
        task: A `Task`, or a path or name as ``--task`` takes it.
        baseline: Another kernel; the task's own baseline or its reference if it is left out.
        case: As in `compare`, and so are the others.
        budget: As in `compare`.
        pairs: As in `compare`.
        device: As in `compare`.
        warm: As in `compare`.
        regime: As in `compare`.
        scope: As in `compare`.
        activity: As in `compare`.
        quick: As in `compare`.
        progress: As in `compare`.

    Returns:
        The verdict.

    Raises:
        As `compare`.
    """
    with tempfile.TemporaryDirectory(prefix="gauntlet-") as temporary:
        folder = Path(temporary)
        text = None if baseline is None else _text(folder, "baseline", baseline)
        kernels = (text, _text(folder, "candidate", candidate))
        options = _options(folder, task, case, budget, pairs, device, warm, regime, scope, activity, quick)
        names = _names("the reference" if baseline is None else baseline, candidate)
        return _answer(_native.ask, kernels, True, options, folder=folder, progress=progress, names=names)


def add_pairs(result: str | os.PathLike[str], pairs: int, *, progress: Progress = None) -> Verdict:
    """Adds pairs of processes to an undecided comparison, as ``gauntlet compare --more`` does.

    Args:
        result: The file that ``--json`` of ``gauntlet compare`` or ``judge`` wrote; it is brought up to date. Kernels, task and
            machine must be the same.
        pairs: How many pairs, at least; the comparison goes on to the next look of its plan.
        progress: As in `compare`.

    Returns:
        The verdict over all pairs.

    Raises:
        As `compare`.
    """
    if not isinstance(pairs, int) or pairs < 1:
        raise TypeError(f"pairs: it is {pairs!r}; give a whole number of at least 1")
    file = Path(result)
    return _answer(_native.add_pairs, file, pairs, folder=file, progress=progress, names=None)


def evaluate(
    program_path: str | os.PathLike[str],
    task: Task | str | os.PathLike[str],
    *,
    function: str | None = None,
    baseline: Kernel | None = None,
    budget: str = "45s",
    device: str | None = None,
) -> dict[str, Any]:
    """Judges a program that an agent wrote; never raises for what the program does.

    Args:
        program_path: A Python file.
        task: As in `judge`.
        function: The kernel's name in the file; the file's only public function if it is left out.
        baseline: As in `judge`.
        budget: As in `compare`.
        device: As in `compare`.

    Returns:
        Plain data: `right`, whether the program's results are right (none if that is not known, as of a task that cannot be
        used); `score`, the lower bound of the log speed-up over the baseline (0 is as fast; none if the program is wrong
        or cannot run, and if too little was measured); `verdict`, `reasons`, a list of sentences, and `cases`.

    Raises:
        FileNotFoundError: There is no such program.
        Broken: The command fails for a reason that is not the program's.
    """
    path = Path(program_path).absolute()
    if not path.is_file():
        raise FileNotFoundError(f"program_path: {path} does not exist; give a Python file")
    try:
        name = function or _only_function(path)
        verdict = judge(f"{path}:{name}", task, baseline=baseline, budget=budget, device=device, progress=False)
    except SyntaxError as error:
        return _evaluation("does-not-compile", right=False, reasons=[str(error)])
    except ValueError as error:
        return _evaluation("blocked", right=None, reasons=[str(error)])
    found = verdict.to_dict()
    reasons = [str(verdict)] if verdict.speedup is None else [str(verdict), verdict.reason]
    evaluation = _evaluation(verdict.verdict, right=verdict.is_right, reasons=reasons)
    return {**evaluation, "score": verdict.score, "cases": found["cases"]}


def _evaluation(verdict: str, *, right: bool | None, reasons: list[str]) -> dict[str, Any]:
    """What `evaluate` returns, of a program that was not measured."""
    return {"right": right, "score": None, "verdict": verdict, "reasons": reasons, "cases": []}


def _only_function(path: Path) -> str:
    """The only public function of a file."""
    import ast

    tree = ast.parse(path.read_text(), str(path))
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    public = [name for name in functions if not name.startswith("_")]
    if len(public) != 1:
        found = ", ".join(public) or "none"
        raise ValueError(f"{path.name}: its public functions are {found}; name the kernel with `function`")
    return public[0]


def _task(
    task: Task | str | os.PathLike[str] | None,
    baseline: Kernel,
    inputs: Function | None,
    reference: Function | None,
    cases: Cases | None,
    tolerance: Any,
    constant: Sequence[str],
) -> Task | str | os.PathLike[str]:
    """The task, given as one or by its parts."""
    if task is not None:
        parts = {"inputs": inputs, "reference": reference, "cases": cases, "tolerance": tolerance, "constant": constant}
        given = [name for name, part in parts.items() if part]
        if given:
            raise ValueError(f"{given[0]}: it stands beside `task`, which says it; leave one of them out")
        return task
    if inputs is None:
        raise ValueError("inputs: it is left out; give a function that draws the inputs of a case, or a `task`")
    sizes = [name for name in _needed(inputs) if name != "seed"]
    if cases is None and sizes:
        raise ValueError(f'cases: they are left out, and inputs takes {", ".join(sizes)}; give such as [{{"{sizes[0]}": 512}}]')
    made = Task(
        generate=inputs,
        reference=reference or (baseline if callable(baseline) else None),
        cases=[{}] if cases is None else cases,
        tolerance=tolerance,
        constant=constant,
        name=_functions.label(inputs, "inputs"),
    )
    return replace(made, parameters=tuple(parameters_of(baseline)))


def _needed(function: Function) -> list[str]:
    """The parameters of a function that have no default."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = (one for one in found if one.default is one.empty and one.kind not in several)
    return [parameter.name for parameter in needed]


def _options(
    folder: Path,
    task: Task | str | os.PathLike[str],
    case: str | Sequence[str],
    budget: str,
    pairs: int | None,
    device: str | None,
    warm: bool,
    regime: str,
    scope: str,
    activity: bool,
    quick: bool,
) -> dict[str, Any]:
    """How two kernels are measured, as the extension takes it."""
    if device is not None and not isinstance(device, str):
        raise TypeError(f"device: it is {kind(device)}; give a GPU's name, such as 'h100'")
    if pairs is not None and (not isinstance(pairs, int) or pairs < 0):
        raise TypeError(f"pairs: it is {pairs!r}; give a whole number from 6 to 1000")
    return {
        "task": _task_text(folder, task),
        "cases": [case] if isinstance(case, str) else list(case),
        "device": device,
        "budget": _time(budget),
        "pairs": pairs,
        "warm": bool(warm),
        "regime": _one_of("regime", regime, "isolated", "sustained"),
        "scope": _one_of("scope", scope, "device", "call"),
        "activity": bool(activity),
        "quick": bool(quick),
    }


def _answer(
    question: Callable[..., str], *arguments: object, folder: Path, progress: Progress, names: tuple[str, str] | None
) -> Verdict:
    """The judge's answer as a verdict."""
    tell = progress if callable(progress) else _line() if _shows_progress(progress) else None
    try:
        record = _program.ask(question, *arguments, folder=folder, tell=tell)
    finally:
        if tell is not progress and tell is not None:
            tell("")
    own = names or (record["baseline"]["name"], record["candidate"]["name"])
    return _verdict.read({**record, "reason": _program.in_python(record["reason"], folder)}, *own)


def _line() -> Callable[[str], None]:
    """Shows each event in place of the one before, on one line of standard error."""
    width = shutil.get_terminal_size().columns - 1

    def tell(text: str) -> None:
        sys.stderr.write(f"\r{_native.visible(text)[:width]:<{width}}" if text else f"\r{'':<{width}}\r")
        sys.stderr.flush()

    return tell


def _time(budget: str) -> str:
    """A time as the command takes it."""
    if not isinstance(budget, str):
        raise TypeError(f"budget: {budget!r} is {kind(budget)}; give a time with its unit, such as '30s' or '5m'")
    if not re.fullmatch(r"\s*(\d+(\.\d+)?\s*[a-zA-Zµ]+[\s,]*)+", budget):
        raise ValueError(f"budget: {budget!r} is no time with its unit; give one such as '30s' or '5m'")
    return budget


def _one_of(name: str, word: str, *words: str) -> str:
    if word not in words:
        raise ValueError(f"{name}: it is {word!r}; give {' or '.join(map(repr, words))}")
    return word


def _task_text(folder: Path, task: Task | str | os.PathLike[str]) -> str:
    if not isinstance(task, (Task, str, os.PathLike)):
        raise TypeError(f"task: it is {kind(task)}; give a Task, or a path or name as the command takes it")
    return str(task.write(folder)) if isinstance(task, Task) else os.fspath(task)


def _text(folder: Path, side: str, kernel: Kernel) -> str:
    if isinstance(kernel, (str, os.PathLike)):
        return os.fspath(kernel)
    return _functions.shim(folder, side, kernel)


def _names(baseline: Kernel, candidate: Kernel) -> tuple[str, str]:
    """What the kernels are called; different names for different kernels."""
    labels = [
        kernel.rpartition(":")[2] if isinstance(kernel, str) and ".py:" in kernel
        else str(kernel) if isinstance(kernel, (str, os.PathLike))
        else _functions.label(kernel, side)
        for kernel, side in ((baseline, "baseline"), (candidate, "candidate"))
    ]
    return (labels[0], labels[1]) if labels[0] != labels[1] else ("baseline", "candidate")


def _shows_progress(progress: Progress) -> bool:
    if progress is not None:
        return bool(progress)
    return sys.stderr is not None and sys.stderr.isatty()


__all__ = ["GauntletError", "add_pairs", "compare", "evaluate", "judge"]
