//! Exit codes of requirements: 0 only on evidence, 1 if the evidence is against it, 4 without evidence.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Place, Ran, TINY_SUITE, pitch, tiny_round};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde_json::Value;

const MET: i32 = 0;
const FAILED: i32 = 1;
const UNDECIDED: i32 = 4;

/// A place with a round of these pitches.
fn round_of(pitches: &str) -> Place {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    place.write("round.toml", &tiny_round(pitches));
    place
}

/// A pitch that changes only the program.
fn program(name: &str, path: &str) -> String {
    pitch(name, "", &format!("command = [\"{path}\"]")).replace("schedule = {  }\n", "")
}

/// A worker that exits at its start.
fn with_dying_worker(place: Place) -> Place {
    let path = place.write("dies.sh", "#!/bin/sh\necho 'no device here' >&2\nexit 7\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    place
}

/// A replayed round with times of `case-1` to `case-4` in microseconds; the baseline takes 400 for each.
fn replayed(times: &str, uncertainty: &str) -> Place {
    let place = Place::new();
    place.write(
        "record.toml",
        &format!(
            "source = \"made up\"\n{uncertainty}\n\
             [candidates.baseline]\ntimes = {{ case-1 = 400, case-2 = 400, case-3 = 400, case-4 = 400 }}\n\
             [candidates.stages]\ntimes = {{ {times} }}\n"
        ),
    );
    place.write(
        "round.toml",
        &format!(
            "name = \"recorded\"\ntitle = \"recorded times\"\nexecutor = \"replay\"\ndevice = \"b200\"\n\
             suite = \"group-gemm\"\nrecord = \"record.toml\"\n\
             baseline.schedule = {{ tile = [128, 128, 256], stages = 1 }}\n\
             criteria = {{ target = 0.02, practically-zero = 0.01, floor = -0.05 }}\n{}",
            pitch("stages", "stages = 2", "")
        ),
    );
    place
}

const DECLARED: &str = "uncertainty = { relative = 0.001, why = \"made up\" }";

/// Runs the round without a requirement and with each; the codes in the order none, `no-regression`, `adopt`.
#[track_caller]
fn expect_codes(place: &Place, none: i32, no_regression: i32, adopt: i32) {
    place.run(&["run", "round.toml"]).expect(none);
    for (requirement, code) in [("no-regression", no_regression), ("adopt", adopt)] {
        let ran = place
            .run(&["run", "round.toml", "--require", requirement])
            .expect(code);
        let said = match code {
            FAILED => "is not met (exit code 1)",
            UNDECIDED => "is undecided (exit code 4)",
            _ => "",
        };
        assert!(ran.folded().contains(said), "{}", ran.err);
    }
}

#[test]
fn a_program_that_does_not_exist_is_no_evidence() {
    let place = round_of(&program("theirs", "./nowhere"));
    expect_codes(&place, MET, UNDECIDED, UNDECIDED);
    place.run(&["check", "round.toml"]).expect(UNDECIDED);
}

#[test]
fn a_worker_that_dies_fails() {
    let place = with_dying_worker(round_of(&program("theirs", "./dies.sh")));
    expect_codes(&place, MET, FAILED, FAILED);
    place.run(&["check", "round.toml"]).expect(FAILED);
}

#[test]
fn what_the_device_cannot_do_fails() {
    let place = round_of(&pitch("wide", "cluster = [2, 1]", ""));
    expect_codes(&place, MET, FAILED, FAILED);
    let ran = place.run(&["check", "round.toml"]).expect(FAILED);
    assert!(ran.folded().contains("wide: infeasible"), "{}", ran.err);
}

#[test]
fn a_failure_outweighs_what_is_undecided() {
    let place = round_of(&(program("theirs", "./nowhere") + &pitch("wide", "cluster = [2, 1]", "")));
    place
        .run(&["run", "round.toml", "--require", "no-regression"])
        .expect(FAILED);
    // The program may still turn out to be adoptable.
    place
        .run(&["run", "round.toml", "--require", "adopt"])
        .expect(UNDECIDED);
    place.run(&["check", "round.toml"]).expect(FAILED);
}

#[test]
fn a_round_without_a_candidate_is_no_evidence() {
    expect_codes(&round_of(""), MET, UNDECIDED, UNDECIDED);
    let withdrawn = round_of(&pitch(
        "deeper",
        "stages = 2",
        "withdrawn = \"a better one came up\"",
    ));
    expect_codes(&withdrawn, MET, UNDECIDED, UNDECIDED);
    withdrawn.run(&["check", "round.toml"]).expect(UNDECIDED);
}

#[test]
fn recorded_times_pass_or_fail_by_their_bounds() {
    for (time, no_regression, adopt) in [(300, MET, MET), (400, MET, FAILED), (500, FAILED, FAILED)] {
        let times: Vec<_> = (1..=4).map(|case| format!("case-{case} = {time}")).collect();
        expect_codes(&replayed(&times.join(", "), DECLARED), MET, no_regression, adopt);
    }
}

#[test]
fn times_without_an_interval_and_void_times_are_no_evidence() {
    let slower = "case-1 = 780, case-2 = 780, case-3 = 780, case-4 = 780";
    let faster = "case-1 = 300, case-2 = 300, case-3 = 300, case-4 = 300";
    for times in [slower, faster] {
        expect_codes(&replayed(times, ""), MET, UNDECIDED, UNDECIDED);
    }
    // A tenth of a microsecond is far below the roofline.
    let void = "case-1 = 0.1, case-2 = 300, case-3 = 300, case-4 = 300";
    expect_codes(&replayed(void, DECLARED), MET, UNDECIDED, UNDECIDED);
}

#[test]
fn a_record_without_the_times_of_a_case_is_no_evidence() {
    let place = replayed("case-1 = 300, case-2 = 300, case-3 = 300", DECLARED);
    place
        .run(&["run", "round.toml", "--require", "no-regression"])
        .expect(UNDECIDED);
}

#[test]
fn a_comparison_without_time_decides_nothing() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    let bench = [
        "bench",
        "baseline",
        "stages = 2",
        "--suite",
        "suite.toml",
        "--case",
        "two",
        "--budget",
        "1ms",
        "--warm",
        "--json",
        "out.json",
    ];
    place.run(&bench).expect(MET);
    for requirement in ["no-regression", "adopt"] {
        let ran = place
            .run(&[&bench[..], &["--require", requirement]].concat())
            .expect(UNDECIDED);
        assert!(
            ran.folded().contains(&format!(
                "--require {requirement} is undecided (exit code 4): the candidate is inconclusive"
            )),
            "{}",
            ran.err
        );
    }
    let result: Value = serde_json::from_slice(&std::fs::read(place.path("out.json")).unwrap()).unwrap();
    assert_eq!(result["verdict"], "inconclusive", "{result}");
}

#[test]
fn a_check_goes_on_from_pitch_to_pitch() {
    let second = |first: &str| pitch("second", "order = \"dynamic\"", &format!("after = \"{first}\""));
    let sound = round_of(&(pitch("first", "stages = 2", "") + &second("first")));
    let ran = sound.run(&["check", "round.toml", "--json", "-"]).expect(MET);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let judged = &report["tournaments"][0]["rounds"][0]["judged"][1];
    assert_eq!(judged["name"], "second");
    assert_eq!(judged["baseline"], "first", "{judged}");
    assert!(judged["findings"].as_array().unwrap().len() > 3, "{judged}");

    let wide = round_of(&(pitch("first", "cluster = [2, 1]", "") + &second("first")));
    let ran = wide.run(&["check", "round.toml"]).expect(FAILED);
    assert!(ran.folded().contains("first: infeasible"), "{}", ran.err);
}

/// A thread that keeps one processor busy until this is dropped. The commands of the test may use that processor only, so
/// that its load counts however many others there are.
#[cfg(target_os = "linux")]
struct Busy {
    goes_on: Arc<AtomicBool>,
    processor: CpuSet,
}

#[cfg(target_os = "linux")]
impl Busy {
    fn start() -> Self {
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let first = (0..CpuSet::count()).find(|one| allowed.is_set(*one).unwrap());
        let mut processor = CpuSet::new();
        processor.set(first.unwrap()).unwrap();
        let goes_on = Arc::new(AtomicBool::new(true));
        let spins = Arc::clone(&goes_on);
        std::thread::spawn(move || {
            sched_setaffinity(Pid::from_raw(0), &processor).unwrap();
            while spins.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        Self { goes_on, processor }
    }

    /// Runs a command on the busy processor. A process inherits the processors of the thread that starts it.
    fn run(&self, place: &Place, arguments: &[&str]) -> Ran {
        std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                sched_setaffinity(Pid::from_raw(0), &self.processor).unwrap();
                place.run(arguments)
            });
            run.join().unwrap()
        })
    }
}

#[cfg(target_os = "linux")]
impl Drop for Busy {
    fn drop(&mut self) {
        self.goes_on.store(false, Ordering::Relaxed);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_busy_machine_is_reported() {
    let place = Place::new();
    let busy = Busy::start();
    let doctor = busy.run(&place, &["doctor", "--json"]).expect(MET).out;
    let doctor: Value = serde_json::from_str(&doctor).unwrap();
    let items = doctor["machine"].as_array().unwrap();
    let load = items.iter().find(|item| item["what"] == "load").unwrap();
    assert_eq!(load["state"], "worse", "{load}");
    assert!(load["remedy"].as_str().unwrap().contains("stop them"), "{load}");
}
