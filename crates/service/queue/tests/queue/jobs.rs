//! One-shot jobs. A shell script stands for the program that judges.

use std::fs;
use std::path::PathBuf;

use gauntlet_queue::{Blobs, Job, JobEnd, Ticket, run_job};
use gauntlet_worker::Program;

use super::*;

/// A folder with a script, which is called as the command that judges: `$3` is the file of `--json`, `$5` that of `--markdown`.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "echo run >>'{0}/runs'\nout='{0}/out'\n{script}\n",
            folder.path().display()
        );
        fs::write(folder.path().join("program"), script).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, ticket: &Ticket) -> JobEnd {
        let program = Program {
            file: "/bin/sh".into(),
            arguments: vec![self.path("program").into()],
        };
        let job = Job {
            ticket,
            blobs: &Blobs::in_folder(self.path("blobs")),
            out: &self.path("out"),
            program: &program,
            prepare: &|_| {},
            started: &|_| {},
        };
        run_job(&job).unwrap()
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.path("runs"))
            .unwrap_or_default()
            .lines()
            .count()
    }

    fn result(&self) -> JobResult {
        serde_json::from_slice(&fs::read(self.path("out/one.json")).unwrap()).unwrap()
    }

    /// What is noted of attempts: the exit code, and whether it was published.
    fn attempts(&self) -> Vec<(i64, bool)> {
        let entries = fs::read_dir(self.path("out/attempts"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let notes = entries.filter(|path: &PathBuf| path.extension() == Some("json".as_ref()));
        let read = |path: PathBuf| {
            let note: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            (
                note["exit"].as_i64().unwrap(),
                note["is-published"].as_bool().unwrap(),
            )
        };
        notes.map(read).collect()
    }
}

fn ticket() -> Ticket {
    Ticket {
        id: "one".to_owned(),
        client: Some("agent".to_owned()),
        judgement: compare("stages=2"),
        folder: Some("softmax".to_owned()),
        files: Default::default(),
    }
}

const FASTER: &str = r#"echo '{"verdict": "adopt"}' >"$3"; echo '### faster' >"$5""#;

#[test]
fn a_job_is_run_once_and_publishes_what_it_found() {
    let place = Place::new(FASTER);
    let published = JobEnd {
        exit: 0,
        was_known: false,
        reason: None,
    };
    assert_eq!(place.run(&ticket()), published);
    let result = place.result();
    assert_eq!(
        (result.state, result.verdict.as_deref()),
        (State::Decided, Some("adopt"))
    );
    assert_eq!(result.report, "### faster");
    assert!(place.run(&ticket()).was_known);
    assert_eq!((place.runs(), place.attempts()), (1, vec![(0, true)]));
    let left: Vec<_> = fs::read_dir(place.path("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "nothing but the result and the attempts: {left:?}");
}

#[test]
fn a_command_that_dies_publishes_nothing() {
    for (script, exit, reason) in [
        ("echo broken >&2; exit 3", 3, "exit code 3: broken"),
        ("kill -9 $$", 3, "killed by signal 9"),
        ("exit 0", 3, "exit code 0"),
        (&format!("{FASTER}; exit 130"), 130, "exit code 130"),
    ] {
        let place = Place::new(script);
        let end = place.run(&ticket());
        assert_eq!((end.exit, end.reason.as_deref()), (exit, Some(reason)));
        assert!(!place.path("out/one.json").exists());
        assert_eq!(place.attempts(), [(i64::from(exit), false)]);
        place.run(&ticket());
        assert_eq!(place.runs(), 2, "another attempt may succeed");
    }
}

#[test]
fn an_attempt_goes_on_with_the_pairs_of_the_one_that_was_interrupted() {
    let place = Place::new(
        r#"echo "$@" >>"$out/../words"
        if [ -e "$3" ]; then grep -q one "$3" && echo '{"verdict": "adopt"}' >"$3"; echo '### all' >"$5"; exit 0; fi
        echo '{"verdict": "inconclusive", "kept": {"observations": {"interrupted": true, "pairs": ["one"]}}}' >"$3"; exit 130"#,
    );
    assert_eq!(place.run(&ticket()).exit, 130);
    assert_eq!(place.run(&ticket()).exit, 0);
    assert_eq!(place.result().verdict.as_deref(), Some("adopt"));
    let words = fs::read_to_string(place.path("words")).unwrap();
    let resumed: Vec<bool> = words.lines().map(|line| line.contains("--resume")).collect();
    assert_eq!(resumed, [false, true]);
    let is_pairs = |name: &str| name.ends_with(".pairs");
    let left = fs::read_dir(place.path("out/attempts")).unwrap();
    let left = left.filter(|entry| is_pairs(&entry.as_ref().unwrap().file_name().to_string_lossy()));
    assert_eq!(left.count(), 0, "what was published is kept once");
}

#[test]
fn what_an_interrupted_attempt_kept_is_no_result_of_the_next() {
    // The next one finds the machine busy, and writes nothing.
    let place = Place::new(
        r#"if [ -e "$3" ]; then exit 4; fi
        echo '{"verdict": "inconclusive", "kept": {"observations": {"interrupted": true}}}' >"$3"; exit 130"#,
    );
    place.run(&ticket());
    let end = place.run(&ticket());
    assert_eq!(end.reason.as_deref(), Some("exit code 4"));
    assert!(!place.path("out/one.json").exists());
}

#[test]
fn words_that_are_wrong_fail_the_ticket_for_good() {
    let place = Place::new("echo 'there is no task t.py' >&2; exit 2");
    assert_eq!(place.run(&ticket()).exit, 2);
    let result = place.result();
    assert_eq!(
        (result.state, result.report.as_str()),
        (State::Failed, "there is no task t.py")
    );
}

#[test]
fn the_first_to_publish_counts() {
    // Another machine publishes while this one measures.
    let other = serde_json::to_string(&JobResult {
        exit: 1,
        ..found("one", "incorrect")
    })
    .unwrap();
    let place = Place::new(&format!("{FASTER}\necho '{other}' >\"$out/one.json\""));
    let end = place.run(&ticket());
    assert_eq!(
        (end.exit, end.was_known),
        (1, true),
        "the exit code is that of the result that counts"
    );
    assert_eq!(place.result().verdict.as_deref(), Some("incorrect"));
    assert_eq!(place.attempts(), [(1, false)]);
}

#[test]
fn a_job_runs_on_the_sources_of_its_ticket() {
    let place = Place::new(&format!(
        "{FASTER}\necho $GAUNTLET_CLIENT $(basename \"$PWD\") >\"$out/seen\"; cat kernels/k.py >>\"$out/seen\""
    ));
    let blobs = Blobs::in_folder(place.path("blobs"));
    let mut ticket = ticket();
    let contents = blobs.put(b"def f(): ...").unwrap();
    ticket.files.insert("kernels/k.py".to_owned(), contents);
    place.run(&ticket);
    let seen = fs::read_to_string(place.path("out/seen")).unwrap();
    assert_eq!(seen, "agent softmax\ndef f(): ...");
    let missing = Ticket {
        id: "two".to_owned(),
        files: [("k.py".to_owned(), "0".repeat(64))].into(),
        ..ticket
    };
    let program = Program::new("/bin/false");
    let error = run_job(&Job {
        ticket: &missing,
        blobs: &blobs,
        out: &place.path("out"),
        program: &program,
        prepare: &|_| {},
        started: &|_| {},
    });
    assert!(error.unwrap_err().to_string().contains("k.py"));
    assert!(!place.path("out/two.json").exists());
}
