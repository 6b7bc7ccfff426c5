//! The returns of the hours spent, and what to try next.

use gauntlet_tournament::forecast::{Prospect, Return};
use maud::{Markup, html};

use super::badge;
use crate::prospects::{LEGEND, per_hour, range};
use crate::speedup::times;

/// The open candidates, with the known reasons; nothing without any.
pub fn prospects(prospects: &[Prospect]) -> Markup {
    html! {
        @if !prospects.is_empty() {
            h3 { "What to try next" }
            div.scroll tabindex="0" {
                table {
                    thead { tr { th { "pitch" } th { "round" } th { "so far" } th { "expected" } th { "chance" } th { "hours" } th { "%/h" } th { "why it is open" } } }
                    tbody {
                        @for one in prospects {
                            tr {
                                td { b { (one.pitch) } }
                                td { (one.round) }
                                td { (badge(one.verdict)) }
                                td.number { (times(one.roi.speedup.mean.exp())) }
                                td.number { (format!("{:.0} %", one.roi.chance * 100.0)) }
                                td.number { (one.roi.hours) }
                                td.whole { (range(&one.roi)) }
                                td { (one.reason) }
                            }
                        }
                    }
                }
            }
            @for line in LEGEND { p.quiet { (line) } }
        }
    }
}

/// The returns of the hours that were reported as spent; nothing without any.
pub fn returns(returns: &[Return]) -> Markup {
    html! {
        @if !returns.is_empty() {
            h3 { "What the hours brought" }
            div.scroll tabindex="0" {
                table {
                    thead { tr { th { "pitch" } th { "round" } th { "verdict" } th { "hours" } th { "%/h expected" } th { "found" } } }
                    tbody {
                        @for one in returns {
                            tr {
                                td { b { (one.pitch) } }
                                td { (one.round) }
                                td { (badge(one.verdict)) }
                                td.number { (one.hours) }
                                td.whole { (range(&one.expected)) }
                                td.number { (per_hour(one.found)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
