//! The goals that verdicts are held to, and what became of them.

use gauntlet_report::{Tone, paint, paragraph};

use super::{hundredths, with_interval};
use crate::characteristics::goals::{Bound, Goal, Standing};

/// The goals that were missed, and how many were held, missed and left open.
pub(super) fn goals(goals: &[Goal], width: usize) -> String {
    let count = |standing| goals.iter().filter(|goal| goal.standing == standing).count();
    let mut text = String::new();
    for goal in goals.iter().filter(|goal| goal.standing == Standing::Missed) {
        text += &paragraph(&mark(Standing::Missed), &goal_line(goal), 2, width);
    }
    let missed = count(Standing::Missed);
    let worst = match (missed, count(Standing::Open)) {
        (0, 0) => Standing::Held,
        (0, _) => Standing::Open,
        _ => Standing::Missed,
    };
    let summary = format!(
        "{} of {} goals held, {missed} missed, {} open for want of comparisons.",
        count(Standing::Held),
        goals.len(),
        count(Standing::Open),
    );
    text + &paragraph(
        &mark(worst),
        &paint(summary, tone(worst).style().bold()),
        2,
        width,
    )
}

fn goal_line(goal: &Goal) -> String {
    let bound = match goal.bound {
        Bound::AtMost(most) => format!("at most {}", hundredths(most)),
        Bound::AtLeast(least) => format!("at least {}", hundredths(least)),
    };
    format!(
        "{}: {} in {} % of {} ({bound} % wanted)",
        goal.machine,
        goal.what,
        with_interval(&goal.share),
        goal.share.of,
    )
}

fn mark(standing: Standing) -> String {
    let tone = tone(standing);
    format!("{} ", paint(tone.mark(), tone.style()))
}

fn tone(standing: Standing) -> Tone {
    match standing {
        Standing::Held => Tone::Good,
        Standing::Missed => Tone::Bad,
        Standing::Open => Tone::Open,
    }
}
