//! Tasks in Python from the command line, with kernels behind the worker protocol.

#![expect(clippy::unwrap_used, reason = "tests")]

use gauntlet_worker::{Safeguard, Standing, safeguards};

use crate::common::{Place, Ran, has_numpy, interpreter};

const TASK: &str = r#""""Positions of the largest values, and the values."""
import numpy as np
cases = {"correctness": [{"rows": 3, "cols": 5}], "benchmark": [{"name": "wide", "rows": 64, "cols": 4000}]}
outputs = ["largest", "place"]
def generate(rows, cols, seed):
    return {"x": np.random.default_rng(seed).standard_normal((rows, cols), dtype=np.float32)}
def reference(x):
    return x.max(1), x.argmax(1)
"#;

const KERNELS: &str = r#"
import numpy as np
def fast(x):
    place = x.argmax(1)
    return np.take_along_axis(x, place[:, None], 1)[:, 0], place
def slow(x):
    order = np.argsort(x, 1)
    place = order[:, -1]
    return np.take_along_axis(x, place[:, None], 1)[:, 0], place
def wrong(x):
    largest, place = fast(x)
    return largest, place ^ 1
def unwritten(x):
    return x.max(1), []
"#;

/// A worker that calls a function of a file with the inputs by name, and copies its results into poisoned outputs.
const WORKER: &str = r#"
import importlib.util, json, sys, time
import numpy as np
TYPES = {"F32": np.float32, "I64": np.int64}
def read(path):
    with open(path, "rb") as file:
        header, data = json.loads(file.read(int.from_bytes(file.read(8), "little"))), file.read()
    part = lambda t: np.frombuffer(data[slice(*t["data_offsets"])], TYPES[t["dtype"]]).reshape(t["shape"]).copy()
    return {name: part(tensor) for name, tensor in header.items() if name != "__metadata__"}
def write(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        kind = {np.dtype(t): n for n, t in TYPES.items()}[tensor.dtype]
        header[name] = {"dtype": kind, "shape": tensor.shape, "data_offsets": [len(data), len(data) + tensor.nbytes]}
        data += tensor.tobytes()
    text = json.dumps(header).encode()
    open(path, "wb").write(len(text).to_bytes(8, "little") + text + data)
class Worker:
    def describe(self): return {"answer": "description", "protocol": 4, "worker": "generic", "device": "host"}
    def build(self, case, parameters, **more):
        spec = importlib.util.spec_from_file_location("kernels", sys.argv[1])
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.function, self.outputs = getattr(module, sys.argv[2]), case["outputs"]
        self.names = [leaf["tensor"] for leaf in case["sizes"]["results"]["tuple"]]
        return {"answer": "built", "resources": {}}
    def load(self, inputs, copies):
        self.copies = [read(inputs[i % len(inputs)]) for i in range(copies)]
        return {"answer": "loaded", "bytes": sum(t.nbytes for copy in self.copies for t in copy.values())}
    def prepare(self): return {"answer": "prepared", "bytes": 0}
    def compute(self, copy, poison=255):
        kinds = {"f32": np.float32, "i64": np.int64}
        outputs = {o["name"]: np.full(o["shape"], 0, kinds[o["data_type"]]) for o in self.outputs}
        for tensor in outputs.values(): tensor.view(np.uint8)[...] = poison
        start = time.perf_counter()
        results = self.function(**self.copies[copy % len(self.copies)])
        sample = {"call": time.perf_counter() - start}
        for name, result in zip(self.names, results): outputs[name][:len(result)] = result
        self.results.append(outputs)
        return sample
    def run(self, copy, poison=255):
        self.results = []
        return {"answer": "ran", **self.compute(copy, poison)}
    def time(self, copies, phases):
        self.results = []
        return {"answer": "timed", "samples": [self.compute(copy) for copy in copies]}
    def output(self, path, index=0):
        write(path, self.results[index])
        return {"answer": "written", "bytes": 0}
worker, call = Worker(), None
while call != "stop" and (line := sys.stdin.readline()):
    request = json.loads(line)
    number, call = request.pop("id"), request.pop("call")
    try: answer = {"answer": "stopped"} if call == "stop" else getattr(worker, call)(**request)
    except Exception as error: answer = {"error": {"kind": "refused" if call == "build" else "broken", "message": repr(error)}}
    print(json.dumps({"id": number, **answer}), flush=True)
"#;

/// A folder with the task, the kernels and the worker; none without numpy.
fn place() -> Option<Place> {
    if !has_numpy() {
        return None;
    }
    let place = Place::new();
    place.write("largest.py", TASK);
    place.write("kernels.py", KERNELS);
    place.write("worker.py", WORKER);
    Some(place)
}

/// A function of the kernels behind the worker.
fn behind_worker(place: &Place, function: &str) -> String {
    let python = interpreter().unwrap();
    let path = |file| place.path(file).display().to_string();
    format!(
        "command: {python} {} {} {function}",
        path("worker.py"),
        path("kernels.py")
    )
}

/// Compares two functions behind the worker.
fn compare(place: &Place, functions: [&str; 2]) -> Ran {
    let [baseline, candidate] = functions.map(|function| behind_worker(place, function));
    compare_kernels(place, [&baseline, &candidate])
}

fn compare_kernels(place: &Place, [baseline, candidate]: [&str; 2]) -> Ran {
    // The first pair is measured whatever the time.
    let task = ["--task", "largest.py", "--budget", "1ms", "--warm"];
    let arguments = [&["compare", baseline, candidate][..], &task].concat();
    place.run(&arguments)
}

#[test]
fn two_workers_are_compared_on_a_task_in_one_file() {
    let Some(place) = place() else { return };
    let ran = compare(&place, ["slow", "fast"]);
    assert!(matches!(ran.code, Some(0 | 4)), "{}", ran.err);
    assert!(ran.out.contains("wide"), "{}", ran.out);
}

#[test]
fn a_wrong_result_and_one_that_is_not_written_stop_a_kernel() {
    let Some(place) = place() else { return };
    let ran = compare(&place, ["fast", "wrong"]);
    assert!(
        ran.out.contains("candidate: incorrect"),
        "{} {}",
        ran.out,
        ran.err
    );
    assert!(
        ran.out.contains("outside the tolerance") || ran.out.contains("NRMSE"),
        "{}",
        ran.out
    );
    // The expected result is the one poison, which a single run would take for a result.
    place.write("largest.py", &TASK.replace("x.argmax(1)", "np.full(len(x), -1)"));
    let ran = compare(&place, ["unwritten", "unwritten"]);
    assert!(
        ran.out.contains("3 elements of `place` were never written"),
        "{} {}",
        ran.out,
        ran.err
    );
}

#[test]
fn a_kernel_that_keeps_the_coordinator_from_its_memory_is_incorrect() {
    let holds = |safeguard: &Safeguard| safeguard.what.contains("held between requests");
    let held = safeguards().into_iter().find(holds).unwrap();
    if matches!(held.standing, Standing::Missing(_)) {
        eprintln!("a test was left out: this system lets no program reach the memory of its children");
        return;
    }
    let Some(place) = place() else { return };
    // Nothing is mapped at the address that the worker names, while the rival's memory can be reached.
    let out_of_reach = WORKER.replace(r#""device": "host"}"#, r#""device": "host", "memory": 8}"#);
    assert_ne!(out_of_reach, WORKER);
    place.write("worker.py", &out_of_reach);
    let candidate = behind_worker(&place, "fast");
    let ran = compare_kernels(&place, ["kernels.py:fast", &candidate]);
    let said = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("candidate: incorrect"), "{said} {}", ran.err);
    assert!(said.contains("cannot reach the memory of its process"), "{said}");
}

#[test]
fn a_load_before_calls_of_held_workers_runs_calls_for_most_of_its_time() {
    let Some(place) = place() else { return };
    // The first pair is measured whatever the time, and one is enough here.
    let kernels = ["compare", "kernels.py:slow", "kernels.py:fast"];
    let options = [
        "--task",
        "largest.py",
        "--budget",
        "1s",
        "--json",
        "out.json",
        "--regime",
        "sustained",
    ];
    let ran = place.run(&[&kernels[..], &options].concat());
    let text = std::fs::read_to_string(place.path("out.json"));
    let text = text.unwrap_or_else(|error| panic!("{error}: {} {}", ran.out, ran.err));
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    let comparison = &result["comparison"];
    let heated = &comparison["conduct"]["heating"]["cases"][0];
    for side in ["baseline", "candidate"] {
        // By the worker's report of its calls, which a busy machine makes longer but not fewer than that.
        let share = heated[side]["share"].as_f64();
        assert!(share.is_some_and(|share| share > 0.5 && share <= 1.0), "{heated}");
    }
    // Twelve slots of half a second or more.
    let heating = comparison["spent"]["heating"].as_f64();
    assert!(heating.is_some_and(|seconds| seconds >= 6.0), "{result}");
}

#[test]
fn a_task_may_let_results_differ_from_call_to_call() {
    let Some(place) = place() else { return };
    let sums = r#"
cases = [{"rows": 8, "cols": 64}]
def generate(rows, cols, seed):
    import numpy as np
    return {"x": np.random.default_rng(seed).random((rows, cols), dtype=np.float32)}
def reference(x): return x.sum(1)
"#;
    // Each call adds in another order, as atomic additions do, and strays by one unit in the last place.
    place.write(
        "kernels.py",
        "import itertools\nimport numpy as np\ncalls = itertools.count()\n\
         def plain(x): return x.sum(1)\n\
         def atomic(x): return np.nextafter(x.sum(1), np.float32(9e9 * (next(calls) % 2)))\n",
    );
    let judged = |task: &str| {
        place.write("sums.py", task);
        let kernels = ["kernels.py:atomic", "--baseline", "kernels.py:plain"];
        let arguments = ["--task", "sums.py", "--budget", "1ms", "--warm"];
        place.run(&[&["judge"], &kernels[..], &arguments[..]].concat())
    };
    let ran = judged(sums).expect(1);
    assert!(ran.out.contains("racy: two runs"), "{} {}", ran.out, ran.err);
    let ran = judged(&format!("{sums}deterministic = False\n"));
    let said = ran.folded();
    assert!(said.contains("lets results differ from call to call"), "{said}");
}

#[test]
fn a_task_s_cases_are_listed() {
    let Some(place) = place() else { return };
    let ran = place.run(&["suites", "largest.py"]).expect(0);
    assert!(ran.out.contains("Positions of the largest values"), "{}", ran.out);
    assert!(ran.out.contains("rows=64, cols=4000"), "{}", ran.out);
}

#[test]
fn an_error_of_the_task_is_bad_input_with_its_place() {
    let Some(place) = place() else { return };
    place.write("largest.py", &TASK.replace("x.argmax(1)", "x.argmax(7)"));
    let ran = compare(&place, ["slow", "fast"]);
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    let said = ran.folded();
    assert!(
        said.contains("largest.py:8: AxisError in the reference"),
        "{said}"
    );
    assert!(said.contains("help:"), "{said}");
}

#[test]
fn a_task_has_no_built_in_kernel() {
    let Some(place) = place() else { return };
    let ran = compare_kernels(&place, ["builtin", "builtin"]);
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    let said = ran.folded();
    assert!(said.contains("the task largest has no built-in kernel"), "{said}");
}
