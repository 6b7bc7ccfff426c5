//! How long to wait for workers.

use std::time::Duration;

use crate::protocol::Request;

/// Samples beyond this number do not extend the timeout: more are only requested for short calls.
const LONG_SAMPLES: usize = 8;

/// How long to wait for each kind of call before the worker counts as hung.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For `describe`, before whose answer a worker may import libraries and open its device, and for `stop`.
    pub describe: Duration,
    /// For `build`, which may compile, `prepare`, `calibrate`, and `trace`, which may build.
    pub build: Duration,
    /// For `load` and `output`, which read and write files.
    pub transfer: Duration,
    /// For one computation; `time` and `step` may take this for each of its first eight samples, and `step`
    /// also the load that it is asked for.
    pub compute: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            describe: Duration::from_secs(60),
            build: Duration::from_secs(120),
            transfer: Duration::from_secs(120),
            compute: Duration::from_secs(60),
        }
    }
}

impl Timeouts {
    /// The timeouts for a worker that a tool slows down by this factor.
    pub fn longer(self, factor: u32) -> Self {
        Self {
            describe: self.describe.saturating_mul(factor),
            build: self.build.saturating_mul(factor),
            transfer: self.transfer.saturating_mul(factor),
            compute: self.compute.saturating_mul(factor),
        }
    }

    /// The time allowed from the request's first byte to the reply's last.
    pub(crate) fn with(self, request: &Request) -> Duration {
        match request {
            Request::Describe | Request::Stop => self.describe,
            Request::Build { .. } | Request::Prepare | Request::Calibrate { .. } | Request::Trace { .. } => {
                self.build
            }
            Request::Load { .. } | Request::Output { .. } => self.transfer,
            Request::Run { .. } => self.compute,
            Request::Time { copies, .. } | Request::Activity { copies } => self.for_calls(copies),
            Request::Step { copies, heat, .. } => {
                let load = Duration::try_from_secs_f64(heat.iter().sum());
                self.for_calls(copies).saturating_add(load.unwrap_or_default())
            }
        }
    }

    fn for_calls(self, copies: &[usize]) -> Duration {
        let calls = copies.len().clamp(1, LONG_SAMPLES);
        self.compute.saturating_mul(calls as u32)
    }
}
