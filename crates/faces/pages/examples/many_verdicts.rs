//! Makes a ledger of many verdicts, for tests of the pages: `cargo run --release -p gauntlet-pages --example many_verdicts -- FROM TO COUNT`.
//!
//! Each is the newest comparison of the ledger FROM, as if it were of another of forty tasks, kernels and commits. Every fifth is a regression.

use std::path::Path;

use gauntlet_judge::ledger::{Commit, Index, Ledger, RunStart, Wanted};

/// How many tasks, and kernels of each.
const TASKS: usize = 40;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, count] = &words[..] else {
        return Err("give the ledger that holds a comparison, the one to make, and how many verdicts".into());
    };
    let source = Ledger::open_read_only(Path::new(from))?;
    let newest = Index::of(&source)?.verdicts(&Wanted::default())?;
    let compared = newest.iter().find(|one| one.command == "compare");
    let run = &compared.ok_or("the ledger holds no comparison")?.run;
    let judgement = source.judgement(run)?.ok_or("the run left no record")?;
    let ledger = Ledger::open(Path::new(to))?;
    for number in 0..count.parse()? {
        let mut record = judgement.clone();
        record.task = format!("task-{:02}", number % TASKS);
        if number % 5 == 0 {
            record.verdict = Some("regression".to_owned());
        }
        for kernel in &mut record.kernels {
            let version = number / TASKS;
            kernel.text = format!("kernels.py:version_{version}");
            kernel.digest = format!("{version:064x}");
            kernel.commit = Some(Commit {
                id: format!("{version:040x}"),
                kernel: "kernels.py:fast".to_owned(),
                changed: false,
            });
        }
        let start = RunStart {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            file: "compare".to_owned(),
            digest: String::new(),
            environment: record.document.get("environment").cloned().unwrap_or_default(),
        };
        ledger.record_judgement(&start, &record, None)?;
    }
    Ok(())
}
