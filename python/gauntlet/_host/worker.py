"""The worker of a Python kernel: ``worker.py LOOP OPENED FILE:FUNCTION PARAMETERS [ROOT STYLE]``.

OPENED is what it imports and opens at its start: ``cpu`` (numpy), ``torch``, or ``cuda`` (torch and the GPU).

PARAMETERS is a JSON object: keyword arguments of the function that are no tensors, such as ``{"BLOCK": 128}``.

ROOT and STYLE belong to a solution of FlashInfer-Trace: the folder of its sources, and whether the function writes to
its last arguments (``destination``) or returns its results (``returned``).

It answers the worker protocol (docs/reference/protocol.md). The Python files in this folder import the kernel, make
tensors of the operands and name what is wrong with a result. The native loop in LOOP calls the kernel: it owns the
clock, the inputs between calls and the results, and is set up before the kernel is imported.
"""

import ctypes
import fcntl
import json
import os
import platform
import resource
import shutil
import sys
import tempfile
from time import perf_counter

PROTOCOL = 4

# A user's file that compares kernels as soon as it is imported would start comparisons without end: the package refuses here.
os.environ["GAUNTLET_WITHIN"] = "worker"

try:
    import numpy as np
except ImportError as error:
    sys.exit(
        f"numpy cannot be imported ({error}): a Python kernel needs it; install it into the Python at {sys.executable} "
        f"(`{sys.executable} -m pip install numpy`), or name another Python by GAUNTLET_PYTHON"
    )

# The user's modules may have the names of these, so these do not stay on the path.
_FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [_FOLDER, *(entry for entry in sys.path if entry != _FOLDER)]
import tensors  # noqa: E402
from case import Task, explain, extent, forms_of, library_of, output_of, place, results_of  # noqa: E402
from failures import Broken, Refused, Unfit, Wrong, is_out_of_memory, told  # noqa: E402
from kernel import Kernel  # noqa: E402
from pool import Pool  # noqa: E402

del sys.path[0]
for name in ("own_modules", "tensors", "case", "failures", "kernel", "pool"):
    del sys.modules[name]

# Where the coordinator tries whether it can reach this process's memory.
_PROBE = ctypes.create_string_buffer(b"gauntlet")

_KINDS = {Refused: "refused", Wrong: "bad-request", Broken: "broken"}


class Loop:
    """The native loop."""

    def __init__(self, path):
        library = ctypes.PyDLL(path)
        for name in ("bind", "load", "hold", "trace", "run", "write"):
            function = getattr(library, f"gauntlet_{name}")
            function.argtypes, function.restype = [ctypes.py_object], ctypes.py_object
            setattr(self, name, function)


def _open_gpu(torch):
    """Makes the device's context, which takes a second."""
    torch.cuda.init()
    torch.empty(1, device="cuda")
    torch.cuda.synchronize()


# Seconds for which a GPU is held back before a call, unless the coordinator says otherwise; the protocol names them `gate`.
HOLD = 600e-6


class Worker:
    """Answers requests."""

    def __init__(self, loop, opened, place, name, parameters, solution=None, pipes=None):
        self.loop, self.opened, self.place, self.name, self.solution = loop, opened, place, name, solution
        self.parameters = parameters
        self.default_device = "cuda" if opened == "cuda" else "cpu"
        self.task = self.kernel = self.pool = None
        self.copies, self.pipes = [], pipes
        self.traced, self.written_at = [], None

    def shown(self, message):
        """A message with the files of a solution as the solution names them."""
        return message.replace(self.solution[0] + os.sep, "") if self.solution else message

    def _open(self):
        """Imports the library of the task's tensors, and opens the device. Both take seconds, and the workers of a pair
        are started side by side but build one after the other. What goes wrong here goes wrong again when a case is
        built, and is told then."""
        try:
            if self.opened != "cpu":
                torch = tensors.import_torch()
                if self.opened == "cuda" and torch.cuda.is_available():
                    _open_gpu(torch)
        except Exception:  # noqa: BLE001
            pass

    def describe(self):
        # Before the answer, after which a worker has nothing to do until it is asked to build: an import that went on
        # meanwhile would disturb the build of the other side.
        self._open()
        details = {"python": platform.python_version(), "numpy": np.__version__, "interpreter": sys.executable}
        return {
            "answer": "description",
            "protocol": PROTOCOL,
            "worker": f"python {self.place}:{self.name}",
            "device": "host" if self.default_device == "cpu" else self.default_device,
            "details": details,
            "memory": ctypes.addressof(_PROBE),
            "device_times": self.default_device == "cuda",
            "heat": True,
            "activity": self.default_device == "cuda",
            "chooses_results": True,
        }

    def build(self, case, parameters, artefacts=None):
        self.task, self.kernel, self.copies = None, None, []
        try:
            task = Task(case, self.default_device)
            self._bind(task)
        except tensors.TensorError as error:
            raise Refused(str(error)) from None
        self.kernel = self._imported(task)
        self.task = task
        if artefacts is not None:
            self._compile()
        return {"answer": "built", "resources": {}}

    def _compile(self):
        """Calls the kernel once on zeros, so that compilers that work at the first call fill their caches now. What it
        answers, or that it fails, does not matter here."""
        zeros = {name: tensors.zeros(spec["data_type"], spec["shape"]) for name, spec in self.task.inputs.items()}
        try:
            self._place([zeros], 1)
            self._run([0], 255)
        except (Wrong, Broken):
            pass
        self.copies = []

    def _bind(self, task):
        if task.device == "cuda":
            torch = tensors.import_torch()
            if not torch.cuda.is_available():
                raise Broken(
                    "torch finds no GPU: the task's tensors belong on one; `gauntlet doctor` says what is missing"
                )
            _open_gpu(torch)
        names = list(task.outputs)
        outputs = tuple(output_of(task, name, spec) for name, spec in task.outputs.items())
        text = tensors.header_for(list(task.outputs.values()))
        results = tuple(results_of(form, names) for form in forms_of(task))
        try:
            self.loop.bind((library_of(task), outputs, results, Unfit, text, int(task.device == "cuda")))
        except RuntimeError as error:
            raise Broken(f"the GPU cannot be used: {error}") from None

    def _imported(self, task):
        try:
            return Kernel(self.place, self.name, task, self.parameters, self.solution)
        except (Refused, Broken):
            raise
        except BaseException as error:
            if is_out_of_memory(error):
                raise Broken(f"out of memory: {told(error)}") from None
            raise Refused(f"the kernel cannot be imported: {told(error, self.place)}") from None

    def load(self, inputs, copies):
        self._built()
        return {"answer": "loaded", "bytes": self._place([tensors.read_file(path) for path in inputs], copies)}

    def _place(self, files, copies):
        """Makes the tensors of all copies from the contents of files; returns their bytes."""
        task = self.task
        leaves = {leaf["tensor"]: leaf for leaf in tensors.leaves(task.arguments)}
        made = []
        for copy in range(copies):
            file = copy % len(files)
            # On a GPU every call has its own tensors, so one set a file is enough.
            is_new = copy < len(files) or not self._is_on_device(leaves.values())
            made.append(self._tensors(files[file], leaves) if is_new else made[file])
        extents = [tuple(extent(tensor) for tensor in made[file].values()) for file in range(min(len(files), copies))]
        address, length = self.loop.load(tuple(extents))
        self.pool, self.written_at = Pool(address, length), None
        self.copies = [(copy % len(files), tensors_of_copy, {}) for copy, tensors_of_copy in enumerate(made)]
        return sum(length for one in extents for _, length, _ in one) * copies // len(extents)

    def _is_on_device(self, leaves):
        return any(leaf.get("device", self.task.device) == "cuda" for leaf in leaves)

    def _tensors(self, stored, leaves):
        def restored(name, leaf):
            device = leaf.get("device", self.task.device)
            return tensors.restore(stored[name], self.task.library, device, leaf.get("dtype"), leaf.get("strides"))

        return {name: restored(name, leaf) for name, leaf in leaves.items()}

    def prepare(self):
        # Compilers that work at the first call do so here.
        self._run([0], 255)
        return {"answer": "prepared", "bytes": 0}

    def run(self, copy, poison=255):
        (sample,) = self._run([copy], poison)
        return {"answer": "ran", **sample}

    def time(self, copies, phases=False, scope="call", results=None, gate=HOLD):
        samples = self._run(copies, 255, scope=scope, hold=gate, results=results)
        if phases:
            # Phases are parts of the call then; there are none that this worker could tell apart.
            samples = [{name: value for name, value in sample.items() if name != "phases"} for sample in samples]
        return {"answer": "timed", "samples": samples}

    def step(self, copies, poison=255, heat=(), scope="call", gate=HOLD):
        if self.written_at is None:
            self.written_at = self._hold()
        self._run(copies, poison, self.pipes, heat, scope, gate)
        return {"answer": "stepped"}

    def activity(self, copies):
        if self._built().device != "cuda":
            raise Refused("there is no device to trace: the task's tensors lie on the host")
        try:
            self.loop.trace(1)
        except RuntimeError as error:
            raise Refused(str(error)) from None
        try:
            self._run(copies, 255)
        finally:
            self.loop.trace(0)
        return {"answer": "recorded", "calls": [_activity(traced) for traced in self.traced]}

    def _hold(self):
        """Where the coordinator writes inputs that lie on a GPU and are not constant, by name."""
        if self._built().device != "cuda" or not self.copies:
            return {}
        names = list(self.copies[0][1])
        addresses = self.loop.hold(tuple(int(name not in self.task.constant) for name in names))
        return {name: address for name, address in zip(names, addresses) if address}

    def output(self, path, index=0):
        self._built()
        return {"answer": "written", "bytes": self.loop.write((os.fsencode(path), index))}

    def _built(self):
        if self.task is None:
            raise Wrong("nothing is built; send build first")
        return self.task

    def _run(self, copies, poison, pipes=None, heat=(), scope="call", hold=HOLD, results=None):
        task = self._built()
        if not self.copies:
            raise Wrong("nothing is loaded; send load first")
        begun = perf_counter()
        is_late = bool(heat) and self._is_late()
        turns = {"sealed": True} if is_late else {}
        calls = [self._call(copy, turns if pipes is not None else None) for copy in copies]
        # A load is on other operands than the call after it, so that these are in no cache.
        others = [self._call(copy + 1) for copy in copies[: len(heat)]]
        heats = tuple((int(1e9 * seconds), other, int(is_late)) for seconds, other in zip(heat, others))
        stream = 0
        if task.device == "cuda":
            stream = tensors.import_torch().cuda.current_stream().cuda_stream
        try:
            cold, whole = len(self.copies) > 1, scope == "call"
            clocking = (int(whole), int(1e9 * hold), None if results is None else tuple(results))
            times = self.loop.run((self.kernel.function, tuple(calls), poison, stream, int(cold), pipes, heats, *clocking))
        except Unfit as error:
            raise Wrong(explain(task, *error.args, self.kernel.in_place)) from None
        except BaseException as error:
            if is_out_of_memory(error):
                raise Broken(f"out of memory: {told(error, self.kernel.module.__file__)}") from None
            if "CUDA driver reports error" in str(error):
                # Nothing works on the device any more in this process.
                sys.stderr.write(f"{told(error, self.kernel.module.__file__)}\n")
                sys.stderr.flush()
                os._exit(70)
            raise Wrong(f"the kernel raised {told(error, self.kernel.module.__file__)}") from None
        # What this request took besides, such as making the arguments, in equal parts.
        rest = (perf_counter() - begun - sum(call + between for call, between, *_ in times)) / len(times)
        self.traced = [traced for *_, traced in times]
        on_device = task.device == "cuda" and scope == "device"
        return [self._sample(call, between + max(0.0, rest), host, on_device) for call, between, host, _ in times]

    def _sample(self, call, between, host, on_device):
        if not on_device:
            return {"call": call, "phases": {"between": between}}
        return {"call": call, "kernel": call, "phases": {"between": between, "host": host}}

    def _is_late(self):
        """Whether a load comes after the operands: those in the memory of a GPU are sealed until it is over, others cannot be."""
        changing = [name for name in self.copies[0][1] if name not in self.task.constant]
        return self.task.device == "cuda" and all(name in self.written_at for name in changing)

    def _call(self, copy, turns=None):
        """A call as the loop takes it, on the tensors of a copy. ``turns`` is what the line before it says besides the places
        of the inputs, if there is one."""
        file, given, outputs = self.copies[copy % len(self.copies)]
        inputs, extents = given, [extent(tensor) for tensor in given.values()]
        if self.task.device == "cuda":
            outputs = {}
        for name in self.kernel.in_place:
            if name not in outputs:
                outputs[name] = self._empty(name)
        written = [extent(tensor) for tensor in outputs.values()]
        if self.task.device == "cuda":
            drawn = self.pool.draw([length if there else 0 for _, length, there in extents + written])
            placed = drawn[: len(extents)]
            inputs = {
                name: Pool.like(tensor, address) if there else tensor
                for (name, tensor), address, (_, _, there) in zip(given.items(), placed, extents)
            }
            outputs = {
                name: Pool.like(tensor, address) if there else tensor
                for (name, tensor), address, (_, _, there) in zip(outputs.items(), drawn[len(extents) :], written)
            }
            extents = [extent(tensor) for tensor in inputs.values()]
        addresses = {name: extent(tensor)[0] for name, tensor in outputs.items()}
        arguments, keywords = self.kernel.arguments(lambda leaf: inputs[leaf["tensor"]], outputs)
        in_place = tuple(addresses[name] for name in self.task.outputs) if addresses else ()
        ready = "" if turns is None else json.dumps({"inputs": self._places(inputs), **turns})
        return (arguments, keywords, file, tuple(address for address, _, _ in extents), in_place, ready.encode())

    def _places(self, inputs):
        """Where the coordinator writes the inputs of a call, by name. One on a GPU has the same form on the host."""
        places = {name: place(tensor) for name, tensor in inputs.items() if not extent(tensor)[2]}
        for name, address in self.written_at.items():
            places[name] = [address, *place(inputs[name])[1:]]
        return places

    def _empty(self, name):
        """A tensor for an output that the kernel writes in place."""
        spec, leaf = self.task.outputs[name], self.task.leaf(name)
        where = self.task.output_device(name)
        return tensors.empty(spec["data_type"], spec["shape"], self.task.library, where, leaf.get("dtype"))


def _activity(traced):
    """What the loop says of a traced call, as the protocol has it. The loop says in a string why it knows nothing."""
    if isinstance(traced, str):
        raise Refused(traced)
    window, left_out, activities = traced
    fields = ("work", "start", "end", "stream", "name")
    listed = [dict(zip(fields, (WORK[work], *rest))) for work, *rest in activities]
    return {"window": window, "left_out": left_out, "activities": listed}


# As the loop numbers them.
WORK = ("kernel", "copy", "fill")


def private_streams():
    """The protocol's input and output on descriptors of their own. What a kernel prints goes to standard error."""
    # High numbers, so that a kernel's own files keep the low ones; fewer files may be allowed than that.
    first = min(64, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
    requests, replies = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, first) for number in (0, 1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return os.fdopen(requests, "rb"), os.fdopen(replies, "wb", buffering=0)


def warm_allocator():
    """Has the C library keep freed memory, as it does in a process that has run for a while. glibc gives memory at the end of its
    heap back to the system when twice the largest block that was mapped by itself and freed is free there, and a kernel
    that makes arrays of megabytes would pay for new pages in each call (measured: 1,500 page faults and a fourfold time)."""
    block = bytearray(31 << 20)
    del block


def own_caches():
    """Caches of compilers that were filled by a build, folders that variables name inside the folder of artefacts, can only
    be read. They are copied to the worker's own folder, because compilers fail if they cannot write."""
    artefacts = os.environ.get("GAUNTLET_ARTEFACTS")
    for variable, folder in list(os.environ.items()):
        if artefacts is None or os.path.dirname(folder) != artefacts or not os.path.isdir(folder):
            continue
        try:
            with tempfile.TemporaryFile(dir=folder):
                continue
        except OSError:
            own = os.path.join(os.getcwd(), "caches", variable)
        shutil.copytree(folder, own, dirs_exist_ok=True)
        os.environ[variable] = own


def answer(worker, request):
    """The answer to a request, or the failure."""
    call = request.pop("call")
    try:
        handler = {name: getattr(worker, name) for name in CALLS}.get(call)
        if handler is None:
            raise Refused(f"a worker of a Python kernel does not answer `{call}`")
        return handler(**request)
    except tuple(_KINDS) as error:
        return {"error": {"kind": _KINDS[type(error)], "message": worker.shown(str(error))}}
    except Exception as error:
        kind = "broken" if is_out_of_memory(error) else "bad-request"
        return {"error": {"kind": kind, "message": worker.shown(f"{call}: {told(error)}")}}


CALLS = ("describe", "build", "load", "prepare", "run", "time", "step", "activity", "output")


def main():
    loop, opened, place, name, parameters, *solution = sys.argv[1:]
    warm_allocator()
    requests, replies = private_streams()
    own_caches()
    pipes = (requests.fileno(), replies.fileno())
    worker = Worker(Loop(loop), opened, place, name, json.loads(parameters), solution or None, pipes)
    sys.argv[1:] = []
    call = None
    while call != "stop" and (line := requests.readline()):
        request = json.loads(line)
        number, call = request.pop("id"), request["call"]
        reply = {"answer": "stopped"} if call == "stop" else answer(worker, request)
        replies.write(json.dumps({"id": number, **reply}).encode() + b"\n")
    # Finalisers of the kernel are not waited for.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
