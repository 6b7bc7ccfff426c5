//! What a GPU's counters say of a kernel.

use gauntlet_counters::{Cause, Explanation, Launched};
use gauntlet_judge::instruments::KernelTimes;

use crate::bar::bar;
use crate::duration::duration;
use crate::table::{columns, table};
use crate::text::{bold, dim, paragraph, usable};

/// Parts of the GPU that are shown.
const PARTS: usize = 5;

/// Reasons to wait that are shown.
const WAITS: usize = 4;

/// Columns of a bar.
const BAR: usize = 20;

/// The page of one kernel: what bounds it, the roofs, the parts of the GPU, the launch, causes with what to try, and what is not known.
pub fn counted(kernel: &str, kernels: &[KernelTimes], explanation: &Explanation, width: usize) -> String {
    let width = usable(width);
    let mut page = paragraph("  ", &bold(&explanation.bound), 2, width);
    page += &paragraph("  ", &of_kernels(kernel, kernels, explanation), 2, width);
    page += "\n";
    page += &table(
        &columns!(Words "part of the GPU", "used"; Figures "share"),
        explanation
            .used
            .iter()
            .take(PARTS)
            .map(|one| vec![one.part.clone(), bar(one.share, BAR), percent(one.share)])
            .collect(),
        2,
        width,
    );
    for roof in &explanation.roofs {
        let said = format!(
            "the least time by {}: {}, {} of the launch's",
            roof.name,
            duration(roof.seconds),
            percent(roof.seconds / explanation.seconds)
        );
        page += &paragraph("  ", &said, 2, width);
    }
    page += &paragraph("  ", &launched(&explanation.launched), 2, width);
    page += &causes(&explanation.causes, width);
    if !explanation.waits.is_empty() {
        let waits: Vec<String> = explanation
            .waits
            .iter()
            .take(WAITS)
            .map(|wait| format!("{} {}", wait.reason, percent(wait.share)))
            .collect();
        page += "\n";
        page += &paragraph("  warps wait for: ", &waits.join("; "), 4, width);
    }
    page += &paragraph("  not known: ", &explanation.unknown.join("; "), 4, width);
    page
}

/// The counted kernel among those of a call.
fn of_kernels(kernel: &str, kernels: &[KernelTimes], explanation: &Explanation) -> String {
    let counted = format!(
        "{} of {kernel}, with an empty level-2 cache",
        duration(explanation.seconds)
    );
    let Some((longest, others)) = kernels.split_first() else {
        return format!(
            "{counted}; the kernels of a call are not known, so it is the one with the most time of all"
        );
    };
    let all: f64 = kernels.iter().map(|kernel| kernel.seconds).sum();
    let launches: usize = kernels.iter().map(|kernel| kernel.launches).sum();
    if others.is_empty() && launches == 1 {
        return format!("{counted}, the only kernel of a call");
    }
    format!(
        "{counted}, the longest of {launches} launches of a call; {} of the kernels' time is its, in {} launch{}",
        percent(longest.seconds / all),
        longest.launches,
        if longest.launches == 1 { "" } else { "es" }
    )
}

fn launched(launch: &Launched) -> String {
    let occupancy = match (launch.occupancy, launch.possible_occupancy) {
        (Some(reached), Some(possible)) => format!(
            "; {} of a multiprocessor's warps were there, {} could be{}",
            percent(reached),
            percent(possible),
            launch
                .limit
                .as_ref()
                .filter(|_| possible < 0.99)
                .map(|limit| format!(" (limited by {limit})"))
                .unwrap_or_default()
        ),
        _ => String::new(),
    };
    format!(
        "{:.0} blocks of {:.0} threads, {:.2} waves; {:.0} registers a thread, {:.1} KiB of shared memory a block{occupancy}",
        launch.blocks,
        launch.threads,
        launch.waves,
        launch.registers,
        launch.shared_bytes / 1024.0
    )
}

fn causes(causes: &[Cause], width: usize) -> String {
    if causes.is_empty() {
        return String::new();
    }
    let mut said = format!(
        "\n  {}\n",
        dim("what costs time, and at most how much of it; causes overlap")
    );
    for (number, cause) in causes.iter().enumerate() {
        let first = format!(
            "  {}. {}, {}: ",
            number + 1,
            cause.kind.name(),
            percent(cause.share)
        );
        said += &paragraph(&first, &cause.evidence, 5, width);
        said += &paragraph("     try: ", cause.kind.next(), 5, width);
    }
    said
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
