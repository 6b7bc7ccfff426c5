"""What a case asks for, in the form that the native loop takes, and what is wrong with a result."""

import numpy as np
import tensors


class Task:
    """What a case asks for: the tree of arguments, the outputs, and the library of tensors."""

    def __init__(self, case, device):
        sizes = case["sizes"]
        self.inputs = {spec["name"]: spec for spec in case["inputs"]}
        self.outputs = {spec["name"]: spec for spec in case["outputs"]}
        self.constant = set(case.get("constant", ()))
        if "arguments" not in sizes:
            sizes = self._of_built_in(device)
        self.library, self.device, self.call = sizes["library"], sizes["device"], sizes["call"]
        self.arguments, self.results = sizes["arguments"], sizes["results"]
        self.initial, self.seed = sizes.get("init"), sizes.get("seed", 0)
        self.order = sizes.get("order")
        if self.library == "torch":
            tensors.import_torch()

    def _of_built_in(self, device):
        """A task that comes with Gauntlet: inputs by name, results in the order of the outputs."""
        types = {spec["data_type"] for spec in [*self.inputs.values(), *self.outputs.values()]}
        plain = device == "cpu" and not types & {"bf16", "f8e4m3", "f8e5m2"}
        results = [{"tensor": name} for name in self.outputs]
        return {
            "library": "numpy" if plain else "torch",
            "device": device,
            "call": "keywords",
            "arguments": {"dict": {identifier(name): {"tensor": name} for name in self.inputs}},
            "results": results[0] if len(results) == 1 else {"tuple": results},
        }

    def leaf(self, name):
        """The leaf of an output in the tree of results; outputs that are not in it have no special type."""
        found = (leaf for leaf in tensors.leaves(self.results) if leaf["tensor"] == name)
        return next(found, {"tensor": name})

    def output_device(self, name):
        """Where an output is expected."""
        return self.leaf(name).get("device", self.device)


def identifier(name):
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def library_of(task):
    """How the loop looks at a tensor: functions of C only, which no kernel can replace."""
    if task.library == "numpy":
        array = np.ndarray
        ask = [array.dtype.__get__, array.shape.__get__, array.strides.__get__, array.__array_interface__.__get__]
        return (array, *ask, None, (), None, array.astype, np.asarray, 0)
    torch = tensors.import_torch()
    base = torch._C.TensorBase
    ask = [base.dtype.__get__, base.size, base.stride, base.data_ptr, base.device.__get__]
    return (torch.Tensor, *ask, (base.is_conj, base.is_neg), base.contiguous, base.to, None, 1)


def output_of(task, name, spec):
    """An output as the loop knows it: element types with the bytes of an element, first its own and then others that are
    accepted; shape, device, and types of scalars."""
    leaf = task.leaf(name)
    dtype, shape = leaf.get("dtype"), tuple(spec["shape"])
    complex_ = dtype is not None and dtype.startswith("complex")
    shape = shape[:-1] if complex_ else shape
    is_numpy = task.library == "numpy"
    find = tensors.numpy_dtype if is_numpy else tensors.torch_dtype
    kinds = [find(spec["data_type"], dtype), *map(find, leaf.get("accepts", ()))]
    sized = tuple((kind, kind.itemsize) for kind in kinds)
    if is_numpy:
        own = kinds[0]
        scalars = (own.type, *(plain for plain in (bool, int, float) if np.dtype(plain) == own))
        return (sized, shape, None, 0, () if shape else scalars)
    device = tensors.import_torch().empty(0, device=task.output_device(name)).device
    return (sized, shape, device, int(device.type == "cuda"), ())


def forms_of(task):
    """The trees that a returned value may have: the task's, and for a call by name also a dict of the outputs, a tuple
    of them, or the only one. A lone tensor comes last, because it takes a value of any form."""
    if task.call != "keywords":
        return [task.results]
    each = [task.leaf(name) for name in task.outputs]
    forms = [{"dict": dict(zip(task.outputs, each))}, {"tuple": each}, *(each if len(each) == 1 else [])]
    return sorted([task.results, *forms], key=lambda form: "tensor" in form)


def results_of(tree, names):
    """The tree of results as the loop knows it."""
    if "tensor" in tree:
        return names.index(tree["tensor"]) if tree["tensor"] in names else None
    if "value" in tree:
        return None
    if "dict" in tree:
        return (1, tuple((key, results_of(branch, names)) for key, branch in tree["dict"].items()))
    return (0, tuple(results_of(branch, names) for branch in tree.get("tuple", tree.get("list"))))


def extent(tensor):
    """Address and length of the memory that a tensor's elements lie in, and whether it is on a GPU."""
    strides, shape = tensors.strides_of(tensor), tuple(tensor.shape)
    elements = 0 if 0 in shape else 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))
    if tensors.is_torch(tensor):
        return tensor.data_ptr(), elements * tensor.element_size(), int(tensor.device.type == "cuda")
    return tensor.__array_interface__["data"][0], elements * tensor.itemsize, 0


def place(tensor):
    """Address of a tensor's elements, and the strides in bytes unless they are in row-major order."""
    if tensors.is_row_major(tensor):
        return [extent(tensor)[0]]
    size = tensor.element_size() if tensors.is_torch(tensor) else tensor.itemsize
    return [extent(tensor)[0], *(size * stride for stride in tensors.strides_of(tensor))]


def explain(task, number, result, in_place):
    """Why a result does not fit, in words."""
    found, problem = {}, None
    if result is None:
        if in_place:
            return "the kernel returned None, and does not take every output to write to"
        return f"the kernel returned None; return {', '.join(f'`{name}`' for name in task.outputs)}"

    def walk(tree, value, where):
        nonlocal problem
        if "tensor" in tree:
            found[tree["tensor"]] = value
            return
        if "value" in tree:
            return
        kind = "dict" if "dict" in tree else "tuple"
        expected = tree["dict"] if kind == "dict" else tree.get("tuple", tree.get("list"))
        fits = type(value) is dict if kind == "dict" else is_sequence(value)
        if not fits:
            problem = problem or f"{where} is {_kind(value)}, but the task's is a {kind} of {len(expected)}"
        elif len(value) != len(expected):
            problem = problem or f"{where} has {len(value)} items, but the task's has {len(expected)}"
        elif kind == "dict":
            for key, branch in expected.items():
                if key in value:
                    walk(branch, value[key], f"{where}[{key!r}]")
                else:
                    problem = problem or f"{where} has no `{key}`; it has {', '.join(map(repr, value))}"
        else:
            for index, branch in enumerate(expected):
                walk(branch, value[index], f"{where}[{index}]")

    if is_sequence(result) and len(result) != 1 and any("tensor" in form for form in forms_of(task)):
        (name,) = task.outputs
        kind = type(result).__name__
        found = f"the kernel returned a {kind} of {len(result)} values"
        array = "an array of numpy" if task.library == "numpy" else "a torch.Tensor"
        return f"{found}, and the task has one output, `{name}`; return {array}"
    kind = "dict" if type(result) is dict else "tuple" if is_sequence(result) else "tensor"
    forms = [form for form in forms_of(task) if kind in form or (kind == "tuple" and "list" in form)]
    walk((forms or [task.results])[0], result, "the returned value")
    for name, value in found.items():
        problem = problem or _misfit(task, name, value)
    return problem or f"the result of call {number} does not fit the task's outputs"


def is_sequence(value):
    """Whether the loop takes a value for a tuple or a list: named tuples and what torch's functions return are tuples."""
    return issubclass(type(value), tuple) or type(value) is list


def _kind(value):
    return f"a {type(value).__module__}.{type(value).__qualname__}".replace("a builtins.", "a ")


def _misfit(task, name, value):
    kinds, shape, device, _, _ = output_of(task, name, task.outputs[name])
    if task.library == "numpy":
        if type(value) is not np.ndarray:
            return f"`{name}` is {_kind(value)}, but the task's is a numpy.ndarray; return an array of numpy"
    else:
        if type(value) is not tensors.import_torch().Tensor:
            return (
                f"`{name}` is {_kind(value)}, but the task's is a torch.Tensor; return a torch.Tensor and no subclass "
                "(torch.from_dlpack takes tensors of other libraries)"
            )
        if value.device != device:
            return f"`{name}` is on {value.device}, but the task's is on {device}"
        if value.is_conj() or value.is_neg():
            return f"`{name}` is a lazy view; return it by `.resolve_conj().resolve_neg()`"
    accepted = [dtype for dtype, _ in kinds]
    if value.dtype not in accepted:
        expected = " or ".join(str(dtype).removeprefix("torch.") for dtype in accepted)
        return f"`{name}` has elements of type {tensors.dtype_name(value)}, but the task's are {expected}"
    if tuple(value.shape) != shape:
        return f"`{name}` has the shape {list(value.shape)}, but the task's is {list(shape)}"
    return None
