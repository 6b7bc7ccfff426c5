//! Round files: a baseline, pitches, a suite and the criteria, all fixed before anything is measured.

mod changes;
mod check;
mod file;
mod kernels;
mod named;
mod pitches;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gauntlet_entrants::{EntrantError, FileError, Source};
use gauntlet_judge::{Candidate, ExecutorKind, Setting, Verdict};
use gauntlet_parameters::Parameters;
use gauntlet_task::{DispatchTable, Suite};
use gauntlet_worker::Record;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

pub(crate) use self::check::live_pitch;
pub use self::file::{Baseline, GivenScores, PanelMember, RoundFile, Weights};
pub(crate) use self::named::lasting;
use self::pitches::Pitches;
use crate::participants;
pub use crate::participants::Participant;
use crate::pitch::Pitch;
use crate::records::BASELINE;
use crate::source::{Protected, SourceChange, Tree};

/// A round with everything that its file names, read and checked.
#[derive(Debug, Clone)]
pub struct Round {
    /// The file.
    pub source: Source<RoundFile>,
    /// The device, the chosen cases and the rules, in the form that the judge takes.
    pub setting: Setting,
    /// The record that `replay` serves.
    pub record: Option<Record>,
    /// The dispatch tables named, by their paths as written.
    pub dispatch: BTreeMap<PathBuf, DispatchTable>,
    /// The task.
    pub suite: Suite,
    /// The kernels that the baseline and pitches name, by the name of the baseline or the pitch.
    pub kernels: BTreeMap<String, Candidate>,
    /// The source that pitches change, as it was read.
    pub tree: Option<Tree>,
    /// What pitches may not change of it.
    pub protected: Protected,
    /// The changes of pitches to the source, by pitch.
    pub changes: BTreeMap<String, SourceChange>,
    /// All pitches, those from files first, in order.
    pub pitches: Vec<Pitch>,
    /// What is wrong with pitches that others put into the round's folders, and that are therefore not played.
    pub left_out: Vec<String>,
    /// The contestants, those of the tournament first.
    pub contestants: Vec<Participant>,
    /// The panellists, those of the tournament first.
    pub panellists: Vec<Participant>,
    /// Pitches that were not built: the verdict, and why.
    pub unbuilt: BTreeMap<String, (Verdict, String)>,
    /// A digest of everything that was read, so that criteria cannot change afterwards.
    pub digest: String,
    /// The same without the device, which may be another one where its candidates are examined elsewhere, and without participants.
    pub content: String,
}

/// Replacements from the command line for values in a round file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overrides {
    /// Another executor.
    pub executor: Option<ExecutorKind>,
    /// Another device.
    pub device: Option<String>,
    /// Another suite.
    pub suite: Option<String>,
    /// Another budget for each round.
    pub budget: Option<SignedDuration>,
}

impl Round {
    /// Reads a round file and everything that it names.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Self, EntrantError> {
        let mut source: Source<RoundFile> = Source::read(path, "round")?;
        named::override_with(&mut source.value, overrides);
        source.value.criteria.looks = source.value.measurement.looks.len();
        source.value.criteria.open_ended = source.value.measurement.open_ended;
        let mut texts = vec![source.text.clone(), format!("{overrides:?}")];
        let device = named::load_device(&source)?;
        let suite = kernels::load_suite(&source)?;
        let Pitches {
            all: pitches,
            left_out,
            dispatch,
            changes,
            kernels: named,
        } = Pitches::load(&source, &suite)?;
        texts.extend(pitches.iter().map(|pitch| pitch.text.clone()));
        texts.extend(left_out.iter().map(ToString::to_string));
        let record = named::load_record(&source)?;
        texts.push(serde_json::to_string(&(&suite, &record)).unwrap_or_default());
        texts.extend(dispatch.values().map(|table| format!("{table:?}")));
        let parameters = suite.parameters();
        let benchmark_cases = named::chosen_cases(&source, &suite)?;
        participants::check(&source, &source.value.contestant, &source.value.panellist)?;
        let contestants = participants::contestants(&source, &source.value.contestant);
        let panellists = participants::panellists(&source, &source.value.panellist);
        let tree = changes::load_tree(&source)?;
        let protected = changes::protected(&source);
        let pitches: Vec<Pitch> = pitches.into_iter().map(|pitch| pitch.value).collect();
        texts.extend(kernels::digests_of_files(&source, &suite, &named, &pitches));
        texts.extend(tree.as_ref().map(Tree::digest));
        texts.push(serde_json::to_string(&changes).unwrap_or_default());
        let content = digest_of(&texts);
        let lasting = serde_json::to_string(&named::lasting(&device)).unwrap_or_default();
        let participating = participants::digest(contestants.iter().chain(&panellists));
        let digest = digest_of(&[&content, &lasting, &participating]);
        let file = &source.value;
        let setting = Setting {
            device,
            correctness_cases: suite.correctness.clone(),
            benchmark_cases,
            parameters,
            rules: file.correctness.clone(),
            criteria: file.criteria.clone(),
            measurement: file.measurement.clone(),
            budgets: file.budgets.clone(),
        };
        Ok(Self {
            source,
            setting,
            record,
            dispatch,
            suite,
            kernels: named.candidates,
            left_out: left_out.iter().map(told).collect(),
            tree,
            protected,
            changes,
            pitches,
            contestants,
            panellists,
            unbuilt: BTreeMap::new(),
            digest,
            content,
        })
    }

    /// The round as often as it is played.
    pub(crate) fn repeated(self) -> Vec<Self> {
        let Some(times) = self.file().repeat else {
            return vec![self];
        };
        let numbered = |number: usize| {
            let mut round = self.clone();
            round.source.value.name = format!("{}-{number}", self.file().name);
            // The first begins with what the file says, the others with the result of the one before.
            if number > 1 && round.tree.is_none() {
                round.source.value.baseline = None;
                round.kernels.remove(BASELINE);
            }
            round.digest = digest_of(&[self.digest.as_str(), &number.to_string()]);
            round
        };
        (1..=times.get()).map(numbered).collect()
    }

    /// Adds the participants of its tournament, before its own.
    pub(crate) fn join(
        &mut self,
        mut contestants: Vec<Participant>,
        mut panellists: Vec<Participant>,
    ) -> Result<(), FileError> {
        let all = contestants.iter().chain(&panellists);
        let own = self.contestants.iter().chain(&self.panellists);
        if let Some(twice) = own
            .clone()
            .find(|own| all.clone().any(|one| one.name == own.name))
        {
            let message = format!("`{}` takes part in the tournament too", twice.name);
            return Err(self.source.error_at(
                &twice.name,
                message,
                "give each participant a name of its own",
            ));
        }
        self.digest = digest_of(&[self.digest.as_str(), &participants::digest(all)]);
        contestants.append(&mut self.contestants);
        panellists.append(&mut self.panellists);
        (self.contestants, self.panellists) = (contestants, panellists);
        Ok(())
    }

    /// The content of the file.
    pub fn file(&self) -> &RoundFile {
        &self.source.value
    }

    /// A program as a round file names it; a name with a slash is relative to the file's folder.
    pub fn command(&self, command: &Option<Vec<PathBuf>>) -> Option<Vec<PathBuf>> {
        let mut command = command.clone()?;
        if let Some(program) = command.first_mut()
            && program.components().count() > 1
        {
            *program = std::path::absolute(self.source.resolve(program)).unwrap_or_else(|_| program.clone());
        }
        Some(command)
    }

    /// A dispatch table that a round file or a pitch names.
    pub fn dispatch(&self, file: &Option<PathBuf>) -> Option<DispatchTable> {
        self.dispatch.get(file.as_ref()?).cloned()
    }

    /// The candidate that a pitch makes from the candidate it builds on, as far as it is no change to a source. The pitch's
    /// parameters change how that candidate's program is built, unless the pitch brings its own program.
    pub fn pitched(&self, pitch: &Pitch, onto: &Candidate) -> Candidate {
        if let Some(kernel) = self.kernels.get(&pitch.name) {
            return Candidate {
                name: pitch.name.clone(),
                ..kernel.clone()
            };
        }
        let changed = onto.changed(&pitch.name, &pitch.schedule);
        Candidate {
            command: self.command(&pitch.command).or(changed.command),
            dispatch: self.dispatch(&pitch.dispatch).or(changed.dispatch),
            ..changed
        }
    }

    /// The round with its panellists following the written rules, as where nobody is asked.
    pub(crate) fn with_rules(&self) -> Self {
        let mut round = self.clone();
        let members = self.panellists.iter().map(|one| PanelMember {
            name: one.name.clone(),
            weights: one.weights,
            scores: BTreeMap::new(),
        });
        round.source.value.judge.extend(members);
        round
    }

    /// The changes to the source that a pitch builds on, the first at the bottom.
    pub(crate) fn stacked(&self, after: Option<&str>) -> Vec<SourceChange> {
        let mut changes = Vec::new();
        let mut next = after;
        // Files with circular dependencies are rejected, and a contestant's pitch comes after an earlier one.
        while let Some(name) = next {
            changes.extend(self.changes.get(name).cloned());
            let pitch = self.pitches.iter().find(|pitch| pitch.name == name);
            next = pitch.and_then(|pitch| pitch.after.as_deref());
        }
        changes.reverse();
        changes
    }

    /// What identifies the change of a pitch: the words and the program, or the lines that it changes in the source.
    pub fn identity(&self, pitch: &Pitch) -> String {
        match self.changes.get(&pitch.name) {
            Some(change) => change.identity(&pitch.schedule),
            None => pitch.identity(),
        }
    }

    /// A baseline in one line: its kernel, or its parameters.
    pub fn described(&self, baseline: &Candidate) -> String {
        let file = self.file();
        let named = file
            .baseline
            .as_ref()
            .and_then(|baseline| baseline.kernel.as_ref());
        let named = named.or(file.source.as_ref().map(|source| &source.kernel));
        match named {
            Some(kernel) if baseline.command.is_some() => kernel.clone(),
            _ => self.setting.parameters.describe(&baseline.schedule),
        }
    }

    /// The parameters of the round's own baseline, unless it starts from the previous round.
    pub fn baseline_schedule(&self) -> Option<Parameters> {
        let baseline = self.file().baseline.as_ref()?;
        Some(self.setting.parameters.complete(&baseline.schedule))
    }
}

/// What is said of a pitch that is left out.
fn told(fault: &FileError) -> String {
    format!("this pitch is left out: {fault}; {}", fault.remedy)
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

#[cfg(test)]
impl Round {
    /// A round without pitches, not in any file.
    fn without_pitches(device: gauntlet_device::Device, suite: &gauntlet_task::Suite) -> Self {
        let executor = match device.arch {
            gauntlet_device::Arch::Cpu => "cpu",
            _ => "cuda",
        };
        let value: RoundFile = toml::from_str(&format!(
            "name = 'a round'\ntitle = 'of a test'\nexecutor = '{executor}'\ndevice = '{}'\nsuite = '{}'",
            device.name, suite.name
        ))
        .unwrap();
        Self {
            setting: Setting::new(
                device,
                suite,
                gauntlet_judge::Measurement::default(),
                gauntlet_stats::Criteria::default(),
            ),
            source: Source {
                path: PathBuf::from("round.toml"),
                text: String::new(),
                value,
            },
            record: None,
            dispatch: BTreeMap::new(),
            suite: suite.clone(),
            kernels: BTreeMap::new(),
            tree: None,
            protected: Protected::default(),
            changes: BTreeMap::new(),
            contestants: Vec::new(),
            panellists: Vec::new(),
            unbuilt: BTreeMap::new(),
            pitches: Vec::new(),
            left_out: Vec::new(),
            digest: String::new(),
            content: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_device::Device;
    use gauntlet_parameters::Value;

    use super::*;
    use crate::panel::fixture::pitch;

    #[test]
    fn a_pitch_may_bring_a_program_and_a_fallback_keeps_that_of_its_control() {
        let suite = gauntlet_families::suite("group-gemm").unwrap();
        let round = Round::without_pitches(Device::host(), &suite);
        let own = Some(vec![PathBuf::from("worker")]);
        let baseline = Candidate {
            command: own.clone(),
            ..Candidate::new("baseline", Parameters::new())
        };
        let mut pitch = pitch("two stages");
        let pitched = round.pitched(&pitch, &baseline);
        assert_eq!(
            (pitched.name.as_str(), pitched.schedule.get("stages")),
            ("two stages", Some(&Value::Number(2)))
        );
        assert_eq!(pitched.command, own);
        pitch.command = Some(vec![PathBuf::from("other")]);
        assert_eq!(round.pitched(&pitch, &baseline).command, pitch.command);
        let fallback = baseline.changed("fallback", pitch.fallback.schedule.as_ref().unwrap());
        assert_eq!(fallback.command, own);
        assert_eq!(fallback.schedule.get("stages"), Some(&Value::Number(1)));
    }
}
