//! `gauntlet audit`.

use gauntlet_audit::{AuditReport, Weight};

use crate::arguments::Audit;
use crate::documents::Document;
use crate::error::CliError;
use crate::exit::Exit;
use crate::listing;
use crate::progress::Progress;
use crate::requirement::{Conclusion, Standing};
use crate::sink;

impl Document for AuditReport {
    const NAME: &'static str = "audit";
    const VERSION: u32 = 1;
}

/// Says which kernels that leave work out a task takes as right.
pub fn audit(arguments: &Audit) -> Result<Exit, CliError> {
    arguments.json.check()?;
    let report = of_task(&arguments.task)?;
    arguments.json.deliver(&report, || tell(&report))?;
    Ok(Conclusion::worst(vec![standing(&report)]).exit("the audit"))
}

/// The audit of a task by its name or file.
pub fn of_task(task: &str) -> Result<AuditReport, CliError> {
    let suite = gauntlet_entrants::find_task(task)?;
    let progress = Progress::new();
    gauntlet_audit::audit(&suite, &|message| progress.show(message)).map_err(CliError::of_input)
}

/// What the audit says of the task, for the exit code.
pub fn standing(report: &AuditReport) -> (Standing, String) {
    match report.is_blind() {
        true => (Standing::Failed, format!("{} is blind", report.task)),
        false => (Standing::Met, String::new()),
    }
}

/// Prints an audit.
pub fn tell(report: &AuditReport) -> Result<(), CliError> {
    for note in &report.notes {
        sink::print(format_args!("note: {note}"))?;
    }
    let rows = report.kernels.iter().map(|tried| {
        let result = match (tried.passes, tried.leaves_work_out) {
            (0, true) => "refused",
            (0, false) => "not right",
            (_, true) => "passes",
            (_, false) => "right",
        };
        vec![
            tried.kernel.to_string(),
            tried.of.clone().unwrap_or_else(|| "–".to_owned()),
            tried.cases.to_string(),
            tried.passes.to_string(),
            result.to_owned(),
        ]
    });
    listing::print(&["null kernel", "of", "cases", "passes", "result"], rows)?;
    for finding in &report.findings {
        let kind = match finding.weight {
            Weight::Blind => "blind",
            Weight::Accepted => "accepted",
            Weight::Note => "note",
        };
        sink::print(format_args!("{kind}: {}", finding.text))?;
    }
    let score = report
        .score
        .map_or_else(String::new, |score| format!(", score {:.0} %", 100.0 * score));
    let cases = report.cases.len();
    sink::line(format_args!(
        "{}: {} of {} null kernels that leave work out are refused, on {cases} {}{score}",
        report.task,
        report.refused,
        report.tried,
        if cases == 1 { "case" } else { "cases" },
    ))
}
