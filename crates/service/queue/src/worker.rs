//! The names of workers, by which it is known whether one has ended.

use std::fs;
use std::path::Path;

use crate::job::this_machine;

/// The name of this process as a worker of queues: host, process, and the namespace in which the process has its number, since containers
/// may share a host's name.
pub fn this_worker() -> String {
    worker(std::process::id())
}

fn worker(process: u32) -> String {
    format!("{}-{process}-{}", this_machine(), namespace())
}

/// The number of this process's namespace of processes.
fn namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let digits = |letter: &char| letter.is_ascii_digit();
    link.to_string_lossy().chars().filter(digits).collect()
}

/// Whether a worker was a process beside this one, and is none any more.
pub(crate) fn has_ended(name: &str) -> bool {
    let process = name
        .strip_prefix(&this_machine())
        .and_then(|rest| rest.strip_prefix('-'))
        .and_then(|rest| rest.split_once('-'));
    let number: Option<u32> = process.and_then(|(number, _)| number.parse().ok());
    number.is_some_and(|number| name == worker(number) && !Path::new(&format!("/proc/{number}")).exists())
}
