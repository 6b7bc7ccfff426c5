//! The trial of kernels that cheat, or are honest, in files: each is compared with an honest one by the program itself,
//! as a user would.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use gauntlet_judge::gates::{Faster, Gate, Right};
use gauntlet_judge::{Suspicion, Verdict};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::outcome::{Outcome, fault};
use super::trial::{CheatReport, Settings, TrialError, files, folder};
use super::{Cheat, End, Worker};

/// Where kernels in files run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// The CPU, on arrays of numpy.
    Cpu,
    /// A GPU, on tensors of torch.
    Cuda,
}

/// A kernel in a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernel {
    /// `FILE:FUNCTION`.
    pub text: &'static str,
    /// What it is compared with.
    pub baseline: &'static str,
}

/// The honest kernel with which the others are compared.
pub(super) const HONEST: &str = "honest.py:honest";

/// All files that the kernels need.
const FILES: [(&str, &str); 11] = [
    ("honest.py", include_str!("kernels/honest.py")),
    ("results.py", include_str!("kernels/results.py")),
    ("requests.py", include_str!("kernels/requests.py")),
    ("times.py", include_str!("kernels/times.py")),
    ("turns.py", include_str!("kernels/turns.py")),
    ("secrets.py", include_str!("kernels/secrets.py")),
    ("process.py", include_str!("kernels/process.py")),
    ("gpu.py", include_str!("kernels/gpu.py")),
    ("with_triton.py", include_str!("kernels/with_triton.py")),
    ("kernels.cu", include_str!("kernels/kernels.cu")),
    ("kernels.toml", include_str!("kernels/kernels.toml")),
];

/// The task, without the line that says where its tensors are.
const TASK: &str = include_str!("kernels/task.py");

/// Time for a comparison on a CPU.
const BUDGET: &str = "20s";

/// Time for a comparison on a GPU, where each process imports torch first: on an H200 that took 3.5 s.
const BUDGET_ON_GPU: &str = "90s";

/// Pairs of processes: the fewest that the program takes.
const PAIRS: &str = "6";

/// A comparison that takes longer is ended.
const PATIENCE: Duration = Duration::from_secs(240);

/// Kernels that are tried at the same time, if none of them is to be measured.
const AT_ONCE: usize = 6;

/// What is read of the result of `gauntlet compare`.
#[derive(Deserialize)]
struct Compared {
    side: String,
    verdict: Verdict,
    reason: String,
    comparison: Option<Comparison>,
}

#[derive(Deserialize)]
struct Comparison {
    assessment: Assessment,
    conduct: Option<Conduct>,
}

#[derive(Deserialize)]
struct Assessment {
    suite: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Conduct {
    suspicion: Option<Suspicion>,
}

/// Tries kernels: those that a gate stops before anything is measured several at a time, and then the others one by one.
pub(super) fn run(
    settings: &Settings,
    on: On,
    kernels: &[Cheat],
    observer: &mut dyn FnMut(&CheatReport),
) -> Result<Vec<CheatReport>, TrialError> {
    let (measured, stopped): (Vec<&Cheat>, Vec<&Cheat>) =
        kernels.iter().partition(|cheat| is_measured(cheat));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut reports = Vec::new();
    for some in stopped.chunks(cores.clamp(1, AT_ONCE)) {
        let tried: Vec<_> = thread::scope(|scope| {
            let started: Vec<_> = some
                .iter()
                .map(|cheat| scope.spawn(|| try_one(settings, on, cheat)))
                .collect();
            let ended = started.into_iter().map(thread::ScopedJoinHandle::join);
            ended
                .map(|report| report.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        for report in tried {
            let report = report?;
            observer(&report);
            reports.push(report);
        }
    }
    for cheat in measured {
        let report = try_one(settings, on, cheat)?;
        observer(&report);
        reports.push(report);
    }
    Ok(reports)
}

/// Whether a candidate is expected to come as far as the comparison, so that times matter.
fn is_measured(cheat: &Cheat) -> bool {
    match cheat.end {
        End::Caught { gate, .. } => gate.contains(Faster.name()),
        End::Held { .. } => false,
        End::NoGain | End::Undefended { .. } | End::Measured => true,
    }
}

fn try_one(settings: &Settings, on: On, cheat: &Cheat) -> Result<CheatReport, TrialError> {
    let start = Instant::now();
    let folder = folder()?;
    let compared = compared(settings, on, cheat, folder.path()).map_err(files)?;
    let compared = compared.map_err(|reason| TrialError::Uncompared {
        name: cheat.name,
        reason,
    })?;
    if compared.side == "baseline" {
        return Err(TrialError::Baseline {
            name: cheat.name,
            reason: compared.reason,
        });
    }
    let gate = match (&compared.comparison, compared.verdict) {
        (_, Verdict::Adopt) => None,
        (Some(_), _) => Some(Faster.name().to_owned()),
        (None, _) => Some(Right.name().to_owned()),
    };
    let has_interval = |comparison: &Comparison| comparison.assessment.suite.is_some();
    let fault = match &compared.comparison {
        // Nothing was gained, because nothing was found.
        Some(comparison) if cheat.end == End::NoGain && !has_interval(comparison) => {
            Some("there were too few pairs of processes".to_owned())
        }
        _ => fault(cheat.end, gate.as_deref(), compared.verdict, &compared.reason),
    };
    let conduct = compared.comparison.and_then(|comparison| comparison.conduct);
    let suspicion = conduct.and_then(|conduct| conduct.suspicion);
    let accused = suspicion.is_none_or(|suspicion| suspicion.accuses());
    Ok(CheatReport {
        outcome: Outcome::of(cheat, compared.verdict, fault.as_deref(), accused),
        gate,
        verdict: compared.verdict,
        reason: compared.reason,
        fault,
        seconds: start.elapsed().as_secs_f64(),
        ..CheatReport::unjudged(cheat)
    })
}

/// The result of a comparison, or why there is none.
fn compared(
    settings: &Settings,
    on: On,
    cheat: &Cheat,
    folder: &Path,
) -> io::Result<Result<Compared, String>> {
    let Worker::Kernel(kernel) = cheat.worker else {
        return Ok(Err("it is no kernel in a file".to_owned()));
    };
    for (name, text) in FILES {
        fs::write(folder.join(name), text)?;
    }
    let (device, budget) = match on {
        On::Cpu => ("cpu", BUDGET),
        On::Cuda => ("cuda", BUDGET_ON_GPU),
    };
    fs::write(folder.join("task.py"), format!("DEVICE = \"{device}\"\n{TASK}"))?;
    // Its own temporary folder holds the lock of the hardware too.
    let temporary = folder.join("tmp");
    fs::create_dir(&temporary)?;
    let result = folder.join("result.json");
    let said = fs::File::create(folder.join("said"))?;
    let fixed = ["compare", kernel.baseline, kernel.text, "--task", "task.py"];
    let mut program = Command::new(&settings.program.file)
        .args(settings.program.with(fixed))
        .args(["--pairs", PAIRS, "--budget", budget, "--json"])
        .arg(&result)
        .current_dir(folder)
        .env("TMPDIR", &temporary)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said)
        .spawn()?;
    let start = Instant::now();
    while program.try_wait()?.is_none() {
        if start.elapsed() > PATIENCE {
            program.kill()?;
            program.wait()?;
            return Ok(Ok(Compared {
                side: "candidate".to_owned(),
                verdict: Verdict::Aborted,
                reason: format!("it took more than {} s", PATIENCE.as_secs()),
                comparison: None,
            }));
        }
        sleep(Duration::from_millis(20));
    }
    let Ok(text) = fs::read_to_string(&result) else {
        return Ok(Err(fs::read_to_string(folder.join("said"))?.trim().to_owned()));
    };
    Ok(serde_json::from_str(&text).map_err(|error| format!("its result cannot be read: {error}")))
}
