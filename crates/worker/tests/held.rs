//! Workers that the coordinator holds: this program is the coordinator, and with an argument one of its workers.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, Read, Write};
    use std::os::fd::AsFd;
    use std::path::Path;
    use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
    use std::time::{Duration, Instant};
    use std::{mem, ptr};

    use gauntlet_formats::{DataType, Tensor, TensorSpec};
    use gauntlet_worker::protocol::VERSION;
    use gauntlet_worker::{
        Call, Limits, Stepped, Timeouts, Turns, WorkerCommand, WorkerError, WorkerProcess, probe,
    };
    use nix::libc;
    use nix::poll::{PollFd, PollFlags, poll};
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};

    const BYTES: usize = 4096;

    /// Far more than a stop takes.
    const LONG: Duration = Duration::from_millis(5);

    static INPUT: [AtomicU8; BYTES] = [const { AtomicU8::new(0) }; BYTES];
    static OUTPUT: [AtomicU8; BYTES] = [const { AtomicU8::new(0) }; BYTES];

    fn address(place: &'static [AtomicU8]) -> i64 {
        place.as_ptr().expose_provenance() as i64
    }

    /// What the kernel of these tests computes.
    fn compute(range: std::ops::Range<usize>) {
        for (to, from) in OUTPUT[range.clone()].iter().zip(&INPUT[range]) {
            to.store(from.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    fn line() -> Option<String> {
        // Byte by byte, since the turns read from the same pipe.
        let mut line = Vec::new();
        let mut byte = [0];
        let mut input = io::stdin();
        while input.read(&mut byte).ok()? == 1 && byte != *b"\n" {
            line.push(byte[0]);
        }
        String::from_utf8(line).ok().filter(|line| !line.is_empty())
    }

    /// Serves as a worker of this kind until the coordinator is gone.
    pub fn serve(kind: &str) {
        let say = |line: String| println!("{line}");
        while let Some(line) = line() {
            let request: serde_json::Value = serde_json::from_str(&line).unwrap();
            let id = &request["id"];
            match request["call"].as_str().unwrap() {
                "describe" => say(format!(
                    r#"{{"id":{id},"answer":"description","protocol":{VERSION},"worker":"test","device":"host","memory":{}}}"#,
                    probe()
                )),
                "load" => say(format!(r#"{{"id":{id},"answer":"loaded","bytes":{BYTES}}}"#)),
                "step" => {
                    for _ in request["copies"].as_array().unwrap() {
                        step(kind);
                    }
                    say(format!(r#"{{"id":{id},"answer":"stepped"}}"#));
                }
                other => unreachable!("{other}"),
            }
        }
    }

    fn step(kind: &str) {
        // SAFETY: both stay open until the end of this process.
        let mut turns = unsafe { Turns::on(0, 1) };
        OUTPUT.iter().for_each(|byte| byte.store(0, Ordering::Relaxed));
        let begun = Instant::now();
        let ready = format!(r#"{{"inputs":{{"x":[{}]}}}}"#, address(&INPUT));
        turns.ready(ready.as_bytes()).unwrap();
        let stopped = begun.elapsed().as_secs_f64();
        let places = [vec![address(&OUTPUT)]];
        match kind {
            "wakes" => {
                compute(0..BYTES / 2);
                wake_again_and_again();
                println!(r#"{{"call":1e-3,"outputs":{places:?}}}"#);
                run_on_when_stopped();
                wake_no_more();
                io::stdin().read_exact(&mut [0]).unwrap();
            }
            _ => {
                compute(0..BYTES);
                turns.done(stopped, &places).unwrap();
            }
        }
    }

    fn spin() {
        let begun = Instant::now();
        while begun.elapsed() < LONG {}
    }

    extern "C" fn nothing(_: libc::c_int) {}

    /// Has the system continue this process again and again, so soon that it wakes while the coordinator still looks whether it
    /// has stopped.
    fn wake_again_and_again() {
        let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::SA_RESTART, SigSet::empty());
        // SAFETY: the handler does nothing. Zeros are valid for both structures, which outlive the calls that read them.
        unsafe {
            // Without a handler the system forgets a timer whose signal comes while nothing is stopped.
            sigaction(Signal::SIGCONT, &action).unwrap();
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_SIGNAL;
            event.sigev_signo = libc::SIGCONT;
            let mut timer = ptr::null_mut();
            assert_eq!(
                libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer),
                0
            );
            TIMER.store(timer, Ordering::Relaxed);
        }
        wake_every(Duration::from_micros(20));
    }

    /// Sets the timer anew: the system forgets it too where a stop discards its signal.
    fn wake_every(pause: Duration) {
        // SAFETY: zeros are valid for the times, which outlive the call, and the timer exists.
        unsafe {
            let mut times: libc::itimerspec = mem::zeroed();
            times.it_value.tv_nsec = pause.subsec_nanos().into();
            times.it_interval = times.it_value;
            let timer = TIMER.load(Ordering::Relaxed);
            assert_eq!(
                libc::timer_settime(timer, 0, &raw const times, ptr::null_mut()),
                0
            );
        }
    }

    static TIMER: AtomicPtr<libc::c_void> = AtomicPtr::new(ptr::null_mut());

    fn wake_no_more() {
        // SAFETY: the timer was made before, and is not used again.
        unsafe { libc::timer_delete(TIMER.load(Ordering::Relaxed)) };
    }

    /// Computes the other half of the call if the coordinator does not let this process go on at once.
    fn run_on_when_stopped() {
        let input = io::stdin();
        let mut events = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        let begun = Instant::now();
        while poll(&mut events, 1_u8) != Ok(1) {
            if begun.elapsed() > Duration::from_micros(300) {
                spin();
                compute(BYTES / 2..BYTES);
                wake_every(LONG);
                raise(Signal::SIGSTOP).unwrap();
            }
        }
    }

    fn started(kind: &str) -> WorkerProcess {
        let program = std::env::current_exe().unwrap();
        let command = WorkerCommand::new(program.to_str().unwrap(), ["worker".into(), kind.into()]);
        let timeouts = Timeouts::default().longer(10);
        let folder = super::common::workers_folder();
        let started = WorkerProcess::start_within(&command, folder, timeouts, Limits::default());
        let (mut worker, _) = started.unwrap();
        if worker.is_held() {
            worker.load(&[Path::new("operands")], 1).unwrap();
        }
        worker
    }

    fn stepped(worker: &mut WorkerProcess, drawn: &[bool]) -> Result<Stepped, WorkerError> {
        let operands = [Tensor {
            spec: TensorSpec::new("x", DataType::U8, [BYTES]),
            bytes: vec![7; BYTES],
        }];
        let call = |is_drawn: &bool| Call {
            copy: 0,
            operands: &operands,
            is_drawn: *is_drawn,
        };
        let calls: Vec<Call> = drawn.iter().map(call).collect();
        worker.step(&calls, &[TensorSpec::new("y", DataType::U8, [BYTES])], 255)
    }

    /// The coordinator's side.
    pub fn test() {
        if !started("honest").is_held() {
            return println!("skipped: this system does not let the coordinator reach its workers' memory");
        }
        let tests: [(&str, fn()); 2] = [
            ("a_drawn_call_is_prepared_like_any_other", alike),
            ("no_process_runs_on_after_the_word_that_a_call_is_over", over),
        ];
        for (name, test) in tests {
            print!("test {name} ... ");
            io::stdout().flush().unwrap();
            test();
            println!("ok");
        }
    }

    /// The worker reports how long it is stopped before each call.
    fn alike() {
        let mut worker = started("honest");
        let drawn: Vec<bool> = (0..200).map(|call| call % 5 == 2).collect();
        let stepped = stepped(&mut worker, &drawn).unwrap();
        assert_eq!(stepped.results.len(), 40);
        assert!(
            stepped
                .results
                .iter()
                .flatten()
                .all(|result| result.bytes == [8; BYTES])
        );
        let median = |wanted: bool| {
            let chosen = stepped
                .samples
                .iter()
                .zip(&drawn)
                .filter(|(_, drawn)| **drawn == wanted);
            let mut times: Vec<f64> = chosen.map(|(sample, _)| sample.call).collect();
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        };
        let (drawn, others) = (median(true), median(false));
        assert!(
            drawn < 1.5 * others,
            "{drawn} s before drawn calls, {others} s before others"
        );
    }

    fn over() {
        let mut worker = started("wakes");
        let results: Vec<Stepped> = (0..50)
            .map_while(|_| stepped(&mut worker, &[true]).ok())
            .collect();
        // What the worker computes until a busy coordinator hears its word is part of the call.
        let is_finished_late = |stepped: &&Stepped| {
            stepped.results[0][0].bytes == [8; BYTES] && stepped.seen[0] < LONG.as_secs_f64()
        };
        let late = results.iter().filter(is_finished_late).count();
        // Those that are not are wrong: it does not know which calls are drawn.
        let most = results.len().div_ceil(4).max(1);
        assert!(
            late <= most,
            "{late} of {} results were finished after the stop",
            results.len()
        );
        let mut worker = started("honest");
        for _ in 0..20 {
            stepped(&mut worker, &[true; 5]).unwrap();
        }
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [role, kind] if role == "worker" => linux::serve(kind),
        _ => linux::test(),
    }
}
