//! Parses the compiler's log: a kernel's resources, from `--ptxas-options=-v`, and warnings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The resources of one kernel, as reported by the assembler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelResources {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of a thread's spill stores and spill loads together.
    pub spill_bytes: u32,
    /// Bytes of a thread's stack.
    pub stack_bytes: u32,
    /// Bytes of static shared memory; a launch adds its dynamic shared memory.
    pub static_shared_bytes: u32,
    /// Block barriers used.
    pub barriers: u32,
}

/// Resources by entry.
pub(super) fn resources(log: &str) -> BTreeMap<String, KernelResources> {
    let mut found = BTreeMap::new();
    let mut entry: Option<String> = None;
    for line in log.lines() {
        let Some(text) = line.strip_prefix("ptxas") else {
            continue;
        };
        if let Some((_, rest)) = text.split_once("Compiling entry function '") {
            entry = rest.split('\'').next().map(str::to_owned);
            if let Some(entry) = &entry {
                found.insert(entry.clone(), KernelResources::default());
            }
            continue;
        }
        // A function that is not inlined has an entry of its own; its caller's cumulative stack already includes it.
        if let Some((_, name)) = text.split_once("Function properties for ")
            && entry.as_deref() != Some(name.trim())
        {
            entry = None;
        }
        let Some(resources) = entry.as_ref().and_then(|entry| found.get_mut(entry)) else {
            continue;
        };
        for part in text.split(',') {
            count(part, resources);
        }
    }
    found
}

/// Adds one line such as `464 bytes stack frame` or `Used 32 registers`.
fn count(part: &str, resources: &mut KernelResources) {
    let words: Vec<&str> = part.split_whitespace().collect();
    let Some(number) = words.iter().position(|word| word.parse::<u32>().is_ok()) else {
        return;
    };
    let value = words[number].parse().unwrap_or(0);
    match words[number + 1..].join(" ").as_str() {
        "registers" => resources.registers = value,
        "barriers" => resources.barriers = value,
        "bytes stack frame" => resources.stack_bytes = value,
        "bytes spill stores" | "bytes spill loads" => resources.spill_bytes += value,
        "bytes smem" => resources.static_shared_bytes = value,
        _ => {}
    }
}

/// Lines that indicate unexpected code: warnings, and the assembler's numbered remarks, such as C7510 and related ones
/// for serialised wgmma instructions. They may be harmless, but none is expected.
pub(super) fn warnings(log: &str) -> Vec<String> {
    let serious = |line: &&str| line.contains("warning") || remark(line).is_some();
    log.lines()
        .filter(serious)
        .filter(|line| !line.starts_with("Remark:"))
        .map(|line| line.trim().to_owned())
        .collect()
}

/// The number of an assembler's remark: `C7510` of `ptxas info : (C7510) Potential Performance Loss: …`.
fn remark(line: &str) -> Option<&str> {
    let (_, rest) = line.strip_prefix("ptxas")?.split_once("(C")?;
    let digits = rest.split(')').next()?;
    let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    number.then_some(digits)
}

/// Location and text of the first error.
pub(super) fn first_error(log: &str) -> (String, String) {
    for line in log.lines() {
        let (place, message) = if let Some((place, message)) = line.split_once(": error") {
            (place, message)
        } else if let Some(("ptxas", rest)) = line.split_once(' ') {
            match rest.split_once("; error").or_else(|| rest.split_once("fatal")) {
                Some(("", message)) => ("assembler", message),
                Some((place, message)) => (place, message),
                None => continue,
            }
        } else if let Some((place, message)) = line.split_once(": catastrophic error") {
            (place, message)
        } else {
            continue;
        };
        let message = message.trim_start_matches([' ', ':']);
        return (file_and_line(place), message.trim().to_owned());
    }
    let line = log.lines().find(|line| !line.trim().is_empty());
    (
        "somewhere".to_owned(),
        line.unwrap_or("the compiler gave no reason").to_owned(),
    )
}

/// `rows.cu(17)` as `rows.cu:17`.
fn file_and_line(place: &str) -> String {
    match place.strip_suffix(')').and_then(|place| place.rsplit_once('(')) {
        Some((file, line)) => format!("{file}:{line}"),
        None => place.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of NVRTC 13.0.
    const LOG: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'b' for 'sm_90a'
ptxas info    : Function properties for b
ptxas         .     464 bytes stack frame, 216 bytes spill stores, 232 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 464 bytes cumulative stack size
ptxas info    : Compile time = 34.394 ms
ptxas info    : Compiling entry function 'a' for 'sm_90a'
ptxas info    : Function properties for a
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 128 bytes smem
ptxas info    : Compile time = 1.507 ms
";

    #[test]
    fn resources_are_those_of_each_entry() {
        let found = resources(LOG);
        let expected = [
            (
                "a".to_owned(),
                KernelResources {
                    registers: 10,
                    static_shared_bytes: 128,
                    barriers: 1,
                    ..KernelResources::default()
                },
            ),
            (
                "b".to_owned(),
                KernelResources {
                    registers: 32,
                    spill_bytes: 448,
                    stack_bytes: 464,
                    ..KernelResources::default()
                },
            ),
        ];
        assert_eq!(found, BTreeMap::from(expected));
    }

    #[test]
    fn a_function_that_was_not_inlined_is_no_entry() {
        let log = "\
ptxas info    : Compiling entry function 'a' for 'sm_90a'
ptxas info    : Function properties for a
ptxas         .     16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers
ptxas info    : Function properties for helper
ptxas         .     32 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
";
        let found = resources(log);
        assert_eq!(found.len(), 1);
        assert_eq!((found["a"].stack_bytes, found["a"].spill_bytes), (16, 0));
    }

    #[test]
    fn remarks_on_serialised_instructions_are_warnings() {
        let log = format!(
            "{LOG}ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to \
             insufficient register resources for the wgmma pipeline in the function 'k'\n\
             rows.cu(1): warning #177-D: variable \"unused\" was declared but never referenced\n\
             Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n"
        );
        let found = warnings(&log);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("C7511") && found[1].contains("#177-D"),
            "{found:?}"
        );
        assert!(warnings(LOG).is_empty());
    }

    #[test]
    fn the_first_error_is_named_with_its_place() {
        for (log, place, message) in [
            (
                "rows.cu(17): warning #1-D: odd\nrows.cu(18): error: identifier \"q\" is undefined\n  p[0]=q;\n",
                "rows.cu:18",
                "identifier \"q\" is undefined",
            ),
            (
                "ptxas application ptx input, line 25; error   : Unknown modifier '.bar'\nptxas fatal   : aborted\n",
                "application ptx input, line 25",
                "Unknown modifier '.bar'",
            ),
            (
                "ptxas fatal   : Unresolved extern function 'f'\n",
                "assembler",
                "Unresolved extern function 'f'",
            ),
            (
                "nvrtc: error: invalid value for --gpu-architecture\n",
                "nvrtc",
                "invalid value for --gpu-architecture",
            ),
            (
                "rows.cu(1): catastrophic error: could not open source file \"x.cuh\"\n",
                "rows.cu:1",
                "could not open source file \"x.cuh\"",
            ),
            ("", "somewhere", "the compiler gave no reason"),
        ] {
            let found = first_error(log);
            assert_eq!((found.0.as_str(), found.1.as_str()), (place, message));
        }
    }
}
