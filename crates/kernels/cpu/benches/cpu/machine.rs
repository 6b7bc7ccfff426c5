//! The machine on which the figures were measured.

use gauntlet_device::Device;
use serde_json::{Value, json};

/// Used if the system does not report the size: larger than most processors' caches.
const UNKNOWN_CACHE: usize = 64 << 20;

/// The processor's name.
pub fn model() -> String {
    Device::host().title
}

/// Bytes of the last-level cache.
pub fn last_level_cache() -> usize {
    let size = Device::host().cpu.and_then(|cpu| cpu.last_level_size);
    size.map_or(UNKNOWN_CACHE, |size| size.get() as usize)
}

/// The commit that is checked out, if known.
pub fn commit() -> Option<String> {
    let mut git = std::process::Command::new("git");
    let found = git.args(["describe", "--always", "--dirty"]).output().ok()?;
    let name = String::from_utf8(found.stdout).ok()?;
    found.status.success().then(|| name.trim().to_owned())
}

/// A description of the system and its load.
pub fn describe() -> Value {
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    let load = load.as_deref().and_then(|load| load.split(' ').next());
    json!({
        "device": Device::host(),
        "system": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
        "load": load.and_then(|load| load.parse::<f64>().ok()),
    })
}
