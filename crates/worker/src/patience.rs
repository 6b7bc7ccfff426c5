//! How long workers are awaited.

use std::time::Duration;

use crate::protocol::Request;

/// Samples beyond these take no longer to wait for: more are only asked of calls that are short.
const LONG_SAMPLES: usize = 8;

/// How long to wait for each sort of call before the worker is taken to hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For describe and stop.
    pub describe: Duration,
    /// For build, which may compile, for prepare, for calibrate, and for trace, which may build.
    pub build: Duration,
    /// For load and output, which read and write files.
    pub transfer: Duration,
    /// For one computation; `time` may take this for each of its first eight samples.
    pub compute: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            describe: Duration::from_secs(20),
            build: Duration::from_secs(120),
            transfer: Duration::from_secs(120),
            compute: Duration::from_secs(60),
        }
    }
}

impl Patience {
    /// For a worker that a tool slows down by that factor.
    pub fn longer(self, factor: u32) -> Self {
        Self {
            describe: self.describe.saturating_mul(factor),
            build: self.build.saturating_mul(factor),
            transfer: self.transfer.saturating_mul(factor),
            compute: self.compute.saturating_mul(factor),
        }
    }

    /// From the request's first byte to the reply's last.
    pub(crate) fn with(self, request: &Request) -> Duration {
        match request {
            Request::Describe | Request::Stop => self.describe,
            Request::Build { .. } | Request::Prepare | Request::Calibrate { .. } | Request::Trace { .. } => {
                self.build
            }
            Request::Load { .. } | Request::Output { .. } => self.transfer,
            Request::Run { .. } => self.compute,
            Request::Time { samples, .. } => self
                .compute
                .saturating_mul((*samples).clamp(1, LONG_SAMPLES) as u32),
        }
    }
}
