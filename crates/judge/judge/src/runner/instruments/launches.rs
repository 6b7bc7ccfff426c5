//! The table that Nsight Compute writes: launches with their counters.

use std::collections::BTreeMap;

use crate::evidence::Unreadable;

/// Nsight Compute's name for the time that a launch takes, in nanoseconds.
pub const DURATION: &str = "gpu__time_duration.sum";

/// The log, in a worker's folder.
pub const LOG: &str = "counters.csv";

/// Arguments of Nsight Compute for a table of these sections in [`LOG`], in base units. A section holds the counters that each processor
/// has; a counter that is requested by name ends the run where it is unknown. The clocks stay as they are, because locking them needs
/// rights, and other users of the card would feel it.
pub fn table<'a>(sections: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec![
        "--csv",
        "--page",
        "raw",
        "--print-units",
        "base",
        "--clock-control",
        "none",
    ];
    arguments.extend(["--target-processes", "all"]);
    for section in sections {
        arguments.extend(["--section", *section]);
    }
    arguments.extend(more);
    arguments.extend(["--log-file", LOG]);
    arguments
}

/// A launch of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// The kernel's name.
    pub kernel: String,
    /// Nsight Compute's counters by its own names, without those that it could not read.
    pub counters: BTreeMap<String, f64>,
}

/// The launches of a log in the order in which they were made. Depending on the page and the version, each counter is a column, or a
/// row with its name in a column. The tool's own messages begin with `==`.
pub fn read(log: &str) -> Result<Vec<Launch>, Unreadable> {
    let table: Vec<&str> = log.lines().filter(|line| line.starts_with('"')).collect();
    let table = table.join("\n");
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(table.as_bytes());
    let head = reader.headers().map_err(|error| error.to_string())?.clone();
    let place = |name: &str| head.iter().position(|column| column == name);
    let (Some(id), Some(kernel)) = (place("ID"), place("Kernel Name")) else {
        return Err(told(log));
    };
    let named = place("Metric Name").zip(place("Metric Value"));
    // Several processes may each begin their numbers anew, so only a row's neighbour belongs to the same launch.
    let mut last = String::new();
    let mut launches: Vec<Launch> = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| format!("ncu's table cannot be read: {error}"))?;
        // The row below the header holds units.
        let Some(id) = row.get(id).filter(|id| !id.is_empty()) else {
            continue;
        };
        if named.is_none() || launches.is_empty() || last != id {
            id.clone_into(&mut last);
            launches.push(Launch {
                kernel: row.get(kernel).unwrap_or_default().to_owned(),
                counters: BTreeMap::new(),
            });
        }
        let Some(Launch { counters, .. }) = launches.last_mut() else {
            continue;
        };
        match named {
            Some((name, value)) => counters.extend(
                row.get(name)
                    .zip(row.get(value).and_then(number))
                    .map(|(name, value)| (name.to_owned(), value)),
            ),
            None => counters.extend(
                head.iter()
                    .zip(&row)
                    .filter_map(|(name, value)| Some((name.to_owned(), number(value)?))),
            ),
        }
    }
    Ok(launches)
}

/// Parses a number with commas for thousands; none for `n/a`.
fn number(text: &str) -> Option<f64> {
    text.replace(',', "").parse().ok()
}

/// The tool's own message, for a log without counters.
pub fn told(log: &str) -> Unreadable {
    let complaint = log
        .lines()
        .find(|line| line.starts_with("==ERROR==") || line.contains("ERR_NVGPUCTRPERM"))
        .or_else(|| log.lines().rfind(|line| line.starts_with("==")));
    match complaint {
        Some(line) if line.contains("ERR_NVGPUCTRPERM") => {
            "the driver lets only root read counters: run as root, or load the module nvidia with \
             NVreg_RestrictProfilingToAdminUsers=0"
                .to_owned()
        }
        Some(line) => format!("ncu says: {}", line.trim()),
        None => "ncu wrote no table".to_owned(),
    }
}
