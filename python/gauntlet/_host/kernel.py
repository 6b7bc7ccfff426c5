"""The user's function or class: its import, and the arguments that it takes."""

import importlib
import importlib.util
import inspect
import os
import sys

import own_modules
import tensors
from case import identifier
from failures import Refused


class Kernel:
    """The user's function or class, and how it takes the arguments."""

    def __init__(self, place, name, task, parameters, solution=None):
        self.name, self.parameters = name, parameters
        if solution:
            # The sources of a solution import each other from the folder that holds all of them.
            sys.path.insert(0, solution[0])
        self.module = _imported(place, task.call == "single")
        self.function = self._found()
        if task.call == "model":
            self.function = self._model(task)
        self.task, self.in_place, self.positional, self.keywords = task, [], [], []
        if solution:
            self._place(task, solution[1] == "destination")
        elif task.call == "keywords":
            self._match(task)
        elif parameters:
            raise Refused(
                f"`{name}` is given {', '.join(parameters)}, and kernels of this task take no parameters of their own; "
                "leave them out"
            )

    def _found(self):
        found = self.module
        for part in self.name.split("."):
            found = getattr(found, part, None)
            if found is None:
                named = [
                    name
                    for name, value in vars(self.module).items()
                    if callable(value) and getattr(value, "__module__", None) == self.module.__name__
                ]
                known = f"it has {', '.join(named)}" if named else "it has no function"
                raise Refused(f"{self.module.__file__} has no `{self.name}`; {known}")
        if not callable(found):
            kind = type(found).__name__
            raise Refused(f"`{self.name}` in {self.module.__file__} is a {kind}, not a function; name a function")
        return found

    def _model(self, task):
        """An instance of a class with the weights of the seed, on the task's device, without gradients."""
        torch = tensors.import_torch()
        torch.set_grad_enabled(False)
        torch.manual_seed(task.seed)
        arguments = tensors.plant(task.initial or {"tuple": []}, _no_tensor)
        model = self.function(*arguments)
        return model.to(task.device) if isinstance(model, torch.nn.Module) else model

    def _place(self, task, writes_outputs):
        """Takes the arguments by their places, as the format of solutions says: inputs, then outputs if it writes
        them."""
        if task.order is None:
            raise Refused("a solution is a kernel of a definition's tasks; name a function for this task")
        self.positional = list(task.order)
        if writes_outputs:
            shared = [name for name in task.outputs if identifier(name) in self.positional]
            if shared:
                raise Refused(f"`{shared[0]}` is both an input and an output; a solution cannot tell them apart")
            self.positional += [identifier(name) for name in task.outputs]
            self.in_place = list(task.outputs)
        try:
            inspect.signature(self.function).bind(*self.positional)
        except TypeError as error:
            style = "its inputs, then its outputs" if writes_outputs else "its inputs"
            raise Refused(
                f"`{self.name}` in {_place(self.function, self.module)} is called with {style} "
                f"({', '.join(self.positional)}): {error}; correct its parameters, or `destination_passing_style` of "
                "the spec"
            ) from None
        except ValueError:
            pass

    def _match(self, task):
        """Chooses the arguments that the function takes, by their names."""
        given = list(task.arguments["dict"])
        taken = [name for name in self.parameters if name in given or name in map(identifier, task.outputs)]
        if taken:
            raise Refused(f"`{taken[0]}` is a tensor or a size of the task; give the kernel's parameter another name")
        outputs = {identifier(name): name for name in task.outputs if identifier(name) not in given}
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (ValueError, TypeError):
            self.positional, self.keywords = given, list(self.parameters)
            return
        where = f"`{self.name}` in {_place(self.function, self.module)}"
        unknown = dict(self.parameters)
        for parameter in parameters:
            if parameter.kind is parameter.VAR_KEYWORD:
                self.keywords += [name for name in given if name not in self.keywords + self.positional]
                self.keywords += unknown
                unknown = {}
            elif parameter.name in unknown and parameter.kind is not parameter.POSITIONAL_ONLY:
                self.keywords.append(parameter.name)
                del unknown[parameter.name]
            elif parameter.name in given or parameter.name in outputs:
                only = parameter.kind is parameter.POSITIONAL_ONLY
                (self.positional if only else self.keywords).append(parameter.name)
            elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL:
                raise Refused(
                    f"{where} takes `{parameter.name}`, which the task does not have; its inputs are "
                    f"{', '.join(given)}, and its outputs {', '.join(task.outputs)}: rename the parameter, or give it "
                    "a default"
                )
        if unknown:
            raise Refused(f"{where} has no parameter `{next(iter(unknown))}`; add it with a default, or leave it out")
        taken = self.positional + self.keywords
        if given and not any(name in given for name in taken):
            raise Refused(f"{where} takes none of the task's inputs: name its parameters after {', '.join(given)}")
        self.in_place = [outputs[name] for name in taken if name in outputs]
        if self.in_place and len(self.in_place) < len(task.outputs):
            rest = ", ".join(name for name in task.outputs if name not in self.in_place)
            raise Refused(f"{where} takes some outputs to write to, but not {rest}: take all outputs, or return all")

    def arguments(self, place, outputs):
        """New containers of the arguments: a tuple, and a dict or None. ``place`` gives the tensor of a leaf."""
        tree = self.task.arguments
        if self.task.call == "keywords":
            branches = tree["dict"]
            made = {identifier(name): tensor for name, tensor in outputs.items()}

            def value(name):
                if name in self.parameters:
                    return self.parameters[name]
                return tensors.plant(branches[name], place) if name in branches else made[name]

            return tuple(map(value, self.positional)), {name: value(name) for name in self.keywords}
        planted = tensors.plant(tree, place)
        return ((planted,) if self.task.call == "single" else tuple(planted)), None


def _no_tensor(leaf):
    name = leaf["tensor"]
    raise Refused(f"the arguments of the model's constructor hold the tensor `{name}`; only values can be given")


def _place(function, module):
    """File and line of a function's definition, which a file may have from another one."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else module.__file__


def _imported(place, is_submission):
    """The module at a place: a file by its absolute path, or a module by its name."""
    if not os.path.isabs(place):
        return importlib.import_module(place)
    path = place
    folder = os.path.dirname(path)
    own_modules.add(folder)
    # Processes that the kernel starts import its modules from there; in this one, `own_modules` decides.
    sys.path.append(folder)
    if is_submission:
        # Submissions of competitions lie in the task's folder or below it, and import modules that lie in it or above.
        for _ in range(2):
            folder = os.path.dirname(folder)
            sys.path.append(folder)
    name = os.path.splitext(os.path.basename(path))[0]
    spec = own_modules.spec_of(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
