//! Nsight Compute's counters for a kernel, under plain names.

use std::collections::BTreeMap;
use std::path::Path;

use gauntlet_parameters::Parameters;
use gauntlet_task::Case;

use super::launches::{self, Launch};
use super::log_of;
use crate::evidence::{Candidate, Counters, JudgeError, Unreadable};
use crate::runner::{Operands, Workshop};

/// Factor on timeouts. Nsight Compute reruns a kernel for each set of counters that can be read simultaneously, and
/// restores its memory in between.
const SLOWED: u32 = 3;

/// What the figures below are read from.
const SECTIONS: [&str; 6] = [
    "SpeedOfLight",
    "ComputeWorkloadAnalysis",
    "MemoryWorkloadAnalysis_Tables",
    "WarpStateStats",
    "Occupancy",
    "LaunchStats",
];

/// In no section, and so requested by name.
const HOPPERS_MATRIX_UNITS: &str = "sm__pipe_tensor_op_gmma_cycles_active.avg.pct_of_peak_sustained_active";

/// A counter's plain name, Nsight Compute's names for it (the first that exists is used), and its unit.
type Figure = (&'static str, &'static [&'static str], f64);

const PERCENT: f64 = 0.01;

const FIGURES: [Figure; 7] = [
    (
        "tensor-pipe",
        &[
            HOPPERS_MATRIX_UNITS,
            "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
            "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
            "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
        ],
        PERCENT,
    ),
    (
        "issue-slots",
        &[
            "sm__inst_issued.avg.pct_of_peak_sustained_active",
            "smsp__issue_active.avg.pct_of_peak_sustained_active",
        ],
        PERCENT,
    ),
    (
        "l2-throughput",
        &["lts__throughput.avg.pct_of_peak_sustained_elapsed"],
        PERCENT,
    ),
    (
        "dram-throughput",
        &[
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        ],
        PERCENT,
    ),
    (
        "bank-conflicts",
        &[
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
            "l1tex__data_bank_conflicts_pipe_lsu.sum",
        ],
        1.0,
    ),
    (
        "occupancy",
        &["sm__warps_active.avg.pct_of_peak_sustained_active"],
        PERCENT,
    ),
    ("registers", &["launch__registers_per_thread"], 1.0),
];

/// Prefix and suffix of the stall counters: cycles that a warp waits for that reason, per issued instruction.
const STALL: (&str, &str) = ("smsp__average_warps_issue_stalled_", "_per_issue_active.ratio");

/// How many stall reasons to report.
const REASONS: usize = 3;

/// Reads the counters of one call of a schedule.
pub fn read_counters(
    workshop: &Workshop,
    profiler: &Path,
    case: &Case,
    candidate: &Candidate,
    schedule: &Parameters,
) -> Result<Result<Counters, Unreadable>, JudgeError> {
    let (_, operands) = Operands::write(workshop, case, case.inputs, rand::random())?;
    let arguments = launches::table(&SECTIONS, &["--metrics", HOPPERS_MATRIX_UNITS]);
    let mut worker = match workshop.start_under(candidate, profiler, &arguments, SLOWED) {
        Ok((worker, _)) => worker,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let ran = worker
        .build(&case.sizes, schedule)
        .and_then(|_| worker.load(&[operands.path()], 1))
        .and_then(|_| worker.prepare())
        .and_then(|_| worker.run(0))
        .map(|_| ());
    let ran = ran.and(worker.stop());
    let counters = parse(&log_of(worker.folder(), launches::LOG));
    Ok(counters
        .map(|counters| Counters {
            case: case.name.clone(),
            ..counters
        })
        .map_err(|why| match ran {
            Ok(()) => why,
            Err(error) => format!("{why}; {error}"),
        }))
}

/// The kernel that took the most total time in a log, with counters averaged over its launches.
fn parse(log: &str) -> Result<Counters, Unreadable> {
    let mut kernels: BTreeMap<String, Vec<BTreeMap<String, f64>>> = BTreeMap::new();
    for Launch { kernel, counters } in launches::read(log)? {
        kernels.entry(kernel).or_default().push(counters);
    }
    let time = |launches: &[BTreeMap<String, f64>]| -> f64 {
        launches
            .iter()
            .filter_map(|launch| launch.get(launches::DURATION))
            .sum()
    };
    let (kernel, launches) = kernels
        .into_iter()
        .max_by(|one, other| time(&one.1).total_cmp(&time(&other.1)))
        .ok_or_else(|| launches::told(log))?;
    let mean = |name: &str| {
        let values: Vec<f64> = launches
            .iter()
            .filter_map(|launch| launch.get(name).copied())
            .collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let figures: BTreeMap<String, f64> = FIGURES
        .into_iter()
        .filter_map(|(plain, names, unit)| {
            let value = names.iter().find_map(|name| mean(name))?;
            Some((plain.to_owned(), value * unit))
        })
        .collect();
    if figures.is_empty() {
        return Err(launches::told(log));
    }
    let names = launches.iter().flat_map(BTreeMap::keys);
    let mut stalls: Vec<(String, f64)> = names
        .filter_map(|name| {
            let reason = name.strip_prefix(STALL.0)?.strip_suffix(STALL.1)?;
            Some((reason.replace('_', "-"), mean(name)?))
        })
        .collect();
    stalls.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    stalls.dedup();
    stalls.truncate(REASONS);
    Ok(Counters {
        case: String::new(),
        kernel,
        figures,
        stalls,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: &str = r#"==PROF== Connected to process 4242 (/usr/bin/gauntlet)
==PROF== Profiling "poison": 0%....50%....100% - 9 passes
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","gpu__time_duration.sum","l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum","launch__registers_per_thread","lts__throughput.avg.pct_of_peak_sustained_elapsed","sm__inst_issued.avg.pct_of_peak_sustained_active","sm__pipe_tensor_op_gmma_cycles_active.avg.pct_of_peak_sustained_active","sm__warps_active.avg.pct_of_peak_sustained_active","smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio","smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio","smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio","smsp__average_warps_issue_stalled_wait_per_issue_active.ratio"
"","","","","","","","","","","","ns","","register/thread","%","%","%","%","inst","inst","inst","inst"
"0","4242","gauntlet","127.0.0.1","poison","1","13","(256, 1, 1)","(64, 1, 1)","0","9.0","2,048","0","16","2.5","1.5","0","44","0.1","0","3","0.2"
"1","4242","gauntlet","127.0.0.1","swapped","1","13","(384, 1, 1)","(132, 1, 1)","0","9.0","51,200","1,024","168","41.25","38.5","61.75","18.75","0.75","1.5","4.25","n/a"
"#;

    #[test]
    fn the_longest_kernel_is_told_under_plain_names() {
        let counters = parse(WIDE).unwrap();
        assert_eq!(counters.kernel, "swapped");
        let figure = |name: &str| counters.figures[name];
        for (name, value) in [
            ("tensor-pipe", 0.6175),
            ("issue-slots", 0.385),
            ("l2-throughput", 0.4125),
            ("occupancy", 0.1875),
            ("bank-conflicts", 1024.0),
            ("registers", 168.0),
        ] {
            assert!((figure(name) - value).abs() < 1e-12, "{name}");
        }
        assert!(
            !counters.figures.contains_key("dram-throughput"),
            "not in the table"
        );
        assert_eq!(
            counters.stalls,
            [
                ("long-scoreboard".to_owned(), 4.25),
                ("gmma".to_owned(), 1.5),
                ("barrier".to_owned(), 0.75)
            ]
        );
    }

    #[test]
    fn a_row_a_counter_is_read_too() {
        let log = r#"==PROF== Connected to process 1
"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"0","1","rows","Command line profiler metrics","gpu__time_duration.sum","ns","1,000"
"0","1","rows","Command line profiler metrics","dram__throughput.avg.pct_of_peak_sustained_elapsed","%","12.5"
"#;
        let counters = parse(log).unwrap();
        assert_eq!(
            (counters.kernel.as_str(), counters.figures["dram-throughput"]),
            ("rows", 0.125)
        );
    }

    #[test]
    fn who_may_not_read_counters_is_told_what_to_do() {
        let log = "==PROF== Connected to process 1\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access \
                   NVIDIA GPU Performance Counters on the target device 0.\n";
        assert!(
            parse(log)
                .unwrap_err()
                .contains("NVreg_RestrictProfilingToAdminUsers")
        );
        assert!(
            parse("==ERROR== Failed to find metric x\n")
                .unwrap_err()
                .contains("Failed to find metric")
        );
        assert_eq!(parse("").unwrap_err(), "ncu wrote no table");
    }
}
