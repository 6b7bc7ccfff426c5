//! What a device does in calls, as a worker in the place of one on a GPU tells it.
//!
//! The judge runs in this process and adopts orphans, as every program does that starts workers. So the tests have a program of
//! their own: orphans of other tests' commands would wait here for ever.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "end_to_end/common/interpreter.rs"]
mod interpreter;

use std::path::Path;
use std::time::Duration;

use gauntlet_device::Device;
use gauntlet_judge::instruments::Instruments;
use gauntlet_judge::{
    Blind, Candidate, Comparison, DeviceActivity, ExaminationFailure, Measurement, Setting, Workshop, measure,
};
use gauntlet_parameters::Parameters;
use gauntlet_stats::Criteria;
use gauntlet_task::{InputKind, Suite};
use gauntlet_worker::{Limits, Timeouts, WorkerCommand, WorkerProcess};

use interpreter::{has_numpy, interpreter};

const ONE_CASE: &str =
    "[[benchmark]]\nname = \"two\"\ngrouped-gemm = { groups = [{ m = 8, n = 96, k = 256 }] }\n";

/// A worker that lets the built-in one compute, and tells the activity of a device that it does not have. With `refuses` it says
/// that it cannot, and with `wrong` its results are wrong as soon as it traces.
const SCRIPT: &str = r#"
import json, shutil, subprocess, sys
program, manner = sys.argv[1:]
worker = subprocess.Popen([program, "worker", "cpu"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def ask(request):
    worker.stdin.write(json.dumps(request) + "\n")
    worker.stdin.flush()
    return json.loads(worker.stdout.readline())
def work(kind, start, end, stream, name=""):
    return {"work": kind, "start": start, "end": end, "stream": stream, "name": name}
traced, path = False, None
for line in iter(sys.stdin.readline, ""):
    request = json.loads(line)
    if request["call"] == "activity" and manner == "refuses":
        reply = {"id": request["id"], "error": {"kind": "refused", "message": "CUPTI (libcupti.so) is not found"}}
    elif request["call"] == "activity":
        traced = True
        ask({"id": request["id"], "call": "time", "copies": request["copies"], "phases": False})
        calls = [{"window": 20000 + number, "activities": [
            work("copy", -9000, -4000, 13), work("kernel", 1000, 9000, 7, "first"), work("kernel", 9500, 12000, 7, "second"),
        ]} for number, _ in enumerate(request["copies"])]
        reply = {"id": request["id"], "answer": "recorded", "calls": calls}
    else:
        reply = ask(request)
    if request["call"] == "describe":
        reply.pop("memory", None)
        reply["activity"] = True
    if request["call"] == "output" and traced and manner == "wrong":
        bytes_ = bytearray(open(request["path"], "rb").read())
        bytes_[-400:] = bytes([64] * 400)
        open(request["path"], "wb").write(bytes_)
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
"#;

/// A pair of the built-in worker and the script, as if both computed on a GPU.
fn compared(manner: &str) -> Result<Comparison, ExaminationFailure> {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("worker.py");
    std::fs::write(&script, SCRIPT).unwrap();
    let suite = Suite::parse(ONE_CASE, Path::new("suite.toml"), gauntlet_families::TASKS).unwrap();
    let measurement = Measurement {
        warm: true,
        blocks: 1,
        activity: true,
        ..Measurement::default()
    };
    let device = Device::host();
    let setting = Setting::new(device, &suite, measurement, Criteria::default());
    let program = env!("CARGO_BIN_EXE_gauntlet");
    let command = WorkerCommand::new(program, ["worker".into(), "cpu".into()]);
    let workshop = Workshop::new(command, Timeouts::default(), Limits::default())
        .unwrap()
        .with_instruments(Instruments::default());
    let baseline = Candidate::new("baseline", Parameters::new());
    let words = [
        "/usr/bin/env".into(),
        "python3".into(),
        script,
        program.into(),
        manner.into(),
    ];
    let candidate = Candidate {
        command: Some(words.into()),
        ..Candidate::new("candidate", Parameters::new())
    };
    measure(&workshop, &setting, &baseline, &candidate, Duration::ZERO, &Blind)
}

fn activity(comparison: Comparison) -> DeviceActivity {
    comparison.conduct.unwrap().device_activity.unwrap()
}

#[test]
fn both_sides_are_traced_after_the_timed_calls_where_their_workers_can() {
    let found = activity(compared("traces").unwrap());
    assert_eq!(
        found.baseline.untraced.as_deref(),
        Some("its worker does not trace the device")
    );
    assert_eq!(found.candidate.untraced, None);
    let [case] = found.candidate.cases.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(
        (case.case.as_str(), case.calls, case.kernels, case.copies),
        ("two", 3, 2.0, 1.0)
    );
    let nanoseconds =
        [case.busy, case.span, case.window, case.before, case.after].map(|time| (time * 1e9).round());
    assert_eq!(nanoseconds, [15_500.0, 21_000.0, 20_001.0, 5_000.0, 0.0]);
    let longest: Vec<_> = case
        .longest
        .iter()
        .map(|one| (one.name.as_str(), one.launches))
        .collect();
    assert_eq!(longest, [("first", 3), ("second", 3)]);
}

#[test]
fn a_worker_that_cannot_trace_says_why() {
    let found = activity(compared("refuses").unwrap());
    assert!(found.candidate.cases.is_empty());
    let why = found.candidate.untraced.unwrap();
    assert!(why.contains("CUPTI (libcupti.so) is not found"), "{why}");
}

#[test]
fn results_of_traced_calls_have_to_be_right() {
    match compared("wrong") {
        Err(ExaminationFailure::Wrong(reason)) => {
            assert!(reason.contains("two, in calls that were traced: "), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

/// The host of a function on arrays of numpy refuses, and goes on.
#[test]
fn a_function_on_the_host_has_no_device_to_trace() {
    if !has_numpy() {
        return;
    }
    // A worker reads nothing in the folder of the workers' folders but its own.
    let (folder, workers) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let kernel = folder.path().join("kernel.py");
    std::fs::write(&kernel, "def f(x, weight):\n    return x * weight\n").unwrap();
    let suite = "[[benchmark]]\nname = \"tiny\"\nrms-norm = { rows = 2, columns = 8 }\n";
    let suite = Suite::parse(suite, Path::new("suite.toml"), gauntlet_families::TASKS).unwrap();
    let sizes = &suite.benchmark[0].sizes;
    let python = format!("GAUNTLET_PYTHON={}", interpreter().unwrap());
    let text = format!("{}:f", kernel.display());
    let program = env!("CARGO_BIN_EXE_gauntlet");
    let words = [&python, program, "worker", "python", &text, "--tensors", "cpu"];
    let command = WorkerCommand::new("/usr/bin/env", words.map(Into::into));
    let (mut worker, description) =
        WorkerProcess::start(&command, workers.path(), Timeouts::default()).unwrap();
    assert!(!description.activity);
    worker.build(sizes, &Parameters::new()).unwrap();
    let file = worker.folder().join("inputs");
    sizes.generate(InputKind::Wide, 7).unwrap().save(&file).unwrap();
    worker.load(&[&file], 1).unwrap();
    let refused = worker.activity(&[0]).unwrap_err().to_string();
    assert!(refused.contains("there is no device to trace"), "{refused}");
    assert!(worker.run(0).unwrap().call > 0.0);
}
