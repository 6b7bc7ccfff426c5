//! Reading the state of the device that workers compute on. The program that has the device's management library
//! implements [`DeviceWatch`], so that the judge does not depend on it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Reads the state of a device.
pub trait DeviceWatch: fmt::Debug + Send + Sync {
    /// The state now; none if it cannot be read.
    fn read(&self) -> Option<DeviceReading>;
}

/// The state of a device at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceReading {
    /// Clock of the multiprocessors, in MHz.
    pub clock: f64,
    /// Power, in watts.
    pub power: f64,
    /// Temperature, in degrees Celsius.
    pub temperature: f64,
    /// Reasons why the clock is held back, such as `power limit`; empty if nothing holds it back.
    pub throttling: Vec<String>,
    /// The ids of the processes that compute on the device; none if they cannot be read.
    pub processes: Option<Vec<u32>>,
}

/// A reading that takes longer is slow: it lengthens the pause after a slot by as much.
const SLOW: Duration = Duration::from_millis(5);

/// After this many slow readings the device is not read any more. A single one may be due to a busy machine.
const MAX_SLOW: usize = 3;

/// A watch that is read only as long as its readings are quick. The first one may be slow, since it may have to start a library.
#[derive(Debug)]
pub struct QuickWatch {
    watch: Arc<dyn DeviceWatch>,
    was_read: AtomicBool,
    slow: AtomicUsize,
}

impl QuickWatch {
    /// A watch that has not been read.
    pub fn new(watch: Arc<dyn DeviceWatch>) -> Self {
        Self {
            watch,
            was_read: AtomicBool::new(false),
            slow: AtomicUsize::new(0),
        }
    }

    /// The state now; none if it cannot be read, or if too many readings were slow.
    pub fn read(&self) -> Option<DeviceReading> {
        if self.has_given_up() {
            return None;
        }
        let start = Instant::now();
        let reading = self.watch.read();
        self.note(start.elapsed());
        reading
    }

    fn has_given_up(&self) -> bool {
        self.slow.load(Ordering::Relaxed) >= MAX_SLOW
    }

    /// Notes how long a reading took.
    fn note(&self, took: Duration) {
        let was_read = self.was_read.swap(true, Ordering::Relaxed);
        if was_read && took > SLOW {
            self.slow.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Steady;

    impl DeviceWatch for Steady {
        fn read(&self) -> Option<DeviceReading> {
            Some(DeviceReading {
                clock: 1980.0,
                power: 300.0,
                temperature: 50.0,
                throttling: Vec::new(),
                processes: None,
            })
        }
    }

    #[test]
    fn a_device_that_takes_long_to_read_is_not_read_any_more() {
        // The first reading may be slow, and so may two more, whatever comes between them.
        let watch = QuickWatch::new(Arc::new(Steady));
        for took in [2, 0, 2, 0, 2] {
            watch.note(took * SLOW);
            assert!(!watch.has_given_up());
        }
        watch.note(2 * SLOW);
        assert!(watch.has_given_up() && watch.read().is_none());
    }
}
