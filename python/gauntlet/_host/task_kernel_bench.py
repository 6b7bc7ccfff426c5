"""Problems in the form of KernelBench: ``class Model(nn.Module)``, ``get_inputs()``, ``get_init_inputs()``; a kernel is
a ``class ModelNew`` whose weights are drawn from the same seed."""

import inspect
import itertools

from task_faults import TaskFault, fault_at
from task_file import Task, first_line, seed_everything

# Seed of the weights of both models.
WEIGHTS_SEED = 42

# KernelBench's own tolerances by precision, absolute and relative alike.
_TOLERANCES = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 1e-2}


def is_kernel_bench(module):
    """Whether a module is such a problem."""
    return inspect.isclass(getattr(module, "Model", None)) and hasattr(module, "get_inputs")


class KernelBenchTask(Task):
    """A problem of KernelBench. It has one case, whose sizes stand in the file."""

    call = "model"

    def __init__(self, module, path, folders):
        super().__init__(folders)
        import torch

        self.torch, self.module, self.path = torch, module, path
        if not callable(module.get_inputs):
            raise TaskFault("`get_inputs` is not a function", "write `def get_inputs(): return […]`", path, 1)
        self.get_init_inputs = getattr(module, "get_init_inputs", list)
        self.calls = itertools.count(WEIGHTS_SEED + 1)
        self.summary = first_line(module.__doc__ or module.Model.__doc__)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        if self.device == "cpu":
            self.notes.append("there is no GPU here: the model and its inputs are on the CPU")
        # A reference in TF32 would be less exact than an honest kernel.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False

    def cases(self):
        return [], [("model", {})]

    def tolerances(self, outputs):
        """KernelBench's tolerance for these outputs: that of the coarsest."""
        limits = [_TOLERANCES.get(str(tensor.dtype).removeprefix("torch."), 0.0) for tensor in outputs]
        limit = max(limits, default=0.0)
        return {"rtol": limit, "atol": limit} if limit else None

    def generate(self, parameters, seed):
        seed_everything(seed)
        return self._placed(tuple(self.module.get_inputs()))

    def initial(self, parameters):
        seed_everything(WEIGHTS_SEED)
        return self._placed(tuple(self.get_init_inputs())), WEIGHTS_SEED

    def _placed(self, values):
        def placed(value):
            return value.to(self.device) if isinstance(value, self.torch.Tensor) else value

        return tuple(placed(value) for value in values)

    def weights(self, parameters):
        return [name for name, _ in self._model(parameters).named_parameters()]

    def reference(self, parameters, arguments, weight=None):
        model = self._model(parameters)
        if weight is not None:
            name, value = weight
            with self.torch.no_grad():
                model.get_parameter(name).fill_(value)
        return self._result(model, arguments)

    def prepared(self, parameters, arguments):
        model = self._model(parameters)

        def call():
            with self.torch.no_grad():
                return model(*arguments)

        return call

    def in_double(self, parameters, arguments):
        return self._result(self._model(parameters).double(), arguments)

    def _model(self, parameters):
        inits, seed = self.initial(parameters)
        seed_everything(seed)
        try:
            inspect.signature(self.module.Model.__init__).bind(None, *inits)
        except TypeError as error:
            message = f"`Model` cannot be made from what `get_init_inputs` returns: {error}"
            raise fault_at(self.module.Model.__init__, message, "let the two agree") from None
        return self.module.Model(*inits).to(self.device)

    def _result(self, model, arguments):
        # A kernel is called at another time than the model is made: what the model draws then must not look as if it were fixed.
        seed_everything(next(self.calls))
        with self.torch.no_grad():
            return model(*arguments)
