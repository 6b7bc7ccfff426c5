"""Tasks as one Python file, or as a folder with task.py and possibly task.toml.

    cases = [{"rows": 512, "cols": 1024}]              # or {"correctness": [...], "benchmark": [...]}
    def generate(rows, cols, seed): return {"x": ...}  # named arrays of numpy or torch
    def reference(x): ...                              # an array, a tuple, or a dict of arrays

Optional: ``tolerance``, ``check(inputs, output, expected)``, ``work(**case)``, ``constant``, ``outputs``,
``deterministic``, ``accepts``.
"""

import inspect
import os
import random
import re
import sys
from importlib.util import module_from_spec

import own_modules
from task_faults import TaskFault, fault_at, place_of, told


def add_folders(*folders):
    """Lets the files of a task's folders import each other. A file there that has the name of another module that can be
    imported is refused: nobody can tell which of them the task means, and a kernel's file may lie there."""
    own_modules.add(*folders, refuse=_ambiguous)


def _ambiguous(name, own, other):
    return TaskFault(
        f"`{name}` is the name of this file and of another module ({other}), and the task imports it",
        "rename the file, or move it to another folder",
        own,
        None,
    )


def load_module(path, name, folders):
    """The module of a file; an exception in it is a fault."""
    spec = own_modules.spec_of(name, path)
    module = module_from_spec(spec)
    sys.modules[name] = module
    with told(f"while {os.path.basename(path)} is imported", folders):
        spec.loader.exec_module(module)
    return module


def seed_everything(seed):
    """Seeds the global generators of Python, numpy and torch."""
    random.seed(seed)
    for name, seeder in (
        ("numpy", lambda numpy: numpy.random.seed(seed)),
        ("torch", lambda torch: torch.manual_seed(seed)),
    ):
        if name in sys.modules:
            seeder(sys.modules[name])


def accepted(function, named):
    """Those of the named values that a function takes."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return dict(named)
    return {parameter.name: named[parameter.name] for parameter in parameters if parameter.name in named}


def bound(function, named, remedy):
    """Whether a function can be called with these names and no others; a fault at its definition if not."""
    try:
        inspect.signature(function).bind(**named)
    except TypeError as error:
        given = ", ".join(named) or "nothing"
        message = f"`{function.__name__}` cannot be called with {given}: {error}"
        raise fault_at(function, message, remedy) from None


class Task:
    """What every kind of task offers, with the answers of a task that leaves everything out."""

    call = "keywords"
    """How a kernel is called: see the protocol."""
    summary = ""
    constant = ()
    deterministic = True
    """Whether equal inputs must give equal bits in every call."""
    accepts = None
    """Names of kernels that leave work out and pass, of which the task knows; None where its format cannot say so."""
    tolerance = None
    outputs = None
    """Names of the outputs, where the reference does not give them."""
    check_is_the_rule = False
    """Whether only the task's own check decides, because correct results may differ from the reference."""
    has_check = False
    is_ordered = False
    """Whether the inputs have places, so that a kernel can take them by position."""
    device = None
    """The device to move the inputs to; None leaves them where they are."""

    def __init__(self, folders):
        self.folders, self.notes = folders, []

    def place(self, subject):
        """File and line of a part of the task's text, such as `reference`; its first file where it is not known."""
        return self.path, None

    def shown(self, parameters):
        """The parameters of a case in words."""
        return ", ".join(f"{key}={value}" for key, value in parameters.items())

    def cases(self):
        """(name or None, parameters) of the correctness and of the benchmark cases."""
        raise NotImplementedError

    def generate(self, parameters, seed):
        """The arguments of a kernel, drawn from a seed."""
        raise NotImplementedError

    def initial(self, parameters):
        """The arguments of a model's constructor, and the seed of its weights; None if there is no model."""
        return None

    def reference(self, parameters, arguments):
        """The expected result for these arguments."""
        raise NotImplementedError

    def prepared(self, parameters, arguments):
        """The reference's call for these arguments alone, to be timed: whatever can be made before is made."""
        return lambda: self.reference(parameters, arguments)

    def weights(self, parameters):
        """Names of a model's weights, which `reference` takes as ``weight=(name, value)``; none if there is no model."""
        return []

    def in_double(self, parameters, arguments):
        """The result for arguments in f64; an exception if the reference does not take them."""
        return self.reference(parameters, arguments)

    def check(self, parameters, arguments, output, expected):
        """The error of a result by the task's own check; None if it has none."""
        return None

    def work(self, parameters):
        """Floating-point operations and bytes of a call, if they are known."""
        return {}


class FileTask(Task):
    """A task in a Python file."""

    def __init__(self, module, path, description, baseline):
        super().__init__([os.path.dirname(path)])
        self.module, self.path, self.description = module, path, description or {}
        self.generator = self._function("generate")
        self._cases = self.description.get("cases", getattr(module, "cases", None))
        if not self._cases:
            raise self._missing("cases", 'add `cases = [{"rows": 512, "cols": 1024}]`')
        self.tolerance = self.description.get("tolerance", getattr(module, "tolerance", None))
        self.constant = self.description.get("constant", getattr(module, "constant", ()))
        self.outputs = self.description.get("outputs", getattr(module, "outputs", None))
        self.deterministic = self.description.get("deterministic", getattr(module, "deterministic", True))
        if not isinstance(self.deterministic, bool):
            raise TaskFault("`deterministic` is neither True nor False", "write one of them", path, 1)
        self.checker = self._function("check", optional=True)
        self.worker = self._function("work", optional=True)
        self.has_check = self.checker is not None
        self.check_is_the_rule = self.tolerance == "check"
        if self.check_is_the_rule:
            self.tolerance = None
            if not self.has_check:
                raise self._missing("check", "add `def check(inputs, output, expected)`, or give `tolerance` numbers")
            self.notes.append('only the task\'s own `check` decides what is right: `tolerance` is "check"')
        self.summary = self.description.get("description", first_line(module.__doc__))
        self.computes = self._function("reference", optional=True) or self._baseline(baseline)
        self.accepts = self._accepted()
        self._check_arguments()
        self._tell_sources()

    def _tell_sources(self):
        """Notes where the limits come from, and what task.toml says in place of the code."""
        code = os.path.basename(self.path)
        replaced = sorted(name for name in set(self.description) - {"name", "description"} if hasattr(self.module, name))
        if replaced:
            self.notes.append(f"task.toml stands in place of {code} for {', '.join(f'`{name}`' for name in replaced)}")
        if not self.check_is_the_rule:
            limits = "those of the outputs' types, since the task states no `tolerance`"
            if self.tolerance is not None:
                limits = f"`tolerance` of {'task.toml' if 'tolerance' in self.description else code}: {self.tolerance}"
            self.notes.append(f"limits of results: {limits}")

    def place(self, subject):
        function = {
            "generate": self.generator,
            "reference": self.computes,
            "check": self.checker,
            "work": self.worker,
        }.get(subject)
        if function is not None:
            return place_of(function)
        with open(self.path, encoding="utf-8") as file:
            lines = (number for number, line in enumerate(file, 1) if re.match(rf"{subject}\s*=", line))
            return self.path, next(lines, None)

    def _accepted(self):
        accepts = self.description.get("accepts", getattr(self.module, "accepts", ()))
        accepts = [accepts] if isinstance(accepts, str) else accepts
        if not isinstance(accepts, (list, tuple)) or not all(isinstance(name, str) for name in accepts):
            raise TaskFault("`accepts` is no list of names", 'write `accepts = ["zeros"]`', *self.place("accepts"))
        return list(accepts)

    def _missing(self, name, remedy):
        file = os.path.basename(self.path)
        return TaskFault(f"{file} has no `{name}`", remedy, self.path, 1)

    def _function(self, name, optional=False):
        function = getattr(self.module, name, None)
        if function is None and optional:
            return None
        if function is None:
            raise self._missing(name, f"add `def {name}(…)`; a task has `cases`, `generate` and `reference`")
        if not callable(function):
            raise TaskFault(
                f"`{name}` is a {type(function).__name__}, not a function", f"write `def {name}(…)`", self.path, 1
            )
        return function

    def _baseline(self, baseline):
        if baseline is None:
            raise self._missing(
                "reference",
                "add `def reference(…)`, or compare with a baseline that is a Python function (`file.py:function`), "
                "which then stands in for it",
            )
        file, name = baseline
        if not os.path.isfile(file):
            raise TaskFault(f"there is no file {file}", "check the path of the baseline; it is written as FILE:FUNCTION")
        folder = os.path.dirname(os.path.abspath(file))
        self.folders.append(folder)
        add_folders(folder)
        module = load_module(os.path.abspath(file), "gauntlet_baseline", self.folders)
        function = getattr(module, name, None)
        if not callable(function):
            raise TaskFault(f"{file} has no function `{name}`", "name a function of the file", os.path.abspath(file), 1)
        self.notes.append(
            f"{os.path.basename(self.path)} has no `reference`: the baseline {file}:{name} is the reference, so that an "
            "error which both kernels share is not found"
        )
        return function

    def _check_arguments(self):
        for name, parameters in [case for cases in self.cases() for case in cases]:
            remedy = f"let it take `seed` and the names in the case ({', '.join(parameters)}), or correct the case"
            bound(self.generator, self._drawn(parameters, 0), remedy)
        if not takes(self.generator, "seed"):
            self.notes.append(
                "`generate` takes no `seed`: the global generators of random, numpy and torch are seeded instead"
            )
        if self.checker:
            remedy = "write `def check(inputs, output, expected)`; it returns None or a message"
            try:
                inspect.signature(self.checker).bind(None, None, None)
            except TypeError as error:
                raise fault_at(self.checker, f"`check` cannot be called with three values: {error}", remedy) from None

    def cases(self):
        if isinstance(self._cases, dict):
            unknown = set(self._cases) - {"correctness", "benchmark"}
            if unknown or not self._cases.get("benchmark"):
                message = f"`cases` has {sorted(unknown)}" if unknown else "`cases` has no benchmark case"
                remedy = '`cases` is a list, or {"correctness": […], "benchmark": […]}'
                raise TaskFault(message, remedy, *self.place("cases"))
            lists = self._cases.get("correctness", []), self._cases["benchmark"]
        else:
            lists = [], self._cases
        return tuple([self._case(case) for case in cases] for cases in lists)

    def _case(self, case):
        if not isinstance(case, dict) or not all(isinstance(key, str) for key in case):
            raise TaskFault(f"the case {case!r} is not a dict of sizes", 'write {"rows": 512}', *self.place("cases"))
        case = dict(case)
        name = None if takes(self.generator, "name") else case.pop("name", None)
        return name, case

    def _drawn(self, parameters, seed):
        return {**parameters, "seed": seed} if takes(self.generator, "seed") else parameters

    def generate(self, parameters, seed):
        seed_everything(seed)
        inputs = self.generator(**self._drawn(parameters, seed))
        if not isinstance(inputs, dict):
            message = f"`generate` returned a {type(inputs).__name__}"
            raise fault_at(self.generator, message, 'return a dict of named arrays: {"x": x}')
        return inputs

    def reference(self, parameters, arguments):
        taken = accepted(self.computes, arguments)
        remedy = f"let it take names that `generate` returns: {', '.join(arguments)}"
        bound(self.computes, taken, remedy)
        return self.computes(**taken)

    def check(self, parameters, arguments, output, expected):
        return self.checker(arguments, output, expected) if self.checker else None

    def work(self, parameters):
        if self.worker:
            bound(self.worker, parameters, "let `work` take the names in the case")
            return self.worker(**parameters)
        return {}


def takes(function, name):
    """Whether a function has a parameter of this name, or takes any."""
    parameters = inspect.signature(function).parameters.values()
    return any(parameter.name == name or parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def first_line(text):
    """The first line of a documentation text."""
    return (text or "").strip().split("\n")[0]
