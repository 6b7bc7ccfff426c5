//! Cheats that the present design does not catch, each with the size of what it can gain.

use super::super::splits::{ALL_BUT_TWENTIETH, Late, Split, Splits, TWENTIETH};
use super::super::times::{KeepsRows, Reports};
use super::super::work::Trick;
use super::super::{Cheat, End, Kind};
use super::Row;

fn row(name: &'static str, story: &'static str, trick: fn() -> Box<dyn Trick>) -> Row {
    Row::trick(Kind::Undefended, name, story, trick)
}

/// All of them.
pub fn cheats() -> Vec<Cheat> {
    vec![
        row(
            "shaves-half-a-per-cent",
            "reports half of a per cent less than each time",
            || Box::new(Reports(|time| 0.995 * time)),
        )
        .gains("half of a per cent on paper")
        .ends(End::Undefended {
            size: "at most 1 %, the tolerance between reports and the coordinator's clock",
        }),
        row(
            "keeps-a-twelfth-of-the-rows",
            "honest in the first call on each copy of new operands; from then on a twelfth of the rows is kept from it",
            || Box::new(KeepsRows::computing(|rows| rows - rows / 12)),
        )
        .gains("8 % of the time on operands that come again")
        .ends(End::Undefended {
            size: "at most 5 %, by which calls on seen operands may be faster, and what noise hides",
        }),
        row(
            "leaves-a-twentieth-for-output",
            "leaves a twentieth of the rows for `output`",
            || {
                Box::new(Splits::new(Split {
                    early: None,
                    timed: ALL_BUT_TWENTIETH,
                    late: Some((Late::InOutput, TWENTIETH)),
                }))
            },
        )
        .gains("5 % of the time, and right results")
        .ends(End::Undefended {
            size: "what the scatter of handing out a result explains",
        }),
    ]
}
