//! Explanations from a GPU's counters.

use gauntlet_counters::Explanation;
use gauntlet_judge::instruments::{CountedCall, KernelTimes, NO_PROFILER, count_call};
use gauntlet_judge::{Executor, Unreadable};
use gauntlet_report::{bold, counted, dim};
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::{Explain, Measured, MeasuredExecutor, Setup};
use crate::commands::contest::Contest;
use crate::documents::Document;
use crate::error::{CliError, terminal_width};
use crate::exit::Exit;
use crate::progress::Progress;
use crate::sink;

/// The result of `gauntlet explain KERNEL`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct KernelExplained {
    /// The kernel.
    kernel: String,
    /// The task.
    task: String,
    /// The GPU.
    device: String,
    /// What bounds it in each case.
    cases: Vec<CaseExplained>,
    /// The version of the program.
    version: String,
}

/// What bounds a kernel in a case.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct CaseExplained {
    /// The case.
    case: String,
    /// The kernels of a call, the one with the most time first; empty if they are not known.
    kernels: Vec<KernelTimes>,
    /// The kernel that is explained.
    counted: String,
    /// What its counters say.
    explanation: Explanation,
}

impl Document for KernelExplained {
    const NAME: &'static str = "kernel-explanation";
    const VERSION: u32 = 1;
}

/// Reads the counters of a kernel on each case, and says what bounds it. Whether its results are right is not looked at.
pub fn explain(kernel: &str, arguments: &Explain) -> Result<Exit, CliError> {
    let setup = Setup::alone(
        arguments.task.clone(),
        arguments.cases.clone(),
        Measured {
            executor: arguments.device.as_ref().map(|_| MeasuredExecutor::Cuda),
            device: arguments.device.clone(),
        },
    );
    let text = gauntlet_entrants::read(kernel)?;
    let contest = Contest::of(&setup, [text.clone(), text])?;
    let explained = explained(&contest)?;
    arguments
        .json
        .deliver(&explained, || sink::print(shown(&explained)))?;
    Ok(Exit::Done)
}

fn explained(contest: &Contest) -> Result<KernelExplained, CliError> {
    let Executor::Live(workshop) = &contest.executor else {
        return Err(CliError::broken("a kernel that is measured has no workshop"));
    };
    let Some(instruments) = workshop.instruments() else {
        return Err(CliError::bad_input(
            format!(
                "{} runs on the CPU, and what bounds a kernel is told by a GPU's counters",
                contest.texts[1]
            ),
            "name a kernel whose task is on a GPU, or the GPU with --device; `gauntlet time` shows the rates that a kernel reaches on a CPU",
        ));
    };
    let Some(profiler) = &instruments.profiler else {
        return Err(CliError::undecided(
            NO_PROFILER,
            "install it, or add its folder to PATH",
        ));
    };
    let _hold = contest.hold()?;
    let progress = Progress::new();
    let candidate = &contest.arms[1];
    let mut cases = Vec::new();
    for case in &contest.setting.benchmark_cases {
        progress.show(&format!("{}: reading counters", case.name));
        let schedule = candidate.schedule_for(&case.sizes, &contest.setting.device);
        let counted: Result<CountedCall, Unreadable> =
            count_call(workshop, profiler, case, candidate, schedule)?;
        let CountedCall {
            kernels,
            kernel,
            counters,
        } = counted.map_err(|why| {
            CliError::undecided(
                format!("the counters of {} on {} cannot be read: {why}", contest.texts[1], case.name),
                "`gauntlet check` or `gauntlet time` says whether the kernel itself runs; `gauntlet doctor` whether ncu does",
            )
        })?;
        cases.push(CaseExplained {
            case: case.name.clone(),
            kernels,
            counted: kernel,
            explanation: gauntlet_counters::explain(&counters, case.sizes.bytes()),
        });
    }
    Ok(KernelExplained {
        kernel: contest.texts[1].to_string(),
        task: contest.suite.name.clone(),
        device: contest.setting.device.title.clone(),
        cases,
        version: crate::commands::run::version(),
    })
}

fn shown(explained: &KernelExplained) -> String {
    let pages = explained.cases.iter().map(|case| {
        format!(
            "{} {}\n{}",
            bold(&explained.kernel),
            dim(format!(
                "on {}, {}, {}",
                explained.task, case.case, explained.device
            )),
            counted(&case.counted, &case.kernels, &case.explanation, terminal_width())
        )
    });
    pages.collect::<Vec<_>>().join("\n")
}
