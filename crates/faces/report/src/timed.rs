//! The times of one kernel alone.

use gauntlet_stats::{median, percent};

use crate::duration::duration;
use crate::table::{columns, table};
use crate::text::{paragraph, usable};

/// The times of a case.
pub struct CaseTime<'a> {
    /// The case.
    pub name: &'a str,
    /// The typical call of each process, in seconds.
    pub processes: &'a [f64],
    /// Arithmetic operations of a call, where they are known.
    pub flops: Option<u64>,
    /// Bytes that a call moves at least; 0 if they are not known.
    pub bytes: u64,
}

/// A table of the cases: the median of processes, how far processes differ, and the rates of arithmetic and memory.
pub fn timed(times: &[CaseTime], width: usize) -> String {
    let width = usable(width);
    let rate = |amount: f64, seconds: f64| format!("{:.1}", amount / seconds / 1e9);
    let row = |case: &CaseTime| {
        let typical = median(case.processes);
        let [least, most] =
            [f64::min, f64::max].map(|better| case.processes.iter().copied().fold(typical, better));
        vec![
            case.name.to_owned(),
            duration(typical),
            format!(
                "{} … {}",
                percent(least / typical - 1.0),
                percent(most / typical - 1.0)
            ),
            case.flops
                .map_or(String::new(), |flops| rate(flops as f64, typical)),
            if case.bytes == 0 {
                String::new()
            } else {
                rate(case.bytes as f64, typical)
            },
        ]
    };
    let header = columns!(Words "case"; Figures "time", "processes differ", "GFLOP/s", "GB/s");
    let processes = times.iter().map(|case| case.processes.len()).max().unwrap_or(0);
    let said = format!(
        "median of {processes} fresh processes' typical calls; not watched for cheats. Whether another kernel is faster, `gauntlet compare` says"
    );
    format!(
        "{}{}",
        table(&header, times.iter().map(row).collect(), 2, width),
        paragraph("  ", &said, 2, width)
    )
}
