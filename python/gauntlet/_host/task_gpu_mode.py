"""Tasks in the form of GPU MODE's competitions: a folder with task.yml, reference.py (``generate_input``,
``ref_kernel``, ``check_implementation``) and modules beside it; a kernel is a function of one argument, the data."""

import functools
import inspect
import os
import sys

import own_modules
from task_faults import TaskFault, fault_at, place_of
from task_file import Task, add_folders, bound, load_module, seed_everything, takes

# Fresh seeds are drawn below the largest seed in task.yml, or below this. Some generators add the seed to the values:
# a large one would leave nothing of them in f32, and a tolerance relative to it would let everything pass.
_LEAST_SEEDS = 10_000

# The defaults of `match_reference` in the competitions' own utils.py, where a task does not say its tolerance.
_DEFAULTS = {"rtol": 1e-5, "atol": 1e-8}


class _NamedFiles:
    """Finds the modules that task.yml places beside the submission, wherever their sources are."""

    def __init__(self, files):
        self.files = files

    def find_spec(self, name, path=None, target=None):
        file = self.files.get(name)
        return own_modules.spec_of(name, file) if file else None


class GpuModeTask(Task):
    """A folder with task.yml, which `description` holds."""

    call = "single"
    has_check = True

    def __init__(self, folder, description):
        super().__init__([folder, os.path.dirname(folder)])
        self.path = os.path.join(folder, "task.yml")
        self.tests, self.benchmarks = description["tests"], description["benchmarks"]
        self.summary = description["summary"]
        stated = [case["seed"] for case in self.tests + self.benchmarks if isinstance(case.get("seed"), int)]
        self.seeds = max([_LEAST_SEEDS, *stated])
        files = {}
        for name, source in description["files"].items():
            path = os.path.normpath(os.path.join(folder, source))
            if name.endswith(".py") and source != "@SUBMISSION@":
                if not os.path.exists(path):
                    raise TaskFault(
                        f"task.yml names {source} for {name}, and there is no such file",
                        "use a whole checkout of the repository",
                        self.path,
                        None,
                    )
                files[name[:-3]] = path
        # Tasks that do not list their files have utils.py in their folder or one above.
        add_folders(folder, os.path.dirname(folder))
        sys.meta_path.insert(0, _NamedFiles(files))
        path = files.get("reference", os.path.join(folder, "reference.py"))
        if not os.path.exists(path):
            raise TaskFault(
                "there is no reference.py",
                "a task has `generate_input`, `ref_kernel` and `check_implementation` there",
                self.path,
                None,
            )
        self.module = load_module(path, "reference", self.folders)
        self.generator, self.computes = self._function("generate_input", path), self._function("ref_kernel", path)
        self.checker = self._function("check_implementation", path)
        self._read_rules()
        self._check_arguments()

    def place(self, subject):
        function = {"generate": self.generator, "reference": self.computes, "check": self.checker}.get(subject)
        return place_of(function) if function else (self.path, None)

    def _function(self, name, path):
        function = getattr(self.module, name, None)
        if not callable(function):
            raise TaskFault(f"reference.py has no function `{name}`", f"add `def {name}(…)`", path, 1)
        return function

    def _read_rules(self):
        """The tolerance of `make_match_reference`. A check of another form decides alone what is right; if it computes
        the reference, results must also be near it."""
        stated = self._stated()
        if stated:
            self.computes = stated.pop("reference")
            kept = {key: value for key, value in stated.items() if key in _DEFAULTS}
            self.tolerance = {**self._defaults(), **kept}
            unread = sorted(set(stated) - set(kept))
            if unread:
                self.notes.append(f"check_implementation has {', '.join(unread)}, which only its own check honours")
        elif "ref_kernel" in getattr(getattr(self.checker, "__code__", None), "co_names", ()):
            self.tolerance = {"rtol": float("inf"), "atol": float("inf"), "nrmse": 0.05, "bias": 0.05}
            self.notes.append(
                "check_implementation has no tolerance that can be read: its own check decides, and the normalised "
                "error from ref_kernel may be 0.05 at most"
            )
        else:
            self.check_is_the_rule = True
            self.notes.append("check_implementation does not compare with ref_kernel: only it decides what is right")

    def _stated(self):
        """The reference and the limits that `make_match_reference` or a partial application keep; none if the check is
        of another form."""
        if isinstance(self.checker, functools.partial):
            stated = dict(self.checker.keywords)
        else:
            names = getattr(getattr(self.checker, "__code__", None), "co_freevars", ())
            cells = getattr(self.checker, "__closure__", None) or ()
            kept = {name: cell.cell_contents for name, cell in zip(names, cells)}
            stated = {"reference": kept.get("reference"), **kept["kwargs"]} if "kwargs" in kept else {}
        return stated if callable(stated.get("reference")) else {}

    def _defaults(self):
        """The defaults of the task's own `match_reference`."""
        match = getattr(sys.modules.get("utils"), "match_reference", None)
        if match is None:
            return dict(_DEFAULTS)
        parameters = inspect.signature(match).parameters
        return {key: parameters[key].default if key in parameters else value for key, value in _DEFAULTS.items()}

    def _check_arguments(self):
        for _, parameters in [case for cases in self.cases() for case in cases]:
            remedy = f"let it take `seed` and the names in task.yml: {', '.join(parameters)}"
            bound(self.generator, self._drawn(parameters, 0), remedy)
        self.notes.append("the seeds in task.yml are replaced by fresh ones of their size")

    def cases(self):
        def named(kind, cases):
            without_seed = ({key: value for key, value in case.items() if key != "seed"} for case in cases)
            return [(f"{kind}-{number}", case) for number, case in enumerate(without_seed, 1)]

        return named("test", self.tests), named("benchmark", self.benchmarks)

    def _drawn(self, parameters, seed):
        return {**parameters, "seed": seed % self.seeds} if takes(self.generator, "seed") else parameters

    def generate(self, parameters, seed):
        seed_everything(seed)
        return self.generator(**self._drawn(parameters, seed))

    def reference(self, parameters, arguments):
        return self.computes(arguments)

    def check(self, parameters, arguments, output, expected):
        answer = self.checker(arguments, output)
        if isinstance(answer, tuple) and len(answer) == 2:
            right, message = answer
            return None if right else str(message or "check_implementation returned False")
        if answer is None or isinstance(answer, str):
            return answer or None
        if isinstance(answer, bool):
            return None if answer else "check_implementation returned False"
        message = f"check_implementation returned a {type(answer).__name__}"
        raise fault_at(self.checker, message, "it returns (bool, message), or a message that is empty if all is right")
