//! Held workers that compute on a device of their own: operands and results go through their memory on the host.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use common::workers_folder;
use gauntlet_formats::{DataType, Tensor, TensorSpec};
use gauntlet_worker::protocol::VERSION;
use gauntlet_worker::{Call, Limits, Operand, Timeouts, WorkerCommand, WorkerError, WorkerProcess};

/// A worker whose device is a byte string. Its kernel adds 1 to each of four bytes. After each call it fills the memory
/// from which it takes operands with 100, so a set that is not written again shows.
const SCRIPT: &str = r#"
import ctypes, json, sys
probe = ctypes.create_string_buffer(b"gauntlet")
operand, result = ctypes.create_string_buffer(4), ctypes.create_string_buffer(4)
place = lambda buffer: [ctypes.addressof(buffer)]
tell = lambda line: (sys.stdout.write(json.dumps(line) + "\n"), sys.stdout.flush())
for line in iter(sys.stdin.readline, ""):
    request = json.loads(line)
    reply = {"id": request["id"]}
    if request["call"] == "describe":
        tell({**reply, "answer": "description", "protocol": PROTOCOL, "worker": "python", "device": "cuda",
              "details": {}, "memory": place(probe)[0]})
    elif request["call"] == "load":
        tell({**reply, "answer": "loaded", "bytes": 4})
    elif request["call"] == "step":
        for number, _ in enumerate(request["copies"]):
            tell({"inputs": {"x": place(operand)}})
            sys.stdin.readline()
            on_device = operand.raw
            operand.raw = bytes([100] * 4)
            if PLACES(number):
                tell({"placed": 1e-9})
                sys.stdin.readline()
            computed = bytes(byte + 1 for byte in on_device)
            if PLACES(number):
                tell({"over": 1e-9})
            result.raw = computed
            tell({"call": 1e-9, "outputs": [place(result)]})
            sys.stdin.readline()
        tell({**reply, "answer": "stepped"})
"#;

/// Starts the worker and lets it load; `places` is an expression of the number of a call: whether it says that operands
/// are on the device.
fn loaded(places: &str) -> WorkerProcess {
    let script = SCRIPT
        .replace("PROTOCOL", &VERSION.to_string())
        .replace("PLACES", &format!("(lambda number: {places})"));
    let command = WorkerCommand::new("/usr/bin/env", ["python3".into(), "-c".into(), script.into()]);
    let timeouts = Timeouts::default().longer(10);
    let (mut worker, _) =
        WorkerProcess::start_within(&command, workers_folder(), timeouts, Limits::default()).unwrap();
    worker.load(&["/dev/null".as_ref()], 1).unwrap();
    worker
}

fn set(value: u8) -> Vec<Operand> {
    let tensor = Tensor::filled(TensorSpec::new("x", DataType::U8, [4]), value);
    vec![Operand {
        tensor,
        strides: Vec::new(),
    }]
}

fn stepped(worker: &mut WorkerProcess, sets: &[usize]) -> Result<(Vec<u8>, usize), WorkerError> {
    let operands = [set(10), set(20)];
    let call = |set: &usize| Call {
        copy: 0,
        set: *set,
        operands: &operands[*set],
        is_drawn: true,
    };
    let calls: Vec<Call> = sets.iter().map(call).collect();
    let outputs = [TensorSpec::new("y", DataType::U8, [4])];
    let stepped = worker.step(&calls, &outputs, 255)?;
    assert_eq!(stepped.seen.len(), sets.len());
    let results = stepped.results.iter().map(|tensors| tensors[0].bytes[3]);
    Ok((results.collect(), stepped.moving.len()))
}

#[test]
fn operands_reach_a_device_and_the_same_set_is_written_once() {
    let mut worker = loaded("True");
    if !worker.is_held() {
        println!("skipped: this system does not let a program reach another's memory");
        return;
    }
    // 101 where the worker's own values were not written over.
    let (results, moved) = stepped(&mut worker, &[0, 1, 1, 0]).unwrap();
    assert_eq!((results, moved), (vec![11, 21, 101, 11], 4));
    // Nothing of that set is on the way after another load.
    worker.load(&["/dev/null".as_ref()], 1).unwrap();
    assert_eq!(stepped(&mut worker, &[0]).unwrap(), (vec![11], 1));
}

#[test]
fn a_worker_without_a_device_gets_each_set_again() {
    let mut worker = loaded("False");
    if worker.is_held() {
        assert_eq!(stepped(&mut worker, &[1, 1, 0]).unwrap(), (vec![21, 21, 11], 0));
    }
}

#[test]
fn tensors_lie_on_a_device_in_all_calls_or_in_none() {
    for places in ["number == 0", "number == 1"] {
        let mut worker = loaded(places);
        if worker.is_held() {
            let error = stepped(&mut worker, &[0, 1]).unwrap_err();
            assert!(matches!(error, WorkerError::Garbage { .. }), "{error}");
            assert!(error.to_string().contains("turn"), "{error}");
        }
    }
}
