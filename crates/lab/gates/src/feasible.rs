//! Feasible: the instruction's shapes, memory, registers and alignment, against the device.

use gauntlet_judge::gates::{Examination, Found, Gate};
use gauntlet_judge::{CaseViolation, Evidence, ExaminationFailure, Verdict};

/// Reports the broken rule and what would satisfy it.
pub struct Feasible;

impl Gate for Feasible {
    fn name(&self) -> &'static str {
        "feasible"
    }

    fn examine(&self, examination: &Examination) -> Result<Found, ExaminationFailure> {
        examined(examination)
    }
}

fn examined(examination: &Examination) -> Result<Found, ExaminationFailure> {
    if examination.candidate.command.is_some() {
        return Ok(Found::skip(
            "a program of its own: its schedule is its own affair",
        ));
    }
    let (device, cases) = (&examination.setting.device, &examination.setting.benchmark_cases);
    let mut violations: Vec<CaseViolation> = Vec::new();
    for case in cases {
        let parameters = examination.candidate.schedule_for(&case.sizes, device);
        for violation in case.sizes.violations(parameters, device) {
            if !violations
                .iter()
                .any(|known| known.violation.rule == violation.rule)
            {
                violations.push(CaseViolation {
                    case: case.name.clone(),
                    violation,
                });
            }
        }
    }
    Ok(
        match violations.first().map(|first| first.violation.to_string()) {
            Some(reason) => Found::stop(Verdict::Infeasible, reason, Evidence::Constraints { violations }),
            None => Found::pass(
                format!("keeps every rule of {} on {} cases", device.name, cases.len()),
                Evidence::Constraints { violations },
            ),
        },
    )
}
