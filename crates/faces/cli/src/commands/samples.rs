//! `gauntlet compare --samples`: a verdict on measurements that another program made.

use std::collections::BTreeMap;
use std::path::Path;

use gauntlet_foreign_measurements::{Measurements, read, read_both};
use gauntlet_judge::{ComparisonReport, KernelReport, Verdict};
use gauntlet_stats::{Arm, Criteria};

use crate::arguments::Compare;
use crate::commands::contest::deliver;
use crate::commands::run::version;
use crate::error::CliError;
use crate::exit::Exit;
use crate::recording::Recorder;

/// Judges the files that take the place of two kernels.
pub fn compare(arguments: &Compare) -> Result<Exit, CliError> {
    let files = &arguments.contest.files;
    files.check()?;
    let texts = [Some(&arguments.baseline), arguments.candidate.as_ref()];
    let [baseline, candidate] = match texts {
        [Some(baseline), Some(candidate)] => [side(baseline)?, side(candidate)?],
        _ => read_both(Path::new(&arguments.baseline))?,
    };
    let criteria = Criteria::default();
    let named = texts.into_iter().flatten().flat_map(|text| text.split(','));
    let sources = gauntlet_entrants::digests_of(named.map(|file| file.trim().into()).collect());
    let recording = &arguments.contest.recording;
    let recorder = Recorder::open(&recording.ledger, recording.no_ledger, sources)?;
    let between = arguments.between_processes.map(|percent| percent / 100.0);
    let compared = gauntlet_foreign_measurements::compare(&baseline, &candidate, &criteria, between)?;
    let names = names(&baseline, &candidate);
    let [baseline_name, candidate_name] = names;
    let programs = match baseline.program == candidate.program {
        true => baseline.program.to_owned(),
        false => format!("{} and {}", baseline.program, candidate.program),
    };
    let comparison = compared.comparison;
    let report = ComparisonReport {
        task: format!("measurements by {programs}"),
        notes: compared.notes,
        baseline: kernel(texts[0], baseline_name, &baseline),
        candidate: kernel(texts[1].or(texts[0]), candidate_name, &candidate),
        criteria,
        version: version(),
        // The times say nothing about this machine.
        environment: BTreeMap::from([("measured by".to_owned(), programs)]),
        findings: Vec::new(),
        side: Arm::Candidate,
        verdict: Verdict::from(comparison.assessment.decision),
        reason: comparison.reason(),
        comparison: Some(comparison),
        kept: None,
    };
    deliver(&report, &arguments.contest, None, &recorder)
}

/// The files of one side, separated by commas: each adds its processes.
fn side(text: &str) -> Result<Measurements, CliError> {
    let files: Result<Vec<_>, _> = text.split(',').map(|file| read(Path::new(file.trim()))).collect();
    Ok(Measurements::merged(files?)?)
}

/// Short names of the two sides: what was measured if that is one thing with a name of its own, else the files' names.
fn names(baseline: &Measurements, candidate: &Measurements) -> [String; 2] {
    if let ([one], [other]) = (&baseline.benchmarks[..], &candidate.benchmarks[..])
        && one.name != other.name
    {
        return [one.name.clone(), other.name.clone()];
    }
    let stem = |side: &Measurements| {
        let stem = side.path.file_stem();
        stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
    };
    let [one, other] = [stem(baseline), stem(candidate)];
    if one == other {
        return ["the baseline".to_owned(), "the candidate".to_owned()];
    }
    [one, other]
}

fn kernel(text: Option<&String>, name: String, side: &Measurements) -> KernelReport {
    let text = text.cloned().unwrap_or_default();
    KernelReport {
        described: format!("{text} ({})", side.program),
        text,
        name,
        parameters: None,
        command: None,
        dispatch: None,
    }
}
