"""Is this kernel right, is it faster, and can the answer be believed?

``compare`` judges two functions, each trial in a fresh process::

    import gauntlet

    verdict = gauntlet.compare(slow_softmax, fast_softmax, inputs=make_inputs, cases=[{"rows": 512, "cols": 4096}])
    print(verdict)                  # fast_softmax is faster by 12.3 % [10.9 … 13.8]: adopt; right on 1 case, 8 trials
    verdict.assert_no_regression()  # in tests

``gauntlet.nvfp4`` has NVFP4 tensors and the kernels that multiply them. Importing this package imports neither numpy nor
PyTorch, and needs no GPU.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gauntlet import nvfp4 as nvfp4
    from gauntlet._errors import BadInput, Broken, GauntletError, NotShown, Regression
    from gauntlet._judge import add_pairs, compare, evaluate, judge
    from gauntlet._task import Task
    from gauntlet._verdict import CaseResult, Interval, Sample, Stats, Verdict

    __version__: str

# Each name's module is imported when the name is used: the command starts without the judge in Python.
_MODULES = {
    **dict.fromkeys(("BadInput", "Broken", "GauntletError", "NotShown", "Regression"), "_errors"),
    **dict.fromkeys(("add_pairs", "compare", "evaluate", "judge"), "_judge"),
    "Task": "_task",
    **dict.fromkeys(("CaseResult", "Interval", "Sample", "Stats", "Verdict"), "_verdict"),
}

__all__ = [
    "BadInput",
    "Broken",
    "CaseResult",
    "GauntletError",
    "Interval",
    "NotShown",
    "Regression",
    "Sample",
    "Stats",
    "Task",
    "Verdict",
    "__version__",
    "add_pairs",
    "compare",
    "evaluate",
    "judge",
    "nvfp4",
]


def __getattr__(name: str) -> Any:
    if name == "nvfp4":
        return importlib.import_module("gauntlet.nvfp4")
    if name == "__version__":
        return importlib.import_module("gauntlet._native").version()
    if name in _MODULES:
        found = globals()[name] = getattr(importlib.import_module(f"gauntlet.{_MODULES[name]}"), name)
        return found
    raise AttributeError(f"module 'gauntlet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
