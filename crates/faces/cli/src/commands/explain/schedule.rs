//! The model's view of where the time of a schedule goes.

use gauntlet_device::{Accuracy, Device, on_record};
use gauntlet_parameters::Parameters;
use gauntlet_problems::resources::block_bytes;
use gauntlet_report::{Explanation, compared, duration, explained};
use gauntlet_simulate::count::Occupancy;
use gauntlet_simulate::{Counts, HostTerm, NoEstimate, Subject, Timeline};
use gauntlet_task::Sizes;
use schemars::JsonSchema;
use serde::Serialize;

use super::measured::Measured;
use super::timelines::{self, TimelineFile};
use crate::arguments::{Explain, JsonFile};
use crate::documents::Document;
use crate::error::{CliError, terminal_width};
use crate::exit::Exit;
use crate::problem_text;
use crate::progress::Progress;
use crate::sink;

/// The result of `gauntlet explain --problem`.
#[derive(Serialize, JsonSchema)]
pub struct Explained {
    /// The cost of a call on the host.
    host: HostTerm,
    /// Each problem under the schedule, with the parts of its predicted time.
    cases: Vec<Explanation>,
    /// The same problems under the schedule of `--compare`.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Vec<Explanation>>,
}

impl Document for Explained {
    const NAME: &'static str = "explanation";
    const VERSION: u32 = 1;
}

/// Explains a schedule on a problem, or on all problems of a suite.
pub fn explain(
    problem: &str,
    schedule: &Parameters,
    device: &Device,
    arguments: &Explain,
) -> Result<Exit, CliError> {
    let file = arguments.timeline.as_deref().map(TimelineFile::of).transpose()?;
    let problems = problem_text::read(problem)?;
    let measured = arguments
        .measured
        .as_ref()
        .map(|file| Measured::of(file.as_deref(), arguments.device(), &problems))
        .transpose()?;
    let host = arguments.host.unwrap_or_default();
    let explanations = all(&problems, schedule, device, host)?;
    if let Some(file) = file {
        let (name, problem) = timelines::one(&problems)?;
        let timeline = timeline(problem, schedule, device, host)?;
        let title = format!("{name} on {}: {}", device.title, duration(timeline.seconds));
        file.write(&timeline, &title, problem, schedule)?;
    }
    match &arguments.compare {
        Some(words) => {
            let other =
                gauntlet_entrants::read_parameters(words, schedule, &gauntlet_families::parameters())?;
            let others = all(&problems, &other, device, host)?;
            tell_both(explanations, others, host, &arguments.json)?;
        }
        None => tell(explanations, host, &arguments.json)?,
    };
    if let Some(measured) = measured {
        measured.tell(schedule, |problem| timeline(problem, schedule, device, host))?;
    }
    Ok(Exit::Done)
}

fn tell(explanations: Vec<Explanation>, host: HostTerm, json: &JsonFile) -> Result<(), CliError> {
    let result = Explained {
        host,
        cases: explanations,
        compared: None,
    };
    json.deliver(&result, || {
        sink::print(explained(&result.cases, terminal_width()))
    })
}

fn tell_both(
    before: Vec<Explanation>,
    after: Vec<Explanation>,
    host: HostTerm,
    json: &JsonFile,
) -> Result<(), CliError> {
    let pairs: Vec<_> = before.iter().cloned().zip(after.iter().cloned()).collect();
    let result = Explained {
        host,
        cases: before,
        compared: Some(after),
    };
    json.deliver(&result, || sink::print(compared(&pairs, terminal_width())))
}

fn all(
    problems: &[(String, Sizes)],
    schedule: &Parameters,
    device: &Device,
    host: HostTerm,
) -> Result<Vec<Explanation>, CliError> {
    let progress = Progress::new();
    problems
        .iter()
        .map(|(name, problem)| {
            progress.show(&format!("{name}: simulating"));
            allowed(name, problem, schedule, device)?;
            explanation(name, problem, schedule, device, host).map_err(missing)
        })
        .collect()
}

/// Refuses a schedule that cannot be built, with all reasons.
fn allowed(name: &str, problem: &Sizes, schedule: &Parameters, device: &Device) -> Result<(), CliError> {
    let violations = problem.violations(schedule, device);
    if violations.is_empty() {
        return bounded(name, &Subject::of(problem, schedule).map_err(missing)?, device);
    }
    let rules: Vec<_> = violations.iter().map(ToString::to_string).collect();
    let remedies = violations.iter().flat_map(|violation| &violation.remedies);
    let table = problem.task().parameters();
    let nearest = remedies.map(|remedy| table.describe(&remedy.parameters)).next();
    Err(CliError::bad_input(
        format!(
            "{} does not accept this schedule on {name}: {}",
            device.title,
            rules.join("; ")
        ),
        nearest.map_or_else(
            || "`gauntlet schedules` explains the words".to_owned(),
            |schedule| format!("the nearest that it accepts: {schedule}"),
        ),
    ))
}

/// A limit on the total steps of all tiles, so that a dozen simulations take under a minute on a few processors.
const MAX_STEPS: usize = 20_000_000;

/// Refuses problems whose simulation would take too long.
fn bounded(name: &str, subject: &Subject, device: &Device) -> Result<(), CliError> {
    let counts = Counts::of(subject.problem(), subject.schedule(), device.arch, 1);
    let steps = counts.tiles.saturating_mul(counts.steps);
    if steps <= MAX_STEPS {
        return Ok(());
    }
    Err(CliError::bad_input(
        format!(
            "{name} is too large to be simulated: {} tiles of up to {} steps, and {MAX_STEPS} steps are the most",
            counts.tiles, counts.steps
        ),
        "take a larger tile, or smaller sizes: what is so large goes on as it began",
    ))
}

fn explanation(
    name: &str,
    problem: &Sizes,
    schedule: &Parameters,
    device: &Device,
    host: HostTerm,
) -> Result<Explanation, NoEstimate> {
    let subject = Subject::of(problem, schedule)?;
    let (modelled, schedule) = (subject.problem(), subject.schedule());
    let simulation = subject.simulate(device, host)?;
    let breakdown = subject.break_down(device, host)?;
    // The host's time is known, so the model's error applies to the rest only.
    let given = host.seconds(modelled, schedule);
    let (low, high) = subject.error_bar(simulation.seconds - given, device);
    let processors = device.processors.get() as usize;
    let blocks = Occupancy::of(modelled, schedule, device).map_or(1, |occupancy| occupancy.blocks);
    Ok(Explanation {
        case: name.to_owned(),
        operation: modelled.operation().clone(),
        schedule: schedule.clone(),
        device: device.title.clone(),
        arch: device.arch,
        seconds: simulation.seconds,
        low: given + low,
        high: given + high,
        basis: format!(
            "bar from published models; {}",
            on_record(Accuracy::of(device, problem.task().name()).as_ref())
        ),
        bound: simulation.bound,
        breakdown,
        counts: Counts::of(modelled, schedule, device.arch, processors * blocks),
        processors,
        blocks,
        buffer_bytes: block_bytes(schedule, modelled.operation(), device.arch),
    })
}

fn timeline(
    problem: &Sizes,
    schedule: &Parameters,
    device: &Device,
    host: HostTerm,
) -> Result<Timeline, CliError> {
    let subject = Subject::of(problem, schedule).map_err(missing)?;
    subject.timeline(device, host).map_err(missing)
}

fn missing(error: NoEstimate) -> CliError {
    let remedy = match error {
        NoEstimate::NoModelOfDevice { .. } => {
            "name a GPU with --device; `gauntlet compare` measures what a schedule brings on this CPU"
        }
        _ => "`gauntlet devices` lists the devices with their figures",
    };
    CliError::bad_input(error.to_string(), remedy)
}
