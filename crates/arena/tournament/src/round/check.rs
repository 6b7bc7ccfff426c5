//! Rules for a round file beyond its syntax, each with a message that points at the place.

use std::collections::BTreeSet;
use std::path::PathBuf;

use gauntlet_parameters::{Parameters, Table};
use gauntlet_task::{Rules, fault_of_name};
use jiff::SignedDuration;

use gauntlet_judge::{ExecutorKind, FileKind, KernelForm, KernelText, Measurement};

use super::{PanelMember, RoundFile};
use crate::pitch::{FALLBACK, Pitch};
use gauntlet_entrants::{FileError, Source};

/// Upper limit on blocks, pairs of processes and rounds: a larger number is a typing error and would exhaust memory.
const MAX_REPEATS: usize = 1000;

/// Upper limit on the load before each slot: a comparison has dozens of slots, and clocks settle much sooner.
const MAX_HEATING: SignedDuration = SignedDuration::from_secs(60);

const NO_PROGRAM: &str = "name the program and its arguments, or leave `command` out";

/// Checks a round with its pitches, each in the file that contains it.
pub fn check(source: &Source<RoundFile>, pitches: &[Source<Pitch>], table: &Table) -> Result<(), FileError> {
    let file = &source.value;
    if let Some(message) = fault_of_name(&file.name) {
        return Err(source.error_at("name", message, "give the round a short name"));
    }
    check_measurement(source, &file.measurement)?;
    check_correctness(source, &file.correctness)?;
    file.criteria.validate().map_err(|error| {
        source.error_at(
            "[criteria]",
            error.to_string(),
            "docs/guide/rounds.md has the usual criteria; those left out have their defaults",
        )
    })?;
    if file.repeat.is_some_and(|times| times.get() > MAX_REPEATS) {
        let message = format!("`repeat` is over {MAX_REPEATS}");
        return Err(source.error_at("repeat", message, "such as repeat = 3"));
    }
    if file
        .hours
        .is_some_and(|hours| !(hours > 0.0 && hours.is_finite()))
    {
        return Err(source.error_at(
            "hours",
            "a round's `hours` are no number over 0",
            "give such as hours = 8",
        ));
    }
    if let Some((name, budget)) = file.budgets.iter().find(|(_, budget)| !budget.is_finite()) {
        let message = format!("budgets.{name} = {budget}: nothing is ever over such a budget");
        return Err(source.error_at(name, message, "give a number, or take the budget out"));
    }
    let command = file
        .baseline
        .as_ref()
        .and_then(|baseline| baseline.command.as_ref());
    if command.is_some_and(Vec::is_empty) {
        return Err(source.error_at("[baseline", "the baseline has an empty `command`", NO_PROGRAM));
    }
    // A program or kernel of the user's may have its own parameters, which no table here knows.
    let is_users = |text: &Option<String>| {
        let text = text.as_ref().and_then(|text| text.parse::<KernelText>().ok());
        text.is_some_and(|text| text.is_users())
    };
    let own = file.source.is_some()
        || file
            .baseline
            .as_ref()
            .is_some_and(|baseline| is_users(&baseline.kernel));
    if command.is_none() && !own {
        if let Some(baseline) = &file.baseline {
            check_parameters(source, &baseline.schedule, table)?;
        }
        let built_in =
            |pitch: &&Source<Pitch>| pitch.value.command.is_none() && !is_users(&pitch.value.kernel);
        for pitch in pitches.iter().filter(built_in) {
            check_parameters(pitch, &pitch.value.schedule, table)?;
            if let Some(fallback) = &pitch.value.fallback.schedule {
                check_parameters(pitch, fallback, table)?;
            }
        }
    }
    let runs = matches!(file.executor, ExecutorKind::Cpu | ExecutorKind::Cuda);
    let told_at_its_start = |text: &Option<String>| {
        let text = text.as_ref().and_then(|text| text.parse::<KernelText>().ok());
        text.is_some_and(
            |text| matches!(text.form(), KernelForm::File(kernel) if kernel.kind != FileKind::Cuda),
        )
    };
    let baseline = file
        .baseline
        .as_ref()
        .and_then(|baseline| baseline.kernel.clone());
    let built_on = file
        .source
        .as_ref()
        .map(|source| source.kernel.clone())
        .or(baseline);
    for pitch in pitches.iter().filter(|pitch| pitch.value.command.is_none()) {
        let kernel = pitch.value.kernel.clone().or_else(|| built_on.clone());
        if !pitch.value.schedule.is_empty() && told_at_its_start(&kernel) {
            return Err(pitch.error_at(
                "schedule",
                "a `schedule` changes nothing of a kernel in Python or C",
                "name its parameters with the kernel, as in kernel = \"softmax.py:fast: BLOCK=128\"",
            ));
        }
    }
    if own && !runs {
        return Err(source.error_at(
            "executor",
            "a kernel of the user's is not recorded",
            "give executor = \"cpu\" or \"cuda\"",
        ));
    }
    let mut names = BTreeSet::new();
    for pitch in pitches {
        check_name(pitch, &mut names)?;
    }
    for pitch in pitches {
        check_pitch(file.executor, pitch, &names)?;
        check_order(pitch, pitches)?;
    }
    file.judge
        .iter()
        .try_for_each(|judge| check_judge(source, judge, &names))
}

/// Whether the suite's kernels take these parameters.
fn check_parameters<T>(source: &Source<T>, given: &Parameters, table: &Table) -> Result<(), FileError> {
    table.check(given).map_err(|error| {
        source.error_at(
            &error.name,
            error.message,
            "`gauntlet schedules` explains the parameters of the built-in kernels",
        )
    })
}

fn check_measurement(source: &Source<RoundFile>, measurement: &Measurement) -> Result<(), FileError> {
    let Measurement {
        looks,
        blocks,
        budget,
        heating,
        ..
    } = measurement;
    let fault = match looks.first() {
        None => Some("nothing would ever be looked at"),
        Some(..2) => Some("an interval over processes needs at least two of them"),
        Some(_) if !looks.is_sorted_by(|one, next| one < next) => {
            Some("each look is at more pairs of processes than the one before")
        }
        Some(_) => None,
    };
    if let Some(fault) = fault {
        return Err(source.error_at(
            "looks",
            format!("measurement.looks = {looks:?}: {fault}"),
            "give rising numbers of process pairs, the first at least 2, such as [4, 6, 9]",
        ));
    }
    if looks.last().is_some_and(|last| *last > MAX_REPEATS) {
        let message = format!("measurement.looks = {looks:?}: over {MAX_REPEATS} pairs of processes");
        return Err(source.error_at("looks", message, "such as [4, 6, 9]"));
    }
    if !(1..=MAX_REPEATS).contains(blocks) {
        let message = format!("measurement.blocks = {blocks}: must lie in 1…{MAX_REPEATS}");
        return Err(source.error_at("blocks", message, "3 is usual"));
    }
    if *budget <= SignedDuration::ZERO {
        let message = format!("measurement.budget = {budget:#}: there is no time to measure in");
        return Err(source.error_at("budget", message, "give a positive time, such as \"120s\""));
    }
    if *heating <= SignedDuration::ZERO || *heating > MAX_HEATING {
        let message =
            format!("measurement.heating = {heating:#}: must be over 0 s and at most {MAX_HEATING:#}");
        return Err(source.error_at("heating", message, "\"500ms\" is usual"));
    }
    Ok(())
}

/// TOML has NaN and infinity, and no value ever exceeds such a bound.
fn check_correctness(source: &Source<RoundFile>, correctness: &Rules) -> Result<(), FileError> {
    if correctness.inputs.is_empty() {
        return Err(source.error_at(
            "inputs",
            "correctness.inputs is empty: nothing would be tried on the suite's correctness cases",
            "name at least one of competition, wide, outliers, adversarial, or leave it out for all four",
        ));
    }
    for (name, bound) in [
        ("tolerance.relative", correctness.tolerance.relative),
        ("tolerance.absolute", correctness.tolerance.absolute),
        ("nrmse", correctness.nrmse),
        ("bias", correctness.bias),
    ] {
        if !(bound >= 0.0 && bound.is_finite()) {
            let message = format!("correctness.{name} = {bound}: a bound is a finite number, 0 or more");
            return Err(source.error_at(
                "[correctness",
                message,
                "correct the bound, or leave it out for the usual one",
            ));
        }
    }
    Ok(())
}

fn check_name<'p>(pitch: &'p Source<Pitch>, names: &mut BTreeSet<&'p str>) -> Result<(), FileError> {
    let name = pitch.value.name.as_str();
    if let Some(message) = fault_of_name(name) {
        return Err(pitch.error_at("name", message, "give the pitch a short name"));
    }
    // Findings are stored under these names, and a fallback's findings under the pitch's name with a suffix.
    let kept = name == "baseline" || name.trim().is_empty() || name.ends_with(FALLBACK);
    if kept || !names.insert(name) {
        let message = if kept {
            format!("a pitch cannot be called `{name}`")
        } else {
            format!("the name `{name}` is taken")
        };
        return Err(pitch.error_at(name, message, "give every pitch of a round its own name"));
    }
    Ok(())
}

/// Checks the pitch of a contestant, whose change is not made yet, among those that are known.
pub(crate) fn live_pitch(pitch: &Pitch, others: &[Pitch], table: &Table) -> Result<(), String> {
    let brings = [
        ("command", pitch.command.is_some()),
        ("dispatch", pitch.dispatch.is_some()),
        ("kernel", pitch.kernel.is_some()),
        ("patch", pitch.patch.is_some()),
        ("files", !pitch.files.is_empty()),
        ("recorded-loop", pitch.recorded_loop.is_some()),
        ("withdrawn", pitch.withdrawn.is_some()),
    ];
    if let Some((key, _)) = brings.iter().find(|(_, brings)| *brings) {
        return Err(format!(
            "leave `{key}` out: the change is handed in when it is built"
        ));
    }
    for schedule in std::iter::once(&pitch.schedule).chain(&pitch.fallback.schedule) {
        table.check(schedule).map_err(|error| error.to_string())?;
    }
    let mut names: BTreeSet<&str> = others.iter().map(|other| other.name.as_str()).collect();
    // Nothing here is in a file, so that only messages are wanted.
    let source = Source {
        path: PathBuf::new(),
        text: String::new(),
        value: pitch.clone(),
    };
    let said = |error: FileError| format!("{}: {}", error.message, error.remedy);
    check_name(&source, &mut names).map_err(said)?;
    check_commitments(&source, &names).map_err(said)
}

fn check_judge(
    source: &Source<RoundFile>,
    judge: &PanelMember,
    names: &BTreeSet<&str>,
) -> Result<(), FileError> {
    if let Some(stranger) = judge.scores.keys().find(|name| !names.contains(name.as_str())) {
        let message = format!(
            "judge {} scores `{stranger}`, which is not pitched in this round",
            judge.name
        );
        return Err(source.error_at(stranger, message, "correct the name, or take the scores out"));
    }
    for (pitch, scores) in &judge.scores {
        let given = [
            scores.speedup,
            scores.feasibility,
            scores.risk,
            scores.quality,
            scores.printed,
        ];
        if given
            .into_iter()
            .flatten()
            .any(|score| !(0.0..=10.0).contains(&score))
        {
            let message = format!("judge {} gives {pitch} a score outside 0…10", judge.name);
            return Err(source.error_at(pitch, message, "scores lie between 0 and 10"));
        }
    }
    Ok(())
}

fn check_pitch(
    executor: ExecutorKind,
    source: &Source<Pitch>,
    names: &BTreeSet<&str>,
) -> Result<(), FileError> {
    check_commitments(source, names)?;
    let pitch = &source.value;
    let at = |message: String, remedy: &str| Err(source.error_at(&pitch.name, message, remedy));
    if pitch.command.as_ref().is_some_and(Vec::is_empty) {
        return at(
            format!("the pitch `{}` has an empty `command`", pitch.name),
            NO_PROGRAM,
        );
    }
    let brings = [
        ("command", pitch.command.is_some()),
        ("dispatch", pitch.dispatch.is_some()),
        ("kernel", pitch.kernel.is_some() && !pitch.changes_source()),
        ("patch or files", pitch.changes_source()),
    ];
    let brought: Vec<_> = brings
        .iter()
        .filter(|(_, brings)| *brings)
        .map(|(name, _)| *name)
        .collect();
    if let [one, other, ..] = brought[..] {
        return at(
            format!("the pitch `{}` has `{one}` and `{other}`", pitch.name),
            "leave one of them out: each names what is to be run",
        );
    }
    if pitch.recorded_loop.is_some() && executor != ExecutorKind::Replay {
        return Err(source.error_at(
            "recorded-loop",
            format!("the pitch `{}` has a `recorded-loop`, and loops are proved no longer", pitch.name),
            "name the kernel itself: `kernel`, such as \"softmax.cu:fused\"; the gate race-free and `gauntlet check` look for its races",
        ));
    }
    if !pitch.changes_something() && executor != ExecutorKind::Replay {
        return at(
            format!(
                "the pitch `{}` changes nothing: neither `schedule` nor a `kernel`, `patch`, `files`, `dispatch` or `command`",
                pitch.name
            ),
            "name the words of the schedule that change; `gauntlet schedules` lists them",
        );
    }
    Ok(())
}

/// Checks what an author must say, whatever the change is.
fn check_commitments(source: &Source<Pitch>, names: &BTreeSet<&str>) -> Result<(), FileError> {
    let pitch = &source.value;
    let at = |message: String, remedy: &str| Err(source.error_at(&pitch.name, message, remedy));
    if pitch.evidence.is_empty() {
        return at(
            format!("the pitch `{}` has no evidence", pitch.name),
            "say why anyone should believe it; kind = \"intuition\" is an honest answer",
        );
    }
    if let Some(after) = &pitch.after
        && (!names.contains(after.as_str()) || *after == pitch.name)
    {
        let message = format!(
            "the pitch `{}` comes after `{after}`, which is not pitched here",
            pitch.name
        );
        return at(message, "name another pitch of the round");
    }
    if pitch.regardless && pitch.after.is_none() {
        return at(
            format!("the pitch `{}` says `regardless` without `after`", pitch.name),
            "name in `after` what it builds on, or leave `regardless` out",
        );
    }
    if let Some(claim) = pitch
        .claim
        .against
        .iter()
        .find(|claim| !(claim.times > 0.0 && claim.times.is_finite()))
    {
        return at(
            format!(
                "the pitch `{}` claims to be {} times as fast as {}",
                pitch.name, claim.times, claim.peer
            ),
            "give a positive number",
        );
    }
    if pitch
        .new_evidence
        .as_ref()
        .is_some_and(|evidence| evidence.trim().is_empty())
    {
        return at(
            format!("the pitch `{}` has an empty `new-evidence`", pitch.name),
            "say what is new since the change was judged, or leave it out",
        );
    }
    if pitch.fallback.plan.trim().is_empty() {
        return at(
            format!("the pitch `{}` has an empty fallback", pitch.name),
            "say what to do if it fails",
        );
    }
    Ok(())
}

/// Pitches with circular dependencies would all be left without a candidate to build on.
fn check_order(source: &Source<Pitch>, pitches: &[Source<Pitch>]) -> Result<(), FileError> {
    let pitch = &source.value;
    let mut next = pitch.after.as_deref();
    for _ in pitches {
        let Some(name) = next else { return Ok(()) };
        if name == pitch.name {
            let message = format!("the pitch `{name}` comes after itself, by way of others");
            return Err(source.error_at(name, message, "break the circle of `after`"));
        }
        let found = pitches.iter().find(|one| one.value.name == name);
        next = found.and_then(|one| one.value.after.as_deref());
    }
    Ok(())
}
