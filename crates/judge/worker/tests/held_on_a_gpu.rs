//! Held workers that compute on a device of their own: operands and results go through their memory on the host.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use common::workers_folder;
use gauntlet_tensors::{DataType, Tensor, TensorSpec};
use gauntlet_worker::protocol::{Scope, VERSION};
use gauntlet_worker::{
    Call, Heat, Limits, Operand, Stepped, Timeouts, WorkerCommand, WorkerError, WorkerProcess,
};

/// A worker whose device is a byte string. A load makes three calls, and lasts as long as it is asked for, or less if SHORT. Its
/// kernel adds 1 to each of four bytes, or 2 where whole calls are clocked. Its host says that it takes 2 ms for a call. After each call
/// it fills the memory from which it takes operands with 100, so a set that is not written again shows. If EARLY, it says that a call is over before it has the operands; if LATE, before it has written
/// the result, in a line that takes long to parse.
const SCRIPT: &str = r#"
import ctypes, json, sys, time
probe = ctypes.create_string_buffer(b"gauntlet")
operand, result = ctypes.create_string_buffer(4), ctypes.create_string_buffer(4)
place = lambda buffer: [ctypes.addressof(buffer)]
tell = lambda *lines: (sys.stdout.write("".join(json.dumps(line) + "\n" for line in lines)), sys.stdout.flush())
def opened(sealed, key):
    # The block 0 of Philox4x32-10, which is longer than the operand.
    tensor = place(operand)[0]
    c, k, low = [0, tensor & 0xFFFFFFFF, tensor >> 32, 0], [key & 0xFFFFFFFF, key >> 32], 0xFFFFFFFF
    for _ in range(10):
        one, other = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [other >> 32 ^ c[1] ^ k[0], other & low, one >> 32 ^ c[3] ^ k[1], one & low]
        k = [k[0] + 0x9E3779B9 & low, k[1] + 0xBB67AE85 & low]
    return bytes(byte ^ number for byte, number in zip(sealed, c[0].to_bytes(4, "little")))
def load(seconds):
    tell({"heating": seconds})
    time.sleep(0 if SHORT else seconds)
    tell({"heated": 3, "busy": seconds / 2})
for line in iter(sys.stdin.readline, ""):
    request = json.loads(line)
    reply = {"id": request["id"]}
    if request["call"] == "describe":
        tell({**reply, "answer": "description", "protocol": PROTOCOL, "worker": "python", "device": "cuda",
              "details": {}, "memory": place(probe)[0], "heat": True, "device_times": True})
    elif request["call"] == "load":
        tell({**reply, "answer": "loaded", "bytes": 4})
    elif request["call"] == "step":
        heat = request.get("heat")
        for number, _ in enumerate(request["copies"]):
            is_late = heat is not None and PLACES(number)
            if heat and not is_late:
                load(heat[number])
            ready = {"inputs": {"x": place(operand)}, **({"sealed": True} if is_late else {})}
            # Both lines at once, so that the second is never late on a busy machine.
            tell(ready, *([{"call": 1e-9, "outputs": [place(result)]}] if EARLY else []))
            sys.stdin.readline()
            on_device = operand.raw
            if is_late:
                load(heat[number])
                on_device = opened(on_device, int(sys.stdin.readline(), 16))
            operand.raw = bytes([100] * 4)
            if PLACES(number):
                tell({"placed": 1e-9})
                sys.stdin.readline()
            added = {"device": 1, None: 2}[request.get("scope")]
            computed = bytes(byte + added for byte in on_device)
            if PLACES(number):
                tell({"over": 1e-9, "host": 0.002})
            if LATE:
                tell({"call": 1e-9, "outputs": [place(result)], "more": [0] * 3_000_000})
                time.sleep(0.02)
            result.raw = computed
            if not LATE:
                tell({"call": 1e-9, "outputs": [place(result)]})
            sys.stdin.readline()
        tell({**reply, "answer": "stepped"})
"#;

/// What a worker does that it must not.
#[derive(PartialEq)]
enum Cheat {
    None,
    ShortLoads,
    EarlyEnd,
    LateResult,
}

/// Starts the worker and lets it load; `places` is an expression of the number of a call: whether it says that operands
/// are on the device.
fn loaded(places: &str) -> WorkerProcess {
    started(places, Cheat::None)
}

fn started(places: &str, cheat: Cheat) -> WorkerProcess {
    let truth = |one: Cheat| if cheat == one { "True" } else { "False" };
    let script = SCRIPT
        .replace("PROTOCOL", &VERSION.to_string())
        .replace("SHORT", truth(Cheat::ShortLoads))
        .replace("EARLY", truth(Cheat::EarlyEnd))
        .replace("LATE", truth(Cheat::LateResult))
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
    let stepped = heated(worker, sets, None)?;
    assert!(stepped.loads.is_empty());
    Ok((results(&stepped), stepped.moving.len()))
}

fn results(stepped: &Stepped) -> Vec<u8> {
    stepped
        .results
        .iter()
        .map(|tensors| tensors[0].bytes[3])
        .collect()
}

fn heated(worker: &mut WorkerProcess, sets: &[usize], heat: Option<Heat>) -> Result<Stepped, WorkerError> {
    let operands = [set(10), set(20)];
    let call = |set: &usize| Call {
        copy: 0,
        set: *set,
        operands: &operands[*set],
        is_drawn: true,
        heat,
    };
    let calls: Vec<Call> = sets.iter().map(call).collect();
    let outputs = [TensorSpec::new("y", DataType::U8, [4])];
    let stepped = worker.step(&calls, &outputs, 255)?;
    assert_eq!(stepped.seen.len(), sets.len());
    Ok(stepped)
}

const HEAT: Heat = Heat {
    seconds: 0.05,
    key: 0x0123_4567_89AB_CDEF,
};

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
fn a_worker_that_can_clocks_the_device_until_it_is_to_clock_whole_calls() {
    let mut worker = loaded("True");
    if worker.is_held() {
        assert!(worker.has_device_times());
        assert_eq!(stepped(&mut worker, &[0]).unwrap().0, [11]);
        worker.clock(Scope::Call);
        assert_eq!(stepped(&mut worker, &[1]).unwrap().0, [22]);
    }
}

#[test]
fn a_longer_hold_is_taken_off_the_clock() {
    let mut worker = loaded("True");
    if !worker.is_held() {
        return;
    }
    let usual = heated(&mut worker, &[0, 1], None).unwrap();
    assert_eq!(
        (usual.host, usual.late),
        (2e-3, 2),
        "2 ms do not fit into the usual hold"
    );
    // This worker does not wait for it, which shows.
    worker.hold_back_for(1000.0);
    let longer = heated(&mut worker, &[0, 1], None).unwrap();
    assert_eq!((longer.host, longer.late), (2e-3, 0));
    assert!(longer.seen.iter().all(|seen| *seen < 0.0), "{:?}", longer.seen);
    worker.clock(Scope::Call);
    let whole = heated(&mut worker, &[0], None).unwrap();
    assert_eq!((whole.host, whole.late), (0.0, 0));
    assert!(
        whole.seen[0] > 0.0,
        "there is no hold before a whole call: {:?}",
        whole.seen
    );
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
            assert!(error.to_string().contains("out of order"), "{error}");
        }
    }
}

#[test]
fn a_load_comes_before_each_call_and_is_no_part_of_it() {
    for (places, moved) in [("True", 4), ("False", 0)] {
        let mut worker = loaded(places);
        if !worker.is_held() {
            continue;
        }
        assert!(worker.heats());
        let stepped = heated(&mut worker, &[0, 1, 1, 0], Some(HEAT)).unwrap();
        // Each set was written again, since what lay there was sealed, and was opened by its key.
        assert_eq!(results(&stepped), [11, 21, 21, 11], "{places}");
        assert_eq!((stepped.loads.len(), stepped.moving.len()), (4, moved));
        for load in &stepped.loads {
            assert!(load.seconds >= 0.95 * HEAT.seconds, "{load:?}");
            assert_eq!((load.calls, load.busy), (3, HEAT.seconds / 2.0));
            // It sleeps in its loads.
            assert!(load.active.is_none_or(|active| active < load.seconds), "{load:?}");
        }
        // What was sealed is not taken for plain operands afterwards.
        let plain = heated(&mut worker, &[0], None).unwrap();
        assert_eq!((results(&plain), plain.loads.len()), (vec![11], 0));
    }
}

#[test]
fn a_load_that_ends_too_early_is_an_error() {
    for places in ["True", "False"] {
        let mut worker = started(places, Cheat::ShortLoads);
        if worker.is_held() {
            let heat = Heat {
                seconds: 30.0,
                ..HEAT
            };
            let error = heated(&mut worker, &[0], Some(heat)).unwrap_err();
            assert!(matches!(error, WorkerError::Garbage { .. }), "{error}");
            assert!(error.to_string().contains("and not for 30.0000 s"), "{error}");
        }
    }
}

#[test]
fn a_call_that_is_said_to_be_over_before_its_operands_are_there_is_an_error() {
    let mut worker = started("False", Cheat::EarlyEnd);
    if worker.is_held() {
        let error = stepped(&mut worker, &[0, 1]).unwrap_err();
        assert!(matches!(error, WorkerError::Garbage { .. }), "{error}");
        assert!(
            error.to_string().contains("it came before it was asked for"),
            "{error}"
        );
    }
}

#[test]
fn a_result_is_not_finished_while_the_last_line_is_parsed() {
    let mut worker = started("False", Cheat::LateResult);
    if worker.is_held() {
        // Nothing is known of a worker in its first call. A busy machine may stop it late now and then.
        let (results, _) = stepped(&mut worker, &[0, 1, 0, 1, 0, 1]).unwrap();
        assert!(results[1..] != [21, 11, 21, 11, 21], "{results:?}");
    }
}

#[test]
fn a_worker_that_dies_while_its_memory_is_used_is_said_to_have_died() {
    let mut worker = loaded("False");
    if worker.is_held() {
        let process = nix::unistd::Pid::from_raw(i32::try_from(worker.id()).unwrap());
        nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL).unwrap();
        let error = stepped(&mut worker, &[0]).unwrap_err();
        assert!(matches!(error, WorkerError::Died { .. }), "{error}");
    }
}
