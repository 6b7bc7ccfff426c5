"""A worker for the task rms-norm in Python with numpy. docs/reference/protocol.md documents each call."""
import json, sys, time
import numpy as np

def read_tensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    return {name: np.frombuffer(data[slice(*tensor["data_offsets"])], np.float32).reshape(tensor["shape"])
            for name, tensor in header.items() if name != "__metadata__"}

class Worker:
    def describe(self):
        return {"answer": "description", "protocol": 4, "worker": "rms_norm.py", "device": "host"}

    def build(self, case, parameters, artefacts=None):
        if case["task"] != "rms-norm" or case["outputs"][0]["data_type"] != "f32":
            raise ValueError("this worker computes rms-norm in f32 only")
        return {"answer": "built", "resources": {}}

    def load(self, inputs, copies):
        sets = [read_tensors(path) for path in inputs[:copies]]
        self.copies = [{name: t.copy() for name, t in sets[i % len(sets)].items()} for i in range(copies)]
        return {"answer": "loaded", "bytes": sum(t.nbytes for copy in self.copies for t in copy.values())}

    def prepare(self):
        return {"answer": "prepared", "bytes": 0}

    def compute(self, copy):
        x, weight = (self.copies[copy % len(self.copies)][name] for name in ("x", "weight"))
        start = time.perf_counter()
        squares = np.einsum("ij,ij->i", x, x, dtype=np.float64)
        scale = (1 / np.sqrt(squares / x.shape[1] + 1e-5)).astype(np.float32)
        self.results.append(x * scale[:, None] * weight)
        return {"call": time.perf_counter() - start}

    def run(self, copy, poison=255):
        self.results = []  # numpy writes each result whole, so there is no output to poison
        return {"answer": "ran", **self.compute(copy)}

    def time(self, copies, phases):
        self.results = []  # every result of a request is kept: the coordinator may ask for any of them
        return {"answer": "timed", "samples": [self.compute(copy) for copy in copies]}

    def output(self, path, index=0):
        y = self.results[index]
        header = json.dumps({"y": {"dtype": "F32", "shape": y.shape, "data_offsets": [0, y.nbytes]}}).encode()
        with open(path, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header + y.tobytes())
        return {"answer": "written", "bytes": y.nbytes}

worker, call = Worker(), None
while call != "stop" and (line := sys.stdin.readline()):
    request = json.loads(line)
    number, call = request.pop("id"), request.pop("call")
    try:
        answer = {"answer": "stopped"} if call == "stop" else getattr(worker, call)(**request)
    except Exception as error:
        answer = {"error": {"kind": "refused" if call == "build" else "broken", "message": str(error)}}
    print(json.dumps({"id": number, **answer}), flush=True)
