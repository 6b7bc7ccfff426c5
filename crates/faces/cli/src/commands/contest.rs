//! What `compare` and `judge` share: two kernels, a task and a place to measure; and the report.

use std::collections::BTreeMap;
use std::path::Path;

use gauntlet_device::Device;
use gauntlet_entrants as entrants;
use gauntlet_gates::GATES;
use gauntlet_judge::{
    Candidate, ComparisonReport, Conditions, Earlier, Executor, FileKernel, FileKind, Judgement, Kept,
    KernelReport, KernelText, Measurement, Observer, Session, Setting,
};
use gauntlet_parameters::Parameters;
use gauntlet_python_task::Options;
use gauntlet_report::Detail;
use gauntlet_stats::{Arm, Criteria};
use gauntlet_task::Suite;
use gauntlet_tournament::digest_of;
use gauntlet_worker::protocol::Description;

use crate::arguments::{self, MeasuredExecutor, Recording, Requirement, Setup};
use crate::commands::cuda::{Place, environment_with};
use crate::commands::more;
use crate::commands::run::version;
use crate::error::CliError;
use crate::exit::Exit;
use crate::machine::Hold;
use crate::recording::{Recorder, tell_record};
use crate::requirement::{Conclusion, soundness};
use crate::sink;

/// Two kernels, and everything that they share.
pub struct Contest {
    pub suite: Suite,
    /// What of the task and of the kernels is special, or not honoured.
    notes: Vec<String>,
    /// The baseline and the candidate.
    pub arms: [Candidate; 2],
    pub texts: [KernelText; 2],
    pub setting: Setting,
    pub executor: Executor,
    measured: MeasuredExecutor,
    gpu: Option<Description>,
    /// What must be the same for pairs that are added later.
    pub conditions: Conditions,
}

impl Contest {
    /// Reads the kernels and finds the place where they are measured.
    pub fn of(setup: &Setup, texts: [KernelText; 2]) -> Result<Self, CliError> {
        let task = task_of(setup, &texts.each_ref())?;
        let suite = chosen_for(task, &setup.cases, texts[0].in_file(FileKind::Python))?;
        let table = suite.parameters();
        let measured = match setup.measured.executor {
            Some(executor) => executor,
            None if texts.iter().any(|text| text.in_file(FileKind::Cuda).is_some()) => MeasuredExecutor::Cuda,
            None => home(&suite),
        };
        let tensors = entrants::tensors_of(&suite, measured == MeasuredExecutor::Cuda);
        let read = |name, text, base: &Parameters| entrants::candidate(name, text, base, &table, tensors);
        let baseline = read("baseline", &texts[0], &Parameters::new())?;
        let base = if baseline.command.is_some() {
            Parameters::new()
        } else {
            baseline.schedule.clone()
        };
        let candidate = read("candidate", &texts[1], &base)?;
        let arms = [baseline, candidate];
        let notes = entrants::notes_of_solutions(&suite, &texts.each_ref())?;
        let place = place(setup, measured, &arms)?;
        for (arm, text) in arms.iter().zip(&texts) {
            allowed(arm, text, &suite, &place.device)?;
        }
        let usual = if setup.quick {
            Measurement::quick()
        } else {
            Measurement::default()
        };
        let measurement = Measurement {
            looks: setup.pairs.map_or_else(|| usual.looks.clone(), looks),
            budget: setup.budget,
            warm: setup.warm,
            regime: setup.regime.into(),
            scope: setup.scope.into(),
            activity: setup.activity,
            open_ended: setup.pairs.is_none(),
            ..usual
        };
        let device = setup.measured.device.clone();
        let conditions = Conditions {
            files: entrants::digests(task, &suite, &texts, device.as_deref()),
            program: entrants::digest_of_program(),
            cases: digest_of(&[serde_json::to_string(&suite).unwrap_or_default()]),
            task: task.to_owned(),
            chosen: setup.cases.clone(),
            on_gpu: measured == MeasuredExecutor::Cuda,
            device,
            measurement: measurement.clone(),
        };
        Ok(Self {
            conditions,
            setting: Setting::new(place.device, &suite, measurement, Criteria::default()),
            notes: [&suite.notes[..], &notes[..]].concat(),
            suite,
            arms,
            texts,
            executor: Executor::Live(place.workshop),
            measured,
            gpu: place.gpu,
        })
    }

    /// Says that task and kernels can be compared.
    pub fn only_read(&self) -> Result<Exit, CliError> {
        let cases = self.suite.benchmark.len();
        sink::line(format_args!(
            "{} and {} can be compared on {cases} case{} of {}.",
            self.texts[1],
            self.texts[0],
            if cases == 1 { "" } else { "s" },
            self.suite.name
        ))?;
        Ok(Exit::Done)
    }

    /// What the figures depend on, in addition to files.
    pub fn environment(&self) -> BTreeMap<String, String> {
        environment_with(self.gpu.as_ref())
    }

    /// Where the outcome is recorded.
    pub fn recorder(&self, recording: &Recording) -> Result<Recorder, CliError> {
        Recorder::open(
            &recording.ledger,
            recording.no_ledger,
            self.conditions.files.clone(),
        )
    }

    /// Locks the hardware.
    pub fn hold(&self) -> Result<Hold, CliError> {
        Hold::take(self.measured)
    }

    /// The session of the two kernels, through all gates.
    pub fn session<'s>(&'s self, observer: &'s dyn Observer) -> Session<'s> {
        Session::new(&self.setting, &self.executor, self.arms.each_ref())
            .through(&GATES)
            .seen_by(observer)
    }

    /// What a comparison of the two says. The finding of the comparison says no more than the verdict.
    pub fn compared(&self, observer: &dyn Observer) -> Result<ComparisonReport, CliError> {
        Ok(self.report(Judgement {
            findings: Vec::new(),
            ..self.session(observer).compare()?
        }))
    }

    /// What all gates say of the candidate.
    pub fn judged(&self, observer: &dyn Observer) -> Result<ComparisonReport, CliError> {
        Ok(self.report(self.session(observer).judge()?))
    }

    /// Goes on with a comparison that ended early, and says what it comes to: with at least `pairs` more, or as far as it was planned.
    pub fn going_on(
        &self,
        before: &ComparisonReport,
        pairs: Option<usize>,
        observer: &dyn Observer,
    ) -> Result<ComparisonReport, CliError> {
        let (Some(comparison), Some(kept)) = (&before.comparison, &before.kept) else {
            return Err(CliError::broken("there is no comparison to go on with"));
        };
        let earlier = Earlier {
            comparison,
            observations: &kept.observations,
            pairs,
        };
        let mut found = self.session(observer).adding_to(Some(earlier)).compare()?;
        // The last finding of `judge` is that of the comparison, which the new one replaces; `compare` keeps no findings.
        found.findings = match before.findings.split_last() {
            Some((_, earlier)) => [earlier, &found.findings].concat(),
            None => Vec::new(),
        };
        Ok(self.report(found))
    }

    /// The outcome as every face shows it.
    pub fn report(&self, found: Judgement) -> ComparisonReport {
        let [baseline_name, candidate_name] = KernelText::short_names(self.texts.each_ref());
        let batches = found.observations.as_ref().and_then(more::batches);
        // Without times nothing was claimed that a remark could weaken.
        let remarks = found.comparison.iter().flat_map(|_| self.suite.remarks());
        let notes = self.notes.iter().cloned().chain(remarks).chain(batches).collect();
        let kept = found.observations.map(|observations| Kept {
            conditions: self.conditions.clone(),
            observations,
        });
        ComparisonReport {
            task: self.suite.name.clone(),
            notes,
            baseline: self.kernel(0, baseline_name),
            candidate: self.kernel(1, candidate_name),
            criteria: self.setting.criteria.clone(),
            version: version(),
            environment: self.environment(),
            findings: found.findings,
            comparison: found.comparison,
            side: found.side,
            verdict: found.verdict,
            reason: found.reason,
            kept,
        }
    }

    fn kernel(&self, index: usize, name: String) -> KernelReport {
        let (arm, text) = (&self.arms[index], &self.texts[index]);
        let described = match (&arm.dispatch, &arm.command) {
            (Some(_), _) => dispatched(arm, text, &self.suite, &self.setting.device),
            (None, Some(_)) => text.to_string(),
            (None, None) => self.setting.parameters.describe(&arm.schedule),
        };
        let is_built_in = arm.dispatch.is_none() && arm.command.is_none();
        KernelReport {
            text: text.to_string(),
            name,
            described,
            parameters: (is_built_in || !arm.schedule.is_empty()).then(|| arm.schedule.clone()),
            command: arm.command.clone(),
            dispatch: arm.dispatch.clone(),
        }
    }
}

/// The looks of a plan of this many pairs, in the proportions of the usual plan.
fn looks(pairs: usize) -> Vec<usize> {
    vec![pairs.div_ceil(3), pairs.div_ceil(2), pairs]
}

/// The executor on which a task's tensors are.
pub fn home(suite: &Suite) -> MeasuredExecutor {
    let on_gpu = |sizes: serde_json::Value| sizes.get("device").is_some_and(|device| device == "cuda");
    if suite.benchmark.iter().any(|case| on_gpu(case.sizes.record())) {
        MeasuredExecutor::Cuda
    } else {
        MeasuredExecutor::Cpu
    }
}

/// Where the kernels are measured. Kernels that bring their own program run on any GPU; built-in ones need the name of
/// one that is described.
fn place(setup: &Setup, measured: MeasuredExecutor, arms: &[Candidate; 2]) -> Result<Place, CliError> {
    let is_unnamed = measured == MeasuredExecutor::Cuda && setup.measured.device.is_none();
    if is_unnamed && arms.iter().all(|arm| arm.command.is_some()) {
        return Place::of_any_gpu();
    }
    Place::of(&arguments::Measured {
        executor: Some(measured),
        device: setup.measured.device.clone(),
    })
}

/// Records the outcome, writes and prints it, and says how pairs are added to it; returns the exit code.
pub fn deliver(
    report: &ComparisonReport,
    arguments: &arguments::Contest,
    kept_in: Option<&Path>,
    recorder: &Recorder,
) -> Result<Exit, CliError> {
    let files = &arguments.files;
    let recorded = recorder.record_comparison(report);
    let delivered = files.deliver(report, Detail::Outcome, || {
        more::tell(report, kept_in.or(files.json.as_deref()))?;
        tell_record(&recorded)
    });
    sink::both(delivered, recorded.map(drop))?;
    Ok(concluded(report, arguments.require, arguments.require_quick))
}

/// The exit code of a comparison, or of one that could not be made. Without a requirement it depends only on whether
/// both kernels are correct and the times are credible.
pub fn concluded(report: &ComparisonReport, requirement: Option<Requirement>, accepts_quick: bool) -> Exit {
    let trust = report.comparison.as_ref().map(|found| found.trust);
    let side = match report.side {
        Arm::Baseline => "baseline",
        Arm::Candidate => "candidate",
    };
    let because = format!("the {side} {}", report.verdict.sentence());
    match requirement {
        None => Conclusion::of_one(soundness(report.verdict), because)
            .exit("the requirement that both kernels are right and compared"),
        Some(requirement) => requirement
            .of_comparison(report.verdict, trust.filter(|_| !accepts_quick), because)
            .exit(requirement.name()),
    }
}

/// The task of built-in kernels if none is named.
const USUAL_TASK: &str = "group-gemm";

/// The task by name or file. What a kernel of the user's computes, or what parameters in a file are for, only the user knows.
pub fn task_of<'a>(setup: &'a Setup, texts: &[&KernelText]) -> Result<&'a str, CliError> {
    let users = texts.iter().find(|text| text.names_a_place());
    match (&setup.task, users) {
        (Some(task), _) => Ok(task),
        (None, Some(text)) => Err(entrants::no_task(text).into()),
        (None, None) => Ok(USUAL_TASK),
    }
}

/// A suite with only the given benchmark cases; all of them if none is given.
pub fn chosen(name: &str, cases: &[String]) -> Result<Suite, CliError> {
    chosen_for(name, cases, None)
}

/// The same, for a comparison with a baseline that is a Python function: it stands in for a reference that a task lacks.
fn chosen_for(name: &str, cases: &[String], baseline: Option<&FileKernel>) -> Result<Suite, CliError> {
    let options = Options {
        baseline: baseline.map(|kernel| (kernel.file.clone(), kernel.function.clone())),
        cases: cases.to_vec(),
        ..Options::default()
    };
    let mut suite = entrants::find_task_with(name, &options)?;
    if let Some(stranger) = cases
        .iter()
        .find(|case| suite.benchmark.iter().all(|known| known.name != **case))
    {
        let known: Vec<_> = suite.benchmark.iter().map(|case| case.name.as_str()).collect();
        return Err(CliError::bad_input(
            format!("the suite {} has no benchmark case `{stranger}`", suite.name),
            format!("one of {}", known.join(", ")),
        ));
    }
    if !cases.is_empty() {
        suite.benchmark.retain(|case| cases.contains(&case.name));
    }
    Ok(suite)
}

/// The entry of a dispatch table for each case, and its evidence.
fn dispatched(arm: &Candidate, text: &KernelText, suite: &Suite, device: &Device) -> String {
    let mut said = text.to_string();
    for case in &suite.benchmark {
        let (schedule, why) = arm.choice_for(&case.sizes, device);
        let schedule = case.sizes.task().parameters().describe(schedule);
        said += &format!("\n{}: {schedule} ({why})", case.name);
    }
    said
}

fn allowed(arm: &Candidate, text: &KernelText, suite: &Suite, device: &Device) -> Result<(), CliError> {
    if arm.command.is_some() {
        return Ok(());
    }
    for case in &suite.benchmark {
        let schedule = arm.schedule_for(&case.sizes, device);
        if let Some(violation) = case.sizes.violations(schedule, device).first() {
            let remedy = violation.remedies.first().map(|remedy| remedy.sentence.clone());
            return Err(CliError::bad_input(
                format!("`{text}` on {}: {violation}", case.name),
                remedy.unwrap_or_else(|| "`gauntlet schedules` explains the words".to_owned()),
            ));
        }
    }
    Ok(())
}

/// The task's own kernel to compare with: its reference, where that is a function in a file; else the built-in one.
pub fn own_baseline(task: &str) -> String {
    let path = Path::new(task);
    let candidates = [
        (path.join("reference.py"), "ref_kernel"),
        (path.join("task.py"), "reference"),
        (path.to_owned(), "reference"),
        (path.to_owned(), "Model"),
    ];
    let found = candidates.iter().find(|(file, function)| {
        file.extension().is_some_and(|ending| ending == "py")
            && gauntlet_host_python::inspect(file, function, &[]).is_ok()
    });
    found.map_or_else(
        || "builtin".to_owned(),
        |(file, function)| format!("{}:{function}", file.display()),
    )
}
