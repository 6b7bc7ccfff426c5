//! What the GPU did in calls that were traced after the timed ones.

use gauntlet_judge::{CaseActivity, Comparison, KernelTime, SideActivity};

use crate::duration::unbroken;
use crate::kernel_name::readable;
use crate::text::{bold, dim, fitted, paragraph};

/// Work outside of the call's events is told from this share of the call's time on the device. Less is the time in which one
/// stream starts after another.
const WORTH_TELLING: f64 = 0.01;

/// Columns of a kernel's name: names that a compiler writes can be hundreds of letters long.
const NAME_COLUMNS: usize = 48;

/// Columns of the names of the sides and the blanks before and after them.
const SIDE_COLUMNS: usize = 13;

/// The heading of the section.
pub const TITLE: &str = "Activity of the GPU";

/// The note under figures.
const NOTE: &str = "traced after the timed calls, in processes of their own: tracing slows launches, so gaps may be longer than \
                    in timed calls";

/// What the section says.
pub struct Traced {
    /// One sentence a case or a failure, with its side.
    pub said: Vec<(&'static str, String)>,
    /// What holds for all figures; none without any.
    pub note: Option<&'static str>,
}

/// What the GPU did in each side's calls; none if nothing was to be traced.
pub fn traced(comparison: &Comparison) -> Option<Traced> {
    let both = comparison.conduct.as_ref()?.device_activity.as_ref()?;
    let sides = [("baseline", &both.baseline), ("candidate", &both.candidate)];
    let said = sides.map(|(name, side)| sentences(side).into_iter().map(move |said| (name, said)));
    let has_figures = sides.iter().any(|(_, side)| !side.cases.is_empty());
    Some(Traced {
        said: said.into_iter().flatten().collect(),
        note: has_figures.then_some(NOTE),
    })
}

/// The same as lines of a terminal.
pub fn activity_lines(comparison: &Comparison, width: usize) -> String {
    let Some(Traced { said, note }) = traced(comparison) else {
        return String::new();
    };
    let mut text = format!("\n{}\n", bold(TITLE));
    let mut before = "";
    for (side, sentence) in said {
        let name = if side == before { "" } else { side };
        let first = format!("  {name:<width$}", width = SIDE_COLUMNS - 2);
        text += &paragraph(&first, &sentence, SIDE_COLUMNS, width);
        before = side;
    }
    text + &note.map_or(String::new(), |note| paragraph("  ", &dim(note), 2, width))
}

fn sentences(side: &SideActivity) -> Vec<String> {
    let cases = side
        .cases
        .iter()
        .map(|case| format!("{}: {}", case.case, sentence(case)));
    let untraced = side.untraced.iter().map(|why| format!("not traced: {why}"));
    cases.chain(untraced).collect()
}

/// A case in a sentence: `3 kernels a call, at work 17.2 µs of 18.0 µs; longest: softmax 12.1 µs`.
fn sentence(case: &CaseActivity) -> String {
    let kinds = [
        (case.kernels, "kernel", "kernels"),
        (case.copies, "copy", "copies"),
        (case.fills, "fill of memory", "fills of memory"),
    ];
    let kinds = kinds.into_iter().filter(|(number, ..)| *number > 0.0);
    let kinds: Vec<String> = kinds
        .map(|(number, one, several)| format!("{number} {}", if number == 1.0 { one } else { several }))
        .collect();
    let Some((last, first)) = kinds.split_last() else {
        return "nothing ran on the GPU".to_owned();
    };
    let kinds = match first {
        [] => last.clone(),
        _ => format!("{} and {last}", first.join(", ")),
    };
    let mut said = format!(
        "{kinds} a call, at work {} of {}",
        unbroken(case.busy),
        unbroken(case.span)
    );
    if case.streams > 1.0 {
        said += &format!(", on {} streams", case.streams);
    }
    if !case.longest.is_empty() {
        let kernels: Vec<String> = case.longest.iter().map(|one| named(one, case.calls)).collect();
        said += &format!("; longest: {}", kernels.join(", "));
    }
    if case.left_out > 0 {
        said += &format!("; {} more a call are not in these figures", case.left_out);
    }
    said + &outside(case)
}

fn named(kernel: &KernelTime, calls: usize) -> String {
    let often = match kernel.launches / calls.max(1) {
        0 | 1 => String::new(),
        several => format!(" in {several} launches"),
    };
    let name = fitted(&readable(&kernel.name), NAME_COLUMNS);
    format!("{} {}{often}", name.trim_end(), unbroken(kernel.seconds))
}

/// Work that events around the call do not see.
fn outside(case: &CaseActivity) -> String {
    let parts = [
        (case.before, "before the call's begin"),
        (case.after, "after the call's end on its stream"),
    ];
    let is_told = |seconds: f64| seconds > 0.0 && seconds >= WORTH_TELLING * case.window;
    let told = parts.into_iter().filter(|(seconds, _)| is_told(*seconds));
    let told: Vec<String> = told
        .map(|(seconds, place)| format!("{} {place}", unbroken(seconds)))
        .collect();
    match told.as_slice() {
        [] => String::new(),
        parts => format!("; at work outside of the call's events: {}", parts.join(", ")),
    }
}
