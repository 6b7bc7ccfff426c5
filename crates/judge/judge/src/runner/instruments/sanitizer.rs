//! `compute-sanitizer`: accesses outside the kernel's memory, hazards in shared memory, misused barriers.

use std::path::Path;

use gauntlet_parameters::Parameters;
use gauntlet_task::Case;

use super::log_of;
use crate::evidence::{Candidate, Checked, JudgeError, Told};
use crate::runner::{Operands, Workshop};

/// The tools that are run. `initcheck` is not needed: results are poisoned before each run, which reveals the same
/// errors.
pub const TOOLS: [&str; 3] = ["memcheck", "racecheck", "synccheck"];

/// Factor on timeouts. Kernels run 10 to 100 times slower under the tool, which also patches each kernel's code before
/// its first launch. The inspected cases are small, so three times the usual timeouts suffice and a hang is still
/// detected quickly.
const SLOWED: u32 = 3;

const LOG: &str = "sanitizer.log";

/// Runs one call of a schedule under a tool.
pub fn check(
    workshop: &Workshop,
    sanitizer: &Path,
    tool: &str,
    case: &Case,
    candidate: &Candidate,
    schedule: &Parameters,
) -> Result<Checked, JudgeError> {
    let told = |told| Checked {
        tool: tool.to_owned(),
        case: case.name.clone(),
        told,
    };
    let (_, operands) = Operands::write(workshop, case, case.inputs, rand::random())?;
    // Without API errors: a library may query a driver feature that does not exist, which is no fault of a kernel.
    let arguments = [
        "--tool",
        tool,
        "--report-api-errors",
        "no",
        "--print-limit",
        "10",
        "--log-file",
        LOG,
    ];
    let mut worker = match workshop.start_under(candidate, sanitizer, &arguments, SLOWED) {
        Ok((worker, _)) => worker,
        Err(error) => return Ok(told(Told::Nothing(error.to_string()))),
    };
    let ran = worker
        .build(&case.sizes, schedule)
        .and_then(|_| worker.load(&[operands.path()], 1))
        .and_then(|_| worker.prepare())
        .and_then(|_| worker.run(0));
    // A fault destroys the CUDA context and so ends the call; the tool's log says more about it than the call's error.
    let stopped = worker.stop();
    let read = read(&log_of(worker.folder(), LOG));
    Ok(told(match (read, ran.map(|_| ()).and(stopped)) {
        (Told::Clean, Err(error)) => Told::Nothing(format!("the worker failed under it: {error}")),
        (Told::Nothing(why), Err(error)) => Told::Nothing(format!("{why}; {error}")),
        (told, _) => told,
    }))
}

/// The prefix of the tool's own lines.
const PREFIX: &str = "=========";

/// Reads a log.
fn read(log: &str) -> Told {
    let lines: Vec<&str> = log.lines().filter_map(|line| line.strip_prefix(PREFIX)).collect();
    let summary = lines.iter().rev().find_map(|line| summary(line.trim()));
    let complaint = lines
        .iter()
        .map(|line| line.trim())
        .find(|line| line.starts_with("Error: ") && !line.starts_with("Error: Race"));
    let unseen = lines
        .iter()
        .any(|line| line.contains("before first instrumented API call"));
    match (summary, complaint) {
        (Some((0, _)), Some(complaint)) => Told::Nothing(complaint.to_owned()),
        (Some((0, _)), None) if unseen => Told::Nothing("it saw no call of CUDA".to_owned()),
        (Some((0, 0)), None) => Told::Clean,
        (Some((0, count)), None) => Told::Warnings {
            count,
            first: first_report(&lines),
        },
        (Some((count, _)), _) => Told::Faults {
            count,
            first: first_report(&lines),
        },
        (None, complaint) => Told::Nothing(complaint.map_or_else(
            || match lines.iter().rev().find(|line| !line.trim().is_empty()) {
                Some(last) => format!("its log has no summary and ends with `{}`", last.trim()),
                None => "it wrote no log".to_owned(),
            },
            str::to_owned,
        )),
    }
}

/// Errors and warnings in a summary line, such as `ERROR SUMMARY: 2 errors` or `RACECHECK SUMMARY: 3 hazards displayed
/// (1 error, 2 warnings)`.
fn summary(line: &str) -> Option<(usize, usize)> {
    let counted = |text: &str, what: &str| -> Option<usize> {
        let before = text.split(what).next()?;
        before
            .rsplit(|letter: char| !letter.is_ascii_digit())
            .find(|word| !word.is_empty())?
            .parse()
            .ok()
    };
    if let Some(rest) = line.strip_prefix("ERROR SUMMARY:") {
        return Some((counted(rest, " error")?, 0));
    }
    let rest = line.strip_prefix("RACECHECK SUMMARY:")?;
    let (_, divided) = rest.split_once('(')?;
    Some((counted(divided, " error")?, counted(divided, " warning")?))
}

/// The lines of the first report that give the fault and its place: they are indented, and host backtraces follow.
const MAX_LINES: usize = 5;

fn first_report(lines: &[&str]) -> String {
    let is_head = |line: &&&str| {
        let text = line.strip_prefix(' ').unwrap_or(line);
        !text.is_empty() && !text.starts_with(' ') && text != "COMPUTE-SANITIZER"
    };
    let Some(begin) = lines.iter().position(|line| is_head(&line)) else {
        return "its log does not say what".to_owned();
    };
    let details = lines[begin + 1..]
        .iter()
        .take_while(|line| line.starts_with("     "))
        .map(|line| line.trim())
        .take_while(|line| !line.starts_with("Saved host backtrace") && !line.starts_with("Host Frame"));
    std::iter::once(lines[begin].trim())
        .chain(details)
        .take(MAX_LINES)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMCHECK: &str = "\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 16 bytes
=========     at rows+0x2f0
=========     by thread (96,0,0) in block (3,0,0)
=========     Access at 0x7f2b3a400800 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f2b3a400000 of size 2,048 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: [0x2f1a3c] in libcuda.so.1
========= 
========= Invalid __global__ write of size 16 bytes
=========     at rows+0x300
========= ERROR SUMMARY: 12 errors
";

    #[test]
    fn a_fault_is_told_with_its_kernel_and_address() {
        let Told::Faults { count, first } = read(MEMCHECK) else {
            panic!("{:?}", read(MEMCHECK))
        };
        assert_eq!(count, 12);
        assert_eq!(
            first,
            "Invalid __global__ write of size 16 bytes at rows+0x2f0 by thread (96,0,0) in block (3,0,0) Access at \
             0x7f2b3a400800 is out of bounds and is 1 bytes after the nearest allocation at 0x7f2b3a400000 of size \
             2,048 bytes"
        );
    }

    #[test]
    fn hazards_are_faults_and_warnings_are_not() {
        let log = |errors: usize, warnings: usize, word: &str| {
            format!(
                "========= COMPUTE-SANITIZER\n========= {word}: Race reported between Write access at swapped+0x1a0\n\
                 =========     and Read access at swapped+0x220 [4096 hazards]\n========= \n========= RACECHECK SUMMARY: \
                 {} hazards displayed ({errors} error{}, {warnings} warnings)\n",
                errors + warnings,
                if errors == 1 { "" } else { "s" }
            )
        };
        let first = "Race reported between Write access at swapped+0x1a0 and Read access at swapped+0x220 [4096 hazards]";
        assert_eq!(
            read(&log(1, 2, "Error")),
            Told::Faults {
                count: 1,
                first: format!("Error: {first}")
            }
        );
        assert_eq!(
            read(&log(0, 10, "Warning")),
            Told::Warnings {
                count: 10,
                first: format!("Warning: {first}")
            }
        );
    }

    #[test]
    fn clean_is_only_what_was_looked_at() {
        let clean = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n";
        assert_eq!(read(clean), Told::Clean);
        let clean = "========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n";
        assert_eq!(read(clean), Told::Clean);
        let unsupported = "========= COMPUTE-SANITIZER\n========= Error: Device not supported. Please refer to the documentation\n\
                           ========= ERROR SUMMARY: 0 errors\n";
        assert!(matches!(read(unsupported), Told::Nothing(why) if why.contains("Device not supported")));
        let unseen = "========= COMPUTE-SANITIZER\n========= Target application terminated before first instrumented API call\n\
                      ========= ERROR SUMMARY: 0 errors\n";
        assert!(matches!(read(unseen), Told::Nothing(_)));
        assert!(
            matches!(read("========= COMPUTE-SANITIZER\n"), Told::Nothing(why) if why.contains("no summary"))
        );
        assert!(matches!(read(""), Told::Nothing(why) if why.contains("no log")));
    }

    #[test]
    fn misused_barriers_are_counted_like_errors() {
        let log = "========= COMPUTE-SANITIZER\n========= Barrier error detected. Divergent thread(s) in block\n\
                   =========     at narrow+0xd0\n=========     by thread (1,0,0) in block (0,0,0)\n========= ERROR SUMMARY: 1 error\n";
        assert_eq!(
            read(log),
            Told::Faults {
                count: 1,
                first: "Barrier error detected. Divergent thread(s) in block at narrow+0xd0 by thread (1,0,0) in block (0,0,0)"
                    .to_owned()
            }
        );
    }
}
