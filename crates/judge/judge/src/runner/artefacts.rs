//! What a candidate's own program compiles, kept from its build to its trials.

use std::path::Path;

use gauntlet_worker::{Artefacts, WorkerError};
use tempfile::TempDir;

use crate::evidence::JudgeError;

/// What became of building a candidate once.
#[derive(Debug)]
pub enum Build {
    /// Its trials may read what it made.
    Kept,
    /// It was built before, made nothing, or has no program of its own.
    NotNeeded,
    /// It failed. It will fail in its trials too, where that is reported.
    Failed(WorkerError),
}

/// A candidate's artefacts and their folder, which is removed when this is dropped.
#[derive(Debug)]
pub struct Built {
    /// As the build may use them.
    pub artefacts: Artefacts,
    _folder: TempDir,
}

impl Built {
    /// A new folder among the workers' folders, where only workers that are given it can read it.
    pub fn prepare(workers_folder: &Path) -> Result<Self, JudgeError> {
        let failed = |source| JudgeError::Files {
            what: "the folder for artefacts cannot be made".to_owned(),
            place: workers_folder.display().to_string(),
            source,
        };
        let folder = tempfile::Builder::new()
            .prefix("artefacts-")
            .tempdir_in(workers_folder)
            .map_err(failed)?;
        let artefacts = Artefacts::prepare(folder.path()).map_err(failed)?;
        Ok(Self {
            artefacts,
            _folder: folder,
        })
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use gauntlet_parameters::Parameters;
    use gauntlet_stats::Arm;
    use gauntlet_worker::protocol::VERSION;
    use gauntlet_worker::{Limits, Standing, Timeouts, WorkerCommand, safeguards};

    use super::*;
    use crate::evidence::Candidate;
    use crate::runner::Workshop;

    fn workshop() -> Workshop {
        Workshop::new(WorkerCommand::new("", []), Timeouts::default(), Limits::default()).unwrap()
    }

    /// A candidate whose program runs a script before it describes itself.
    fn candidate(script: &str) -> Candidate {
        let description = format!(
            r#"{{"id":1,"answer":"description","protocol":{VERSION},"worker":"shell","device":"host","details":{{}}}}"#
        );
        let script = format!("read line; {script}; echo '{description}'; read line");
        Candidate {
            command: Some(vec!["/bin/sh".into(), "-c".into(), script.into()]),
            ..Candidate::new("candidate", Parameters::new())
        }
    }

    fn build(workshop: &Workshop, arm: Arm, candidate: &Candidate) -> Build {
        workshop.build_once(arm, candidate, |_| Ok(())).unwrap()
    }

    /// What a trial's worker finds in the file `found` of its own folder.
    fn found(workshop: &Workshop, arm: Arm, candidate: &Candidate) -> String {
        let (worker, _) = workshop.start_trial(arm, candidate).unwrap();
        std::fs::read_to_string(worker.folder().join("found")).unwrap()
    }

    /// Compiles unless the cache has the kernel; `found` tells which.
    const COMPILES_ONCE: &str = r#"kernel="$TRITON_CACHE_DIR/kernel"
        if [ -e "$kernel" ]; then echo kept > found; else echo code > "$kernel" || exit 1; echo compiled > found; fi"#;

    #[test]
    fn what_a_candidate_compiled_is_there_in_its_trials_and_in_no_others() {
        let workshop = workshop();
        let candidate = candidate(COMPILES_ONCE);
        assert_eq!(found(&workshop, Arm::Candidate, &candidate), "compiled\n");
        assert!(matches!(
            build(&workshop, Arm::Candidate, &candidate),
            Build::Kept
        ));
        assert_eq!(found(&workshop, Arm::Candidate, &candidate), "kept\n");
        assert_eq!(found(&workshop, Arm::Candidate, &candidate), "kept\n");
        assert_eq!(found(&workshop, Arm::Baseline, &candidate), "compiled\n");
        // Once is enough.
        assert!(matches!(
            build(&workshop, Arm::Candidate, &candidate),
            Build::NotNeeded
        ));
    }

    #[test]
    fn a_candidate_that_must_write_compiles_in_every_trial() {
        let enforced = safeguards().into_iter().any(|one| {
            one.what == "writes only in its own folder" && matches!(one.standing, Standing::Active(_))
        });
        if !enforced {
            println!("skipped, since nothing here keeps a worker from writing");
            return;
        }
        let workshop = workshop();
        let candidate =
            candidate(r#"echo x > "$TRITON_CACHE_DIR/lock" || exit 1; echo "$TRITON_CACHE_DIR" > found"#);
        let built = build(&workshop, Arm::Candidate, &candidate);
        assert!(matches!(built, Build::Kept), "{built:?}");
        assert!(workshop.start_trial(Arm::Candidate, &candidate).is_err());
        assert!(workshop.give_up_build(Arm::Candidate, &candidate));
        assert!(
            !workshop.give_up_build(Arm::Candidate, &candidate),
            "it was given up"
        );
        let (worker, _) = workshop.start_trial(Arm::Candidate, &candidate).unwrap();
        let cache = std::fs::read_to_string(worker.folder().join("found")).unwrap();
        assert_eq!(Path::new(cache.trim()), worker.folder());
    }

    #[test]
    fn a_candidate_that_caches_nothing_needs_no_folder() {
        let workshop = workshop();
        let silent = candidate(":");
        assert!(matches!(
            build(&workshop, Arm::Baseline, &silent),
            Build::NotNeeded
        ));
        let built_in = Candidate::new("built-in", Parameters::new());
        assert!(matches!(
            build(&workshop, Arm::Baseline, &built_in),
            Build::NotNeeded
        ));
        let broken = Candidate {
            name: "broken".to_owned(),
            ..candidate("exit 1")
        };
        let built = build(&workshop, Arm::Baseline, &broken);
        assert!(matches!(built, Build::Failed(_)), "{built:?}");
    }
}
