//! The program that holds a lock, in words.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use jiff::Timestamp;
use nix::unistd::{SysconfVar, Uid, User, sysconf};

/// The program that holds a lock. What it is comes from the system, not from the program.
pub struct Holder {
    /// Its number; none for a process outside of this container, or that ended since.
    process: Option<i32>,
    user: Option<String>,
    started: Option<Timestamp>,
}

impl Holder {
    /// What is known of a process.
    pub fn of(process: i32) -> Self {
        let process = Some(process).filter(|&process| process > 0);
        Self {
            process,
            user: process.and_then(user),
            started: process.and_then(started),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(process) = self.process else {
            return formatter.write_str("another program");
        };
        write!(formatter, "process {process}")?;
        if let Some(user) = &self.user {
            write!(formatter, " of {user}")?;
        }
        if let Some(started) = self.started {
            write!(formatter, ", running since {started:.0},")?;
        }
        Ok(())
    }
}

fn user(process: i32) -> Option<String> {
    let owner = Uid::from_raw(std::fs::metadata(format!("/proc/{process}")).ok()?.uid());
    let named = User::from_uid(owner).ok().flatten();
    Some(named.map_or_else(|| format!("user {owner}"), |user| user.name))
}

/// When a process started, from the ticks since the system did (proc_pid_stat(5), field 22) and when that was.
fn started(process: i32) -> Option<Timestamp> {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field, a name in brackets, may hold blanks and brackets; the third follows the last one.
    let ticks: u64 = status
        .rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(22 - 3)?
        .parse()
        .ok()?;
    let a_second = u64::try_from(sysconf(SysconfVar::CLK_TCK).ok()??).ok()?;
    let system = std::fs::read_to_string("/proc/stat").ok()?;
    let booted = system.lines().find_map(|line| line.strip_prefix("btime "))?;
    let booted = Timestamp::from_second(booted.trim().parse().ok()?).ok()?;
    booted
        .checked_add(Duration::from_secs(ticks.checked_div(a_second)?))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_told_by_its_number_user_and_start() {
        let own = Holder::of(i32::try_from(std::process::id()).unwrap());
        let said = own.to_string();
        assert!(
            said.starts_with(&format!("process {} of ", std::process::id())),
            "{said}"
        );
        let now = Timestamp::now();
        // Ticks and the start of the system are whole seconds.
        let age = now.duration_since(own.started.unwrap()).as_secs();
        assert!((-3..86_400).contains(&age), "{said} at {now}");
        assert_eq!(Holder::of(0).to_string(), "another program");
        assert_eq!(Holder::of(i32::MAX).to_string(), format!("process {}", i32::MAX));
    }
}
