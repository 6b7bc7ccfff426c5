"""One case of a task: its tensors, and how they are placed in arguments and results."""

import functools
import numbers
import time

import task_library
import tensors
from task_faults import TaskFault, brief, told

# Results of one array, and of a sequence, where the task does not name its outputs.
_OUTPUT = "output"

# Floating-point operations, or bytes, beyond any call.
_MOST_WORK = 1e24

# The seed with which a case's tensors are found out.
_SEED = 1

# Element types that a result may have in place of the reference's, if inputs have them and the task's own check accepts them.
_ALIKE = ("f64", "f32", "f16", "bf16")
# Inputs up to which a call of a library is sought that gives the same.
_MOST_INPUTS = 4

# Seconds that a reference may take to be computed with inputs in f64 too.
_MOST_SECONDS = 2.0


class Case:
    """One case: what a worker is told of it, and how its tensors are placed in arguments and results."""

    def __init__(self, task, parameters):
        self.task, self.parameters = task, parameters
        self.shown = task.shown(parameters) or "its only case"
        value = self._drawn(_SEED)
        self.device = "cuda" if any(_is_on_gpu(leaf) for leaf in _leaves(value)) else "cpu"
        self.arguments, self.inputs = self._trees("generate", value, self._root(value))
        self.init, self.seed = None, None
        initial = self._told("in `get_init_inputs`", lambda: task.initial(parameters))
        if initial:
            self.init, weights = self._trees("generate", initial[0], "init")
            self.inputs |= weights
            self.seed = initial[1]
        if not self.inputs:
            raise self._fault("generate", "the inputs hold no array", "return arrays of numpy or tensors of torch")
        self.constant = self._constant()
        self.specs = _specs(self.inputs)
        # The reference gets its inputs from a file, as it always does, and may change them.
        stored = {name: tensors.store(tensor, name) for name, tensor in self.inputs.items()}
        self.library = "torch" if any(tensors.is_torch(tensor) for tensor in self.inputs.values()) else "numpy"
        arguments = self._planted(stored)
        given = self._given(arguments)
        versions = {name: tensors.version(tensor) for name, tensor in given.items()}
        result = self._called(arguments)
        self.results, self.outputs = self._described(result)
        changed = [name for name in given if tensors.is_changed(given[name], versions[name], stored[name])]
        self._check_library()
        self.changed, self.lent = self._memory(given, changed)
        self._check_names()
        self.output_specs = _specs(self.outputs)
        fault = self._checked(
            stored, result, self._planted_results({k: tensors.store(v, k) for k, v in self.outputs.items()})
        )
        if fault:
            raise self._fault(
                "check", f"the task's own check refuses the reference's result: {fault}", "let the two agree"
            )
        self.accepted = self._accepted_types(stored, result)
        self.tolerance = self._tolerance()
        self.work = self._work()
        self.inputs = self.outputs = None

    def _trees(self, subject, value, name, found=None):
        """The tree of a value and its tensors by name; a value that cannot be stored is the fault of its function."""
        try:
            return tensors.describe(value, name, self.device, found)
        except tensors.TensorError as error:
            raise self._fault(subject, str(error), "give arrays and plain values only") from None

    def _root(self, value):
        return "data" if self.task.call == "single" and tensors.is_tensor(value) else ""

    def _told(self, doing, call):
        with told(f"{doing} on {self.shown}", self.task.folders):
            return call()

    def _fault(self, subject, message, remedy):
        return TaskFault(f"{message}, on {self.shown}", remedy, *self.task.place(subject))

    def _drawn(self, seed):
        return self._told("in the generator", lambda: self.task.generate(self.parameters, seed))

    def _constant(self):
        constant = [self.task.constant] if isinstance(self.task.constant, str) else list(self.task.constant)
        for name in constant:
            if name not in self.inputs:
                known = ", ".join(self.inputs)
                raise self._fault("constant", f"`constant` names `{name}`, which is no input", f"name some of {known}")
        return constant + [name for name in self.inputs if self.init and name.startswith("init")]

    def _planted(self, stored):
        return tensors.plant_stored(self.arguments, stored, self.library, self.device)

    def _planted_results(self, stored):
        return tensors.plant_stored(self.results, stored, self.library, self.device)

    def _computed(self, stored, weight=None):
        return self._called(self._planted(stored), weight)

    def _called(self, arguments, weight=None):
        start = time.monotonic()
        more = {} if weight is None else {"weight": weight}
        result = self._told("in the reference", lambda: self.task.reference(self.parameters, arguments, **more))
        self.seconds = time.monotonic() - start
        return result

    def _given(self, arguments):
        """The tensors of arguments by the names of their inputs."""
        return self._trees("generate", arguments, self._root(arguments))[1]

    def _memory(self, given, changed):
        """The inputs that the reference changes, and the outputs that lie in the memory of an input that it leaves as it was. Tasks of
        one argument hand over tensors to write the result to."""
        lent = {name: tensors.sharing(output, given) for name, output in self.outputs.items()}
        if self.task.call == "single":
            changed_alone = [name for name in changed if name not in lent.values()]
        else:
            changed_alone = changed
        return changed_alone, [[name, other] for name, other in lent.items() if other and other not in changed]

    def narrower(self):
        """The outputs that the task's own check accepts in a type of fewer bytes than the reference's, with that type."""
        types = {spec["name"]: spec["data_type"] for spec in self.output_specs}
        return [[name, kind] for name, kinds in self.accepted.items() for kind in kinds if tensors.is_narrower(kind, types[name])]

    def faster(self, inputs):
        """A call of the task's library that gives the same as the reference for a file of inputs, and is far faster; None if there is none."""
        stored = tensors.read_file(inputs)
        arguments = self._planted(stored)
        given = self._given(arguments)
        outputs = list(self._described(self._called(arguments))[1].values())
        if len(outputs) > 1 or len(given) > _MOST_INPUTS or self.changed:
            return None
        call = self._told("in the reference", lambda: self.task.prepared(self.parameters, arguments))
        return task_library.faster_call(self, call, given, outputs[0])

    def _described(self, result):
        names = [self.task.outputs] if isinstance(self.task.outputs, str) else self.task.outputs
        if result is None:
            raise self._fault(
                "reference", "the reference returned None", "return an array, a tuple of arrays, or a dict of arrays"
            )
        sequence = isinstance(result, (tuple, list))
        if names and not isinstance(result, dict):
            parts = list(result) if sequence else [result]
            if len(parts) != len(names):
                raise self._fault(
                    "reference",
                    f"the reference returned {len(parts)} values for the outputs {', '.join(names)}",
                    "name every output",
                )
            trees, found = [], {}
            for name, part in zip(names, parts):
                trees.append(self._trees("reference", part, name, found)[0])
            tree = {"tuple" if isinstance(result, tuple) else "list": trees} if sequence else trees[0]
        else:
            tree, found = self._trees("reference", result, "" if isinstance(result, dict) else _OUTPUT)
        values = _values(tree)
        if values or not found:
            raise self._fault(
                "reference",
                f"the reference returned {values or 'no array'} where an array belongs",
                "return arrays only",
            )
        return tree, found

    def _check_library(self):
        kinds = {tensors.is_torch(tensor) for tensor in self.outputs.values()}
        if kinds != {self.library == "torch"}:
            raise self._fault(
                "generate",
                f"the inputs belong to {self.library}, and the reference's result does not",
                "use one library for both",
            )

    def _check_names(self):
        shared = sorted(set(self.inputs) & set(self.outputs))
        if shared and self.task.call == "keywords":
            raise self._fault("generate", f"`{shared[0]}` is both an input and an output", "rename one of them")

    def _work(self):
        work = self._told("in `work`", lambda: self.task.work(self.parameters))
        if work is None:
            return {}
        remedy = 'return {"flops": 5 * rows * cols, "bytes": 8 * rows * cols}; either may be missing'
        if not isinstance(work, dict) or set(work) - {"flops", "bytes"}:
            raise self._fault("work", f"`work` returned {brief(work)}", remedy)
        for name, value in work.items():
            if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= value <= _MOST_WORK:
                raise self._fault("work", f"`work` says that {name} is {brief(value)}", remedy)
        return {name: float(value) for name, value in work.items()}

    def _accepted_types(self, stored, expected):
        """Other element types for the outputs by name, where the task's own check decides and accepts them: those of the inputs,
        because a task may hand over a tensor to write the result to that is of another type than its reference's."""
        if not (self.task.has_check and (self.task.call == "single" or self.task.check_is_the_rule)):
            return {}
        given, accepted = {spec["data_type"] for spec in self.specs}, {}
        for spec in self.output_specs:
            name = spec["name"]
            others = [kind for kind in _ALIKE if kind in given and spec["data_type"] in _ALIKE and kind != spec["data_type"]]
            found = [kind for kind in others if self._accepts(stored, expected, name, kind)]
            if found:
                accepted[name] = found
        return accepted

    def _accepts(self, stored, expected, name, kind):
        """Whether the task's own check accepts the reference's result with one output converted to another type."""
        values = {**self.outputs, name: tensors.converted(self.outputs[name], kind)}
        try:
            output = tensors.plant(self.results, lambda leaf: values[leaf["tensor"]])
            return self._checked(stored, output, expected) is None
        except TaskFault:
            return False

    def _tolerance(self):
        by_outputs = getattr(self.task, "tolerances", None)
        stated = by_outputs(self.outputs.values()) if by_outputs else self.task.tolerance
        return _checked_tolerance(stated, self.outputs, functools.partial(self._fault, "tolerance"))

    def sizes(self):
        """What a worker is told beside the tensors."""
        told = {"parameters": self.parameters, "library": self.library, "device": self.device, "call": self.task.call}
        arguments = self.arguments
        if self.task.call in ("positional", "model"):
            arguments = {"tuple": arguments.get("tuple") or arguments.get("list")}
        told |= {"arguments": arguments, "results": self._results_to_tell()}
        if self.init:
            told |= {"init": self.init, "seed": self.seed}
        if self.task.is_ordered:
            # JSON objects lose their order on the way to the worker.
            told["order"] = list(arguments["dict"])
        return told

    def _results_to_tell(self):
        """The tree of results, with the other element types that an output may have."""

        def leaf(own):
            kinds = self.accepted.get(own["tensor"])
            return {**own, "accepts": kinds} if kinds else own

        return tensors.mapped(self.results, leaf)

    def generate(self, seed, path):
        """Writes inputs to a file."""
        value = self._drawn(seed)
        tree, found = self._trees("generate", value, self._root(value))
        if self.init:
            found |= self._trees("generate", self.task.initial(self.parameters)[0], "init")[1]
        if tree != self.arguments or _specs(found) != self.specs:
            raise self._fault(
                "generate",
                "the generator's shapes, types or plain values change with the seed",
                "let them depend on the case alone",
            )
        tensors.write_file(path, found)

    def expected(self, inputs, path, weight=None):
        """Writes the expected result for a file of inputs; `weight` is a name and the value of all elements of this weight."""
        tree, found = self._described(self._computed(tensors.read_file(inputs), weight))
        if tree != self.results or _specs(found) != self.output_specs:
            raise self._fault(
                "reference",
                "the reference's shapes or types change with the values of its inputs",
                "return the same shapes for the same case",
            )
        tensors.write_file(path, found)

    def in_double(self, inputs, path):
        """Writes the reference's result for a file of inputs in f64; false if it takes long, or does not take them."""
        if self.seconds > _MOST_SECONDS:
            return False
        arguments = _in_double(self._planted(tensors.read_file(inputs)))
        try:
            result = self._told("in the reference", lambda: self.task.in_double(self.parameters, arguments))
            found = {name: _in_double(tensor) for name, tensor in self._described(result)[1].items()}
        except TaskFault:
            return False

        def wide(spec):
            return {**spec, "data_type": "f64"} if spec["data_type"] in tensors.FLOATS else spec

        if _specs(found) != [wide(spec) for spec in self.output_specs]:
            return False
        tensors.write_file(path, found)
        return True

    def check(self, inputs, output, expected):
        """The error of a result by the task's own check."""
        return self._checked(
            tensors.read_file(inputs),
            self._planted_results(tensors.read_file(output)),
            self._planted_results(tensors.read_file(expected)),
        )

    def _checked(self, stored, output, expected):
        if not self.task.has_check:
            return None
        arguments = self._planted(stored)
        fault = self._told("in the task's check", lambda: self.task.check(self.parameters, arguments, output, expected))
        return None if fault is None else str(fault)


def _checked_tolerance(stated, outputs, fault):
    """Tolerances by output, and limits of the whole; None where the task states none."""
    if stated is None:
        return None
    limits = {"rtol", "atol", "nrmse", "bias", "share"}
    remedy = 'write {"rtol": 1e-3, "atol": 1e-3}, or such a dict for each output by name'
    if not isinstance(stated, dict):
        raise fault(f"`tolerance` is {stated!r}", remedy)
    nested = bool(stated) and all(isinstance(value, dict) for value in stated.values())
    for table in stated.values() if nested else [stated]:
        unknown = sorted(set(table) - limits)
        if unknown or not all(isinstance(value, (int, float)) and value >= 0 for value in table.values()):
            raise fault(f"`tolerance` has {unknown or table}", f"{remedy}; the limits are {', '.join(sorted(limits))}")
    strange = sorted(set(stated) - set(outputs)) if nested else []
    if strange:
        raise fault(f"`tolerance` names {strange[0]}, which is no output", f"name some of {', '.join(outputs)}")

    def unlimited(table):
        """JSON has no infinity: null stands for it."""
        return {key: None if value == float("inf") else value for key, value in table.items()}

    if nested:
        return {"outputs": {name: unlimited(table) for name, table in stated.items()}}
    return {"all": unlimited(stated)}


def _specs(found):
    specs = []
    for name, tensor in found.items():
        data_type, carried = tensors.types_of(tensor, name)
        pairs = [2] if carried and carried.startswith("complex") else []
        specs.append({"name": name, "data_type": data_type, "shape": [*tensor.shape, *pairs]})
    return specs


def _in_double(value):
    """A tree of values with its real and complex tensors in f64."""
    if isinstance(value, dict):
        return {key: _in_double(branch) for key, branch in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_in_double(branch) for branch in value)
    return tensors.in_double(value) if tensors.is_tensor(value) else value


def _leaves(value):
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return [value]
    return [leaf for branch in value for leaf in _leaves(branch)]


def _is_on_gpu(leaf):
    return tensors.is_torch(leaf) and leaf.device.type == "cuda"


def _values(tree):
    """The plain values in a tree."""
    if "value" in tree:
        return [tree["value"]]
    if "tensor" in tree:
        return []
    branches = tree["dict"].values() if "dict" in tree else tree.get("tuple") or tree.get("list") or []
    return [value for branch in branches for value in _values(branch)]
