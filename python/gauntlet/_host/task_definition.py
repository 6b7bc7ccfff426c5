"""Tasks in the form of FlashInfer-Trace and SOL-ExecBench: a definition (axes, inputs, outputs, a reference in Python)
and a file of workloads, one on each line.

Tensors are those of torch. A reference that imports numpy and not torch gets arrays of numpy, and so do the kernels."""

import ast
import contextlib
import glob
import json
import linecache
import os
import sys
import types

import numpy
from task_faults import TaskFault, told
from task_file import Task, seed_everything

# Names of element types that differ from torch's.
_TORCH_NAMES = {"float8_e4m3": "float8_e4m3fn"}

# The tolerance of flashinfer-bench's default evaluator.
_TOLERANCE = {"rtol": 1e-2, "atol": 1e-2}

_KNOWN = {
    "name",
    "type",
    "op_type",
    "axes",
    "inputs",
    "outputs",
    "reference",
    "tags",
    "description",
    "constraints",
    "custom_inputs_entrypoint",
    "hf_id",
}


def read_json(path, text=None):
    """The JSON of a file or of one of its lines."""
    try:
        if text is None:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        return json.loads(text)
    except ValueError as error:
        raise TaskFault(f"not JSON: {error}", "correct the file", path, getattr(error, "lineno", None)) from None


class DefinitionTask(Task):
    """A definition with its workloads."""

    is_ordered = True

    def __init__(self, path):
        super().__init__([os.path.dirname(path)])
        self.path, self.definition = path, read_json(path)
        missing = [key for key in ("name", "axes", "inputs", "outputs", "reference") if key not in self.definition]
        if missing:
            raise self._fault(
                f"the definition has no {', '.join(missing)}", "add the fields of FlashInfer-Trace's definitions"
            )
        self.name = self.definition["name"]
        self.summary = (self.definition.get("description") or "").strip().split("\n")[0]
        self.inputs, self.outputs_by_name = self.definition["inputs"], self.definition["outputs"]
        self.library = self._library()
        self.device = self.library.device
        self.tolerance = dict(_TOLERANCE)
        self._take_notes()
        self.run = self._reference()
        self._workloads = self._read_workloads()

    def _fault(self, message, remedy, line=None):
        return TaskFault(message, remedy, self.path, line)

    def _take_notes(self):
        unknown = sorted(set(self.definition) - _KNOWN)
        if unknown:
            self.notes.append(f"the definition's {', '.join(f'`{key}`' for key in unknown)} is not honoured")
        if self.definition.get("custom_inputs_entrypoint"):
            self.notes.append("`custom_inputs_entrypoint` is not honoured: inputs are drawn by type and shape")
        kind = self.definition.get("op_type") or self.definition.get("type") or ""
        if "sampling" in kind:
            self.notes.append("the evaluator for sampling compares frequencies; here results are compared by element")
        if "float4_e2m1" in {spec["dtype"] for spec in [*self.inputs.values(), *self.outputs_by_name.values()]}:
            raise self._fault(
                "an input or output is float4_e2m1, which says nothing of how two values share a byte",
                "use a task with a packed type such as uint8",
            )
        if self.library.note:
            self.notes.append(self.library.note)

    def _library(self):
        """The library of the task's tensors."""
        imported = _imports(self.definition["reference"])
        if "numpy" in imported and "torch" not in imported:
            return _Numpy(self._fault)
        try:
            import torch
        except ImportError as error:
            raise self._fault(
                f"the definition's tensors are those of torch, and torch cannot be imported: {error}",
                f"install torch for the Python at {sys.executable}, name another Python by GAUNTLET_PYTHON, or let the "
                "reference import numpy and not torch",
            ) from None
        return _Torch(torch, self._fault)

    def _reference(self):
        source, name = self.definition["reference"], f"{self.path}:reference"
        # Tracebacks find the lines of the text here.
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        module = types.ModuleType("definition_reference")
        with told("in the definition's `reference`", self.folders):
            exec(compile(source, name, "exec"), module.__dict__)
        if not callable(getattr(module, "run", None)):
            raise self._fault("the definition's `reference` has no function `run`", "add `def run(…)` to it")
        sys.modules[module.__name__] = module
        return module.run

    def _workload_file(self):
        folder, stem = os.path.dirname(self.path), os.path.splitext(os.path.basename(self.path))[0]
        near = [os.path.join(folder, name) for name in ("workload.jsonl", "workloads.jsonl", f"{stem}.jsonl")]
        root = os.path.dirname(os.path.dirname(folder))
        far = sorted(
            glob.glob(os.path.join(glob.escape(root), "workloads", "**", f"{glob.escape(stem)}.jsonl"), recursive=True)
        )
        for path in [*near, *far]:
            if os.path.exists(path):
                return path
        raise self._fault(
            "the definition has no workloads",
            "put them beside it as workload.jsonl, or in the data set's folder `workloads`",
        )

    def _read_workloads(self):
        path, found = self._workload_file(), []
        with open(path, encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                if text.strip():
                    found.extend(self._workload(path, number, read_json(path, text)))
        if not found:
            raise TaskFault("no workload can be used", "; ".join(self.notes) or "add one", path, None)
        return found

    def _workload(self, path, number, line):
        workload = line.get("workload", line)
        axes = {name: axis["value"] for name, axis in self.definition["axes"].items() if axis["type"] == "const"}
        axes |= workload.get("axes", {})
        unset = sorted(set(self.definition["axes"]) - set(axes))
        if unset:
            raise TaskFault(f"the workload gives no value to {', '.join(unset)}", "add it to `axes`", path, number)
        name = str(workload.get("uuid") or f"workload-{number}")
        inputs = workload.get("inputs", {})
        for key, source in inputs.items():
            if source.get("type") == "safetensors" and not os.path.exists(self._file_of(source)):
                self.notes.append(
                    f"the workload {name} is left out: there is no file {source['path']} for its input `{key}`"
                )
                return []
            if source.get("type") not in ("random", "scalar", "safetensors"):
                self.notes.append(f"the workload {name} is left out: its input `{key}` is of type {source.get('type')}")
                return []
        return [(name, {"axes": axes, "inputs": inputs})]

    def _file_of(self, source):
        folder = os.path.dirname(self.path)
        roots = [folder, os.path.dirname(folder), os.path.dirname(os.path.dirname(folder))]
        candidates = [os.path.join(root, source["path"]) for root in roots]
        return next((path for path in candidates if os.path.exists(path)), candidates[0])

    def cases(self):
        return [], self._workloads

    def shown(self, parameters):
        return super().shown(parameters["axes"])

    def generate(self, parameters, seed):
        seed_everything(seed)
        return {name: self._input(name, spec, parameters) for name, spec in self.inputs.items()}

    def _input(self, name, spec, parameters):
        source = parameters["inputs"].get(name, {"type": "random"})
        if source["type"] == "scalar":
            return source["value"]
        if source["type"] == "safetensors":
            return self.library.load(self._file_of(source), source["tensor_key"])
        return self._random(name, spec, parameters["axes"])

    def _random(self, name, spec, axes):
        if spec["shape"] is None:
            raise self._fault(
                f"the input `{name}` is a scalar, and the workload gives no value to it", "give it a value"
            )
        shape = [axes[axis] if axis in axes else int(axis) for axis in map(str, spec["shape"])]
        return self.library.random(shape, spec["dtype"])

    def reference(self, parameters, arguments):
        with self.library.without_gradients():
            result = self.run(**arguments)
        names = list(self.outputs_by_name)
        if isinstance(result, dict):
            result = tuple(result[name] for name in names)
        elif not isinstance(result, (tuple, list)):
            result = (result,)
        if len(result) != len(names):
            raise self._fault(
                f"`run` returned {len(result)} values for the outputs {', '.join(names)}", "correct `run`"
            )
        self.outputs = names
        return result[0] if len(names) == 1 else tuple(result)


def _imports(source):
    """The packages that a source imports anywhere; none if it is no Python, which running it tells."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set()
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


class _Torch:
    """Tensors of torch, on the GPU if there is one."""

    def __init__(self, torch, fault):
        self.torch, self.fault = torch, fault
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.without_gradients = torch.no_grad
        self.note = None if self.device == "cuda" else "there is no GPU here: the inputs are on the CPU"

    def load(self, path, key):
        from safetensors.torch import load_file

        return load_file(path)[key].to(self.device)

    def random(self, shape, name):
        torch, dtype = self.torch, getattr(self.torch, _TORCH_NAMES.get(name, name), None)
        if not isinstance(dtype, torch.dtype):
            raise self.fault(f"torch has no element type {name}", "install a newer torch")
        if dtype is torch.bool:
            return torch.randint(0, 2, shape, dtype=torch.uint8, device=self.device).to(dtype)
        if not dtype.is_floating_point:
            return torch.randint(0, 100, shape, device=self.device).to(dtype)
        return torch.randn(shape, device=self.device).to(dtype)


class _Numpy:
    """Arrays of numpy."""

    device = "cpu"
    note = "the reference imports numpy and not torch: the inputs are arrays of numpy on the CPU"
    without_gradients = staticmethod(contextlib.nullcontext)

    def __init__(self, fault):
        self.fault = fault

    def load(self, path, key):
        from safetensors.numpy import load_file

        return load_file(path)[key]

    def random(self, shape, name):
        try:
            dtype = numpy.dtype(name)
        except TypeError:
            raise self.fault(f"numpy has no element type {name}", "let the reference import torch") from None
        if dtype.kind == "b":
            return numpy.random.randint(0, 2, shape).astype(dtype)
        if dtype.kind in "iu":
            return numpy.random.randint(0, 100, shape).astype(dtype)
        return numpy.random.standard_normal(shape).astype(dtype)
