//! Round files: a baseline, pitches, a suite and the criteria, all fixed before anything is measured.

mod check;
mod named;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gauntlet_device::{Arch, Device};
use gauntlet_executor::Record;
use gauntlet_model::HostTerm;
use gauntlet_problem::{Case, InputKind, Suite, Tolerance};
use gauntlet_schedule::{DispatchTable, Schedule, ScheduleChange};
use gauntlet_stats::Criteria;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::pitch::Pitch;
use crate::predicted::HostCost;
use crate::source::{FileError, Source};

/// What a round file says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RoundFile {
    /// Its name, unique in the tournament.
    pub name: String,
    /// What it is about, in a sentence.
    pub title: String,
    /// What runs the candidates that bring no program of their own.
    pub executor: ExecutorKind,
    /// A built-in device, `host`, or a path to a device file.
    pub device: String,
    /// A built-in suite or a path to a suite file.
    pub suite: String,
    /// Only these of the suite's benchmark cases.
    #[serde(default)]
    pub cases: Vec<String>,
    /// What `replay` serves.
    #[serde(default)]
    pub record: Option<PathBuf>,
    /// What a call costs on the host, for `model`.
    #[serde(default)]
    pub host: Option<HostCost>,
    /// Where it starts from; without it, from what the round before ended with.
    #[serde(default)]
    pub baseline: Option<Baseline>,
    /// What counts as what.
    #[serde(default)]
    pub criteria: Criteria,
    /// How it is measured.
    #[serde(default)]
    pub measurement: Measurement,
    /// What counts as right.
    #[serde(default)]
    pub correctness: Correctness,
    /// Upper bounds on resources, by name.
    #[serde(default)]
    pub budgets: BTreeMap<String, f64>,
    /// The panel.
    #[serde(default)]
    pub judge: Vec<Judge>,
    /// Pitches in files of their own.
    #[serde(default)]
    pub pitches: Vec<PathBuf>,
    /// Pitches written here.
    #[serde(default)]
    pub pitch: Vec<Pitch>,
    /// Whether it is a research round, which starts the count of rounds without an adoption anew.
    #[serde(default)]
    pub research: bool,
}

/// What runs candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExecutorKind {
    /// This machine's CPU.
    Cpu,
    /// An NVIDIA GPU of this machine.
    Cuda,
    /// Recorded times.
    Replay,
    /// The model: nothing is run, so that the device need not be here.
    Model,
}

/// The candidate that all others are compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// The words in which it differs from the plainest schedule.
    #[serde(default)]
    pub schedule: ScheduleChange,
    /// A dispatch table, which says the schedule of each problem.
    #[serde(default)]
    pub dispatch: Option<PathBuf>,
    /// Someone else's program that speaks the worker protocol.
    #[serde(default)]
    pub command: Option<Vec<PathBuf>>,
}

/// How a round is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Measurement {
    /// Pairs of worker processes after which the figures are looked at; the last is the most there will be.
    pub looks: Vec<usize>,
    /// ABBA or BAAB blocks a problem and pair of processes.
    pub blocks: usize,
    /// Time for all of the round's comparisons together.
    pub budget: SignedDuration,
    /// Whether operands may stay in the caches between calls; otherwise they rotate over twice the last level.
    pub warm: bool,
}

impl Default for Measurement {
    fn default() -> Self {
        Self {
            // The last so late because what a process has by luck only more processes average out: where that is 1.5 %
            // a side, 9 pairs find a true 5 % in 84 of 100 simulated comparisons, 12 pairs in 97.
            looks: vec![4, 6, 12],
            blocks: 3,
            budget: SignedDuration::from_secs(120),
            warm: false,
        }
    }
}

/// What counts as right, against the f64 oracle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Correctness {
    /// The kinds of input tried on each case.
    pub inputs: Vec<InputKind>,
    /// Each element within `absolute + relative · |expected|`.
    pub tolerance: Tolerance,
    /// The most root-mean-square error, over the root mean square of the result.
    pub nrmse: f64,
    /// The most mean signed error, over the same; maximum error alone hides bias.
    pub bias: f64,
}

impl Default for Correctness {
    fn default() -> Self {
        Self {
            inputs: InputKind::ALL.to_vec(),
            // The tolerance of the competition that the GEMM suites come from.
            tolerance: Tolerance {
                relative: 1e-3,
                absolute: 1e-3,
            },
            // Rounding to f16 alone gives 2.1e-4 and no bias; twice that is generous for f32 sums.
            nrmse: 5e-4,
            bias: 1e-4,
        }
    }
}

/// A member of the panel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judge {
    /// A name.
    pub name: String,
    /// What counts for how much.
    pub weights: Weights,
    /// Scores given by hand, by pitch; those left out follow from the written rules.
    #[serde(default)]
    pub scores: BTreeMap<String, GivenScores>,
}

/// What counts for how much; adds up to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, try_from = "RawWeights")]
pub struct Weights {
    /// Expected speed-up.
    pub speedup: f64,
    /// Whether it can be built.
    pub feasibility: f64,
    /// Freedom from risk.
    pub risk: f64,
    /// How well it is argued.
    pub quality: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWeights {
    speedup: f64,
    feasibility: f64,
    risk: f64,
    quality: f64,
}

impl TryFrom<RawWeights> for Weights {
    type Error = String;

    fn try_from(
        RawWeights {
            speedup,
            feasibility,
            risk,
            quality,
        }: RawWeights,
    ) -> Result<Self, String> {
        let all = [speedup, feasibility, risk, quality];
        let sum: f64 = all.iter().sum();
        if all.iter().any(|weight| !(0.0..=1.0).contains(weight)) || (sum - 1.0).abs() > 1e-6 {
            return Err(format!(
                "weights {all:?} add up to {sum}: each lies in 0…1 and together they make 1"
            ));
        }
        Ok(Self {
            speedup,
            feasibility,
            risk,
            quality,
        })
    }
}

/// Scores from 0 to 10 given by hand; what is absent follows from the written rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenScores {
    /// Expected speed-up.
    pub speedup: Option<f64>,
    /// Whether it can be built.
    pub feasibility: Option<f64>,
    /// Freedom from risk.
    pub risk: Option<f64>,
    /// How well it is argued.
    pub quality: Option<f64>,
    /// The weighted score that the judge printed; compared with the arithmetic.
    pub printed: Option<f64>,
}

/// A round with everything that its file names read in and checked.
#[derive(Debug, Clone)]
pub struct Round {
    /// The file.
    pub source: Source<RoundFile>,
    /// What it runs on.
    pub device: Device,
    /// The suite's correctness cases.
    pub correctness_cases: Vec<Case>,
    /// The benchmark cases chosen.
    pub benchmark_cases: Vec<Case>,
    /// What `replay` serves.
    pub record: Option<Record>,
    /// The dispatch tables named, by their paths as written.
    pub dispatch: BTreeMap<PathBuf, DispatchTable>,
    /// All pitches, those from files first, in order.
    pub pitches: Vec<Pitch>,
    /// A digest of all that was read, so that criteria cannot change after the fact.
    pub digest: String,
}

/// What the command line may put in place of what a round says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Overrides {
    /// Another executor.
    pub executor: Option<ExecutorKind>,
    /// Another device.
    pub device: Option<String>,
    /// Another suite.
    pub suite: Option<String>,
    /// Another budget a round.
    pub budget: Option<SignedDuration>,
    /// Another cost of the host.
    pub host: Option<HostCost>,
}

impl Round {
    /// Reads a round file and all that it names.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Self, FileError> {
        let mut source: Source<RoundFile> = Source::read(path, "round")?;
        named::override_with(&mut source.value, overrides);
        check::check_host(&source, overrides)?;
        source.value.criteria.looks = source.value.measurement.looks.len();
        let mut texts = vec![source.text.clone(), format!("{overrides:?}")];
        let device = named::load_device(&source)?;
        let suite = named::load_suite(&source)?;
        let mut pitches = Vec::new();
        for file in &source.value.pitches {
            let pitch: Source<Pitch> = Source::read(&source.resolve(file), "pitch")?;
            texts.push(pitch.text.clone());
            pitches.push(pitch);
        }
        pitches.extend(source.value.pitch.iter().map(|pitch| source.with(pitch.clone())));
        let record = named::load_record(&source)?;
        let dispatch = named::load_dispatch(&source, &pitches)?;
        texts.push(serde_json::to_string(&(named::lasting(&device), &suite, &record)).unwrap_or_default());
        texts.extend(dispatch.values().map(|table| format!("{table:?}")));
        check::check(&source, &pitches)?;
        let benchmark_cases = named::chosen_cases(&source, &suite)?;
        check::check_loops(&source, &pitches, &benchmark_cases)?;
        let pitches: Vec<Pitch> = pitches.into_iter().map(|pitch| pitch.value).collect();
        texts.extend(named::digests_of_named_files(&source, &suite, &pitches));
        let digest = digest_of(&texts);
        Ok(Self {
            source,
            device,
            correctness_cases: suite.correctness,
            benchmark_cases,
            record,
            dispatch,
            pitches,
            digest,
        })
    }

    /// A round without pitches, for one comparison outside any file.
    pub fn ad_hoc(device: Device, suite: &Suite, measurement: Measurement, criteria: Criteria) -> Self {
        let executor = match device.arch {
            Arch::Cpu => ExecutorKind::Cpu,
            Arch::Sm80 | Arch::Sm89 | Arch::Sm90a | Arch::Sm100a => ExecutorKind::Cuda,
        };
        let value = RoundFile {
            name: "comparison".to_owned(),
            title: suite.description.clone(),
            executor,
            device: device.name.clone(),
            suite: suite.name.clone(),
            cases: Vec::new(),
            record: None,
            host: None,
            baseline: None,
            criteria: Criteria {
                looks: measurement.looks.len(),
                ..criteria
            },
            measurement,
            correctness: Correctness::default(),
            budgets: BTreeMap::new(),
            judge: Vec::new(),
            pitches: Vec::new(),
            pitch: Vec::new(),
            research: false,
        };
        Self {
            source: Source {
                path: PathBuf::from("command line"),
                text: String::new(),
                value,
            },
            device,
            correctness_cases: suite.correctness.clone(),
            benchmark_cases: suite.benchmark.clone(),
            record: None,
            dispatch: BTreeMap::new(),
            pitches: Vec::new(),
            digest: String::new(),
        }
    }

    /// What the file says.
    pub fn file(&self) -> &RoundFile {
        &self.source.value
    }

    /// A program as a round file names it; one with a slash is sought from the file's folder.
    pub fn command(&self, command: &Option<Vec<PathBuf>>) -> Option<Vec<PathBuf>> {
        let mut command = command.clone()?;
        if let Some(program) = command.first_mut()
            && program.components().count() > 1
        {
            *program = std::path::absolute(self.source.resolve(program)).unwrap_or_else(|_| program.clone());
        }
        Some(command)
    }

    /// What a call costs on the host; nothing where the file does not say.
    pub fn host_term(&self) -> HostTerm {
        self.file()
            .host
            .as_ref()
            .map_or_else(HostTerm::default, HostCost::term)
    }

    /// A dispatch table as a round file or a pitch names it.
    pub fn dispatch(&self, file: &Option<PathBuf>) -> Option<DispatchTable> {
        self.dispatch.get(file.as_ref()?).cloned()
    }

    /// The round's own baseline, if it does not start from the round before.
    pub fn baseline_schedule(&self) -> Option<Schedule> {
        self.file()
            .baseline
            .as_ref()
            .map(|baseline| baseline.schedule.apply(&Schedule::baseline()))
    }
}

/// A digest over several texts, in order.
pub fn digest_of<T: AsRef<str>>(texts: &[T]) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&(text.as_ref().len() as u64).to_le_bytes());
        hasher.update(text.as_ref().as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
