//! How long to wait for workers.

use std::time::Duration;

use crate::protocol::Request;

/// Samples beyond this number do not extend the timeout: more are only requested for short calls.
const LONG_SAMPLES: usize = 8;

/// The environment variable with another limit for a first call, in seconds: of `build` and `prepare`, in which kernels are compiled
/// and called for the first time.
pub const FIRST_CALL_TIMEOUT: &str = "GAUNTLET_FIRST_CALL_TIMEOUT";

/// How long to wait for each kind of call before the worker counts as hung.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For `describe`, before whose answer a worker may import libraries and open its device, and for `stop`.
    pub describe: Duration,
    /// For `build`, which may compile, `prepare`, and `trace`, which may build.
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
    /// The timeouts of this machine: the usual ones, with the limit for a first call that the environment may set. A longer one also
    /// lengthens what may include a first call: starting, and a single computation.
    ///
    /// # Errors
    /// If the variable holds no positive number of seconds.
    pub fn of_environment() -> Result<Self, String> {
        std::env::var_os(FIRST_CALL_TIMEOUT).map_or(Ok(Self::default()), |text| {
            Self::with_first_call(&text.to_string_lossy())
        })
    }

    fn with_first_call(text: &str) -> Result<Self, String> {
        let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
        let build = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let build = build.ok_or_else(|| format!("{FIRST_CALL_TIMEOUT} is `{text}`"))?;
        let usual = Self::default();
        Ok(Self {
            build,
            describe: usual.describe.max(build),
            compute: usual.compute.max(build),
            ..usual
        })
    }

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
            Request::Build { .. } | Request::Prepare | Request::Trace { .. } => self.build,
            Request::Load { .. } | Request::Output { .. } => self.transfer,
            Request::Run { .. } => self.compute,
            Request::Time { copies, .. } | Request::Activity { copies } => self.for_calls(copies),
            Request::Step { copies, heat, .. } => {
                let load = Duration::try_from_secs_f64(heat.iter().sum());
                self.for_calls(copies).saturating_add(load.unwrap_or_default())
            }
        }
    }

    /// Whether a request of this name waits for a first call, so that its limit says nothing of the kernel.
    pub(crate) fn is_first_call(call: &str) -> bool {
        matches!(call, "build" | "prepare")
    }

    fn for_calls(self, copies: &[usize]) -> Duration {
        let calls = copies.len().clamp(1, LONG_SAMPLES);
        self.compute.saturating_mul(calls as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_for_a_first_call_is_a_positive_number_of_seconds() {
        let short = Timeouts::with_first_call("1.5").unwrap();
        assert_eq!(short.with(&Request::Prepare), Duration::from_millis(1500));
        assert_eq!(short.compute, Timeouts::default().compute);
        let long = Timeouts::with_first_call("900").unwrap();
        assert_eq!(long.with(&Request::Describe), Duration::from_secs(900));
        for wrong in ["", "0", "-3", "two", "inf", "nan"] {
            assert!(
                Timeouts::with_first_call(wrong)
                    .unwrap_err()
                    .contains(FIRST_CALL_TIMEOUT)
            );
        }
    }
}
