//! Data caches of the first processor, from Linux' `cache` folder.

use std::path::Path;

use super::system::read;
use crate::{Bytes, Figure};

const FOLDER: &str = "/sys/devices/system/cpu/cpu0/cache";

/// The data caches seen from one processor.
#[derive(Default)]
pub(super) struct Caches {
    /// First level.
    pub(super) l1: Option<Figure<Bytes>>,
    /// Second level.
    pub(super) l2: Option<Figure<Bytes>>,
    /// The highest level there is.
    pub(super) last_level: Option<Figure<Bytes>>,
}

/// Reads every cache that holds data.
pub(super) fn sizes() -> Caches {
    sizes_in(Path::new(FOLDER))
}

fn sizes_in(folder: &Path) -> Caches {
    let mut caches = Caches::default();
    let mut highest = 0;
    for index in 0.. {
        let entry = folder.join(format!("index{index}"));
        let Some(level) = read(entry.join("level")).and_then(|level| level.parse::<u32>().ok()) else {
            break;
        };
        let Some(size) = read(entry.join("size")).and_then(|size| bytes(&size)) else {
            continue;
        };
        if read(entry.join("type")).is_some_and(|kind| kind == "Instruction") {
            continue;
        }
        let shared = read(entry.join("shared_cpu_list")).unwrap_or_else(|| "unknown".to_owned());
        let source = format!("detected: {} (processors {shared})", entry.join("size").display());
        let figure = Figure::new(size, source).in_unit("KiB");
        match level {
            1 => caches.l1 = Some(figure.clone()),
            2 => caches.l2 = Some(figure.clone()),
            _ => {}
        }
        if level > highest {
            highest = level;
            caches.last_level = Some(figure);
        }
    }
    caches
}

fn bytes(text: &str) -> Option<f64> {
    let (digits, factor) = match text.chars().last()? {
        'K' => (&text[..text.len() - 1], 1024.0),
        'M' => (&text[..text.len() - 1], 1_048_576.0),
        _ => (text, 1.0),
    };
    digits
        .parse::<f64>()
        .ok()
        .filter(|value| *value > 0.0)
        .map(|value| value * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_caches_are_told_from_instruction_caches() {
        let folder = tempfile::tempdir().unwrap();
        for (index, level, kind, size) in [
            (0, "1", "Data", "48K"),
            (1, "1", "Instruction", "32K"),
            (2, "2", "Unified", "2048K"),
            (3, "3", "Unified", "36M"),
        ] {
            let entry = folder.path().join(format!("index{index}"));
            std::fs::create_dir(&entry).unwrap();
            for (file, text) in [
                ("level", level),
                ("type", kind),
                ("size", size),
                ("shared_cpu_list", "0-1"),
            ] {
                std::fs::write(entry.join(file), format!("{text}\n")).unwrap();
            }
        }
        let caches = sizes_in(folder.path());
        let size = |figure: Option<Figure<Bytes>>| figure.map(|figure| figure.get());
        assert_eq!(size(caches.l1), Some(49152.0));
        assert_eq!(size(caches.l2), Some(2_097_152.0));
        assert_eq!(size(caches.last_level), Some(37_748_736.0));
    }

    #[test]
    fn a_system_that_tells_nothing_yields_nothing() {
        let caches = sizes_in(Path::new("/nowhere"));
        assert!(caches.l1.is_none() && caches.l2.is_none() && caches.last_level.is_none());
    }
}
