//! Threads, clock, name and governor, from the standard library and from Linux' files.

use std::path::Path;

use crate::{Count, Fact, Figure, Frequency};

/// Threads this process may use; honours affinity and control groups.
pub(super) fn threads() -> Figure<Count> {
    let threads = match std::thread::available_parallelism() {
        Ok(threads) => Figure::new(threads.get() as f64, "detected: available_parallelism"),
        Err(error) => Figure::new(
            1.0,
            format!("detected: available_parallelism failed ({error}), so one"),
        ),
    };
    threads.in_unit("thread")
}

/// The highest frequency the driver allows, else the current one of the first processor.
pub(super) fn clock() -> Option<Figure<Frequency>> {
    let scaling = "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq";
    if let Some(kilohertz) = read(scaling)
        .and_then(|text| text.parse::<f64>().ok())
        .filter(|value| *value > 0.0)
    {
        let clock = Figure::new(kilohertz * 1e3, format!("detected: {scaling} (highest)"));
        return Some(clock.in_unit("MHz"));
    }
    let megahertz = processor_field("cpu MHz")?
        .parse::<f64>()
        .ok()
        .filter(|value| *value > 0.0)?;
    let clock = Figure::new(
        megahertz * 1e6,
        "detected: cpu MHz of /proc/cpuinfo (at this moment)",
    );
    Some(clock.in_unit("MHz"))
}

/// The processor's name.
pub(super) fn model() -> Option<Fact<String>> {
    let value = processor_field("model name")?;
    Some(Fact {
        value,
        source: "detected: model name of /proc/cpuinfo".to_owned(),
    })
}

/// The frequency governor of the first processor; virtual machines usually show none.
pub(super) fn governor() -> Option<Fact<String>> {
    let file = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    Some(Fact {
        value: read(file)?,
        source: format!("detected: {file}"),
    })
}

/// A file's text without surrounding space; none if it cannot be read or is empty.
pub(super) fn read(file: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn processor_field(name: &str) -> Option<String> {
    field(&read("/proc/cpuinfo")?, name)
}

fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_the_first_of_exactly_that_name() {
        let text =
            "processor\t: 0\nmodel\t\t: 167\nmodel name\t: A: B\ncpu MHz\t\t: 2599.998\nmodel name\t: C";
        assert_eq!(field(text, "model name").as_deref(), Some("A: B"));
        assert_eq!(field(text, "cpu MHz").as_deref(), Some("2599.998"));
        assert_eq!(field(text, "MHz"), None);
    }
}
