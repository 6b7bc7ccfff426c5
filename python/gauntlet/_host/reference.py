"""The reference process of a Python task: draws inputs, computes the expected results, and runs the task's own check.

    python3 reference.py TASK

reads one JSON object a line from standard input, a socket, and answers each with one line on standard output:

    open      the task: its cases, its rules, and notes on what is not honoured
    case      the tensors of one case, and the sizes that a worker is told
    generate  writes the inputs drawn from a seed to a file
    expected  writes the expected result for a file of inputs to a file; with `weight`, a name and a value, a model's weight is replaced
    faster    a call of the task's library that gives the same for a file of inputs in far less time, or null
    weights   the names of a model's weights
    in_double writes the reference's result for the same inputs in f64, if it takes them
    check     the task's own check of a result: a message, or null

Tensors travel in safetensors files, whose descriptors come with the line; `files` names the fields that they stand for. An error has a message, a remedy, and the file and line of the user's code.
"""

import json
import math
import os
import queue
import signal
import socket
import sys
import threading

sys.dont_write_bytecode = True
_HERE = os.path.dirname(os.path.abspath(__file__))
_OWN = ("own_modules", "tensors", "task_case", "task_faults", "task_file", "task_kernel_bench", "task_gpu_mode", "task_definition", "task_library")

# As in worker.py: a file that compares kernels when it is imported is refused, and not started again and again.
os.environ["GAUNTLET_WITHIN"] = "reference"

try:
    import numpy as np
except ImportError:
    np = None
else:
    import task_case
    import task_definition
    import task_file
    import task_gpu_mode
    import task_kernel_bench
    import tensors
    from task_faults import TaskFault, brief, told

# The user's modules may have the names of these files.
for _name in _OWN:
    sys.modules.pop(_name, None)
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]

# The longest name that is made of a case's parameters.
_LONGEST_NAME = 48


def open_task(path, kind, description, baseline):
    """The task at a path."""
    path = os.path.abspath(path)
    if kind == "gpu-mode":
        return task_gpu_mode.GpuModeTask(path, description)
    if kind == "definition":
        return task_definition.DefinitionTask(path)
    folder = os.path.dirname(path)
    task_file.add_folders(folder)
    module = task_file.load_module(path, _module_name(path), [folder])
    if task_kernel_bench.is_kernel_bench(module):
        return task_kernel_bench.KernelBenchTask(module, path, [folder])
    return task_file.FileTask(module, path, description, baseline)


def _module_name(path):
    """The name of a file's module; another if a module of that name is already imported, such as `json`."""
    name = os.path.splitext(os.path.basename(path))[0]
    return f"gauntlet_task_{name}" if name in sys.modules else name


def _listed(task, cases):
    """Cases with a name each: made of the parameters where the task gives none, or numbered where that is long."""
    listed = []
    for number, (name, parameters) in enumerate(cases, 1):
        unwritable = _unwritable(parameters)
        if unwritable:
            remedy = "let cases hold texts, flags, lists, finite numbers, and whole numbers of 64 bits"
            raise TaskFault(f"a case has {unwritable}, which no record can hold", remedy, *task.place("cases"))
        made = ",".join(f"{key}={value}" for key, value in parameters.items())
        if not made or len(made) > _LONGEST_NAME or " " in made:
            made = f"case-{number}"
        shown = task.shown(parameters)
        listed.append({"name": str(name or made), "shown": shown, "parameters": parameters})
    return listed


def _unwritable(value):
    """What in a value cannot be written as JSON that every program reads, in words; None if all can."""
    if value is None or isinstance(value, (str, bool)):
        return None
    if isinstance(value, (dict, list, tuple)):
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        return next(filter(None, map(_unwritable, parts)), None)
    if type(value) is int and -(2**63) <= value < 2**63 or type(value) is float and math.isfinite(value):
        return None
    return brief(value) if isinstance(value, (int, float)) else f"{brief(value)}, a {type(value).__name__}"


class Server:
    """Answers requests about one task."""

    def __init__(self, path):
        self.path, self.task, self.opened = path, None, {}

    def open(self, kind, description=None, baseline=None):
        self.task = open_task(self.path, kind, description, baseline)
        correctness, benchmark = self.task.cases()
        return {
            "name": getattr(self.task, "name", None),
            "summary": self.task.summary,
            "notes": self.task.notes,
            "correctness": _listed(self.task, correctness),
            "benchmark": _listed(self.task, benchmark),
            "has_check": self.task.has_check,
            "check_is_the_rule": self.task.check_is_the_rule,
            "accepts": self.task.accepts,
        }

    def case(self, parameters):
        key = json.dumps(parameters, sort_keys=True)
        if key not in self.opened:
            self.opened[key] = task_case.Case(self.task, parameters)
        case = self.opened[key]
        return {
            "inputs": case.specs,
            "outputs": case.output_specs,
            "constant": case.constant,
            "deterministic": self.task.deterministic,
            "sizes": case.sizes(),
            "tolerance": case.tolerance,
            "work": case.work,
            "changed": case.changed,
            "lent": case.lent,
            "narrower": case.narrower(),
        }

    def generate(self, parameters, seed, path):
        self._case(parameters).generate(seed, path)
        return {}

    def expected(self, parameters, inputs, path, weight=None):
        self._case(parameters).expected(inputs, path, weight)
        return {}

    def weights(self, parameters):
        return self.task.weights(parameters)

    def faster(self, parameters, inputs):
        return self._case(parameters).faster(inputs)

    def in_double(self, parameters, inputs, path):
        return {"done": self._case(parameters).in_double(inputs, path)}

    def check(self, parameters, inputs, output, expected):
        return {"fault": self._case(parameters).check(inputs, output, expected)}

    def _case(self, parameters):
        self.case(parameters)
        return self.opened[json.dumps(parameters, sort_keys=True)]


# Most files of a request.
_MOST_FILES = 8


def _listen(connection, target):
    """Lines of standard input with their files, read by a thread of their own: when the coordinator is gone, this process ends
    at once, even if the user's code never returns."""
    text, files = b"", []
    while True:
        data, more, _, _ = socket.recv_fds(connection, 1 << 16, _MOST_FILES, socket.MSG_CMSG_CLOEXEC)
        if not data:
            os._exit(0)
        text, files = text + data, files + more
        # The next request comes only after the answer.
        if text.endswith(b"\n"):
            target.put((text, files))
            text, files = b"", []


def _answer(server, request):
    call = request.pop("call")
    try:
        if np is None:
            remedy = f"install numpy for the Python at {sys.executable}, or name another Python by GAUNTLET_PYTHON"
            return {"error": {"message": "No module named 'numpy'", "remedy": remedy, "file": None, "line": None}}
        return {"answer": getattr(server, call)(**request)}
    except TaskFault as fault:
        return {"error": fault.answer()}
    except tensors.TensorError as error:
        return {"error": {"message": str(error), "remedy": "correct the task", "file": server.path, "line": None}}


def main():
    # What the user's code prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    requests = socket.socket(fileno=os.dup(0))
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # An interrupt at the terminal ends the coordinator, and with it this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server, lines = Server(sys.argv[1]), queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, lines), daemon=True).start()
    while True:
        line, files = lines.get()
        request = json.loads(line)
        number = request.pop("id")
        request.update(zip(request.pop("files"), (f"/proc/self/fd/{file}" for file in files)))
        answer = _answer(server, request)
        for file in files:
            os.close(file)
        answers.write(json.dumps({"id": number, **answer}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
