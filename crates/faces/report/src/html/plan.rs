//! The model's order of changes.

use gauntlet_tournament::{CaseTime, Plan};
use maud::{Markup, html};

use crate::duration::duration;
use crate::plan::{NOTE, gain};
use crate::speedup::times;

/// The steps and each change alone; nothing without a plan.
pub fn plan(plan: Option<&Plan>) -> Markup {
    html! {
        @if let Some(plan) = plan {
            h3 { "What to do first" }
            div.scroll tabindex="0" {
                table {
                    (head("do", &plan.baseline))
                    tbody {
                        tr { td { "baseline" } td { "—" } td { "—" } (figures(&plan.baseline)) }
                        @for (index, step) in plan.steps.iter().enumerate() {
                            tr {
                                td {
                                    b { (index + 1) ". " (step.pitch) }
                                    @for word in &step.words { div.quiet { (word) } }
                                }
                                td { (gain(&step.gain)) }
                                td.number { (times(step.gain_so_far.estimate.exp())) }
                                (figures(&step.cases))
                            }
                        }
                    }
                }
            }
            p.quiet { (NOTE) }
            @if !plan.alone.is_empty() {
                h3 { "Each change alone" }
                div.scroll tabindex="0" {
                    table {
                        (head("change", &plan.baseline))
                        tbody {
                            @for one in &plan.alone {
                                tr {
                                    td { (one.pitch) }
                                    td { (gain(&one.gain)) }
                                    td.number { (times(one.gain.estimate.exp())) }
                                    (figures(&one.cases))
                                }
                            }
                        }
                    }
                }
            }
            @for left in &plan.left { p.quiet { "Not in it: " b { (left.pitch) } ": " (left.reason) "." } }
        }
    }
}

fn head(first: &str, cases: &[CaseTime]) -> Markup {
    html! {
        thead { tr { th { (first) } th { "gain" } th { "×" } @for case in cases { th { (case.case) } } } }
    }
}

fn figures(cases: &[CaseTime]) -> Markup {
    html! { @for case in cases { td.number { (duration(case.seconds)) } } }
}
