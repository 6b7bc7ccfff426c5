//! Results of the reference, and what is refused of them.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gauntlet_task::{ErrorMeasures, Expected, InputTensors, Output, Rightness, Rules};
use gauntlet_tensors::Tensor;
use serde_json::Value;

use super::PythonSizes;
use crate::TaskError;
use crate::memory::{MemoryFile, without_room};

/// How long a reference may take to be called twice on each case, and not only on the first that is computed.
const QUICK: Duration = Duration::from_secs(2);

impl PythonSizes {
    pub(super) fn computed_anew(&self, inputs: &InputTensors) -> Result<Output, TaskError> {
        let start = Instant::now();
        let output = self.referred(inputs, Duration::MAX)?;
        let taken = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.shortest.fetch_min(taken, Ordering::Relaxed);
        if self.task.opened().check_is_the_rule {
            return Ok(output);
        }
        self.refuse_nan(&output)?;
        let is_quick = start.elapsed() <= QUICK || !self.task.was_repeated();
        if is_quick && !self.repeated.load(Ordering::Relaxed) {
            let again = self.referred(inputs, Duration::MAX)?;
            self.refuse_another(&output, &again)?;
            self.repeated.store(true, Ordering::Relaxed);
            self.task.note_repeated();
        }
        Ok(output)
    }

    /// Calls the reference, which may take this long at most.
    pub(super) fn referred(&self, inputs: &InputTensors, most: Duration) -> Result<Output, TaskError> {
        self.referred_with(inputs, most, Value::Null)
    }

    /// Calls the reference with more in the request.
    pub(super) fn referred_with(
        &self,
        inputs: &InputTensors,
        most: Duration,
        more: Value,
    ) -> Result<Output, TaskError> {
        let (given, made) = (MemoryFile::of(&inputs.0)?, MemoryFile::new()?);
        let files = [("inputs", &given), ("path", &made)];
        let request = self.request("expected", more);
        let reference = self.task.reference();
        reference.ask_within::<Value>(most, &request, &files)?;
        Output::load(made.path(), &self.tensors()?.outputs).map_err(|error| without_room(&error))
    }

    /// An output that is NaN everywhere would be right without being written.
    pub(super) fn refuse_nan(&self, output: &Output) -> Result<(), TaskError> {
        let is_nan = |tensor: &&Tensor| {
            let mut elements = 0..tensor.len();
            !tensor.is_empty() && elements.all(|index| tensor.get(index).is_nan())
        };
        match output.0.iter().find(is_nan) {
            None => Ok(()),
            Some(tensor) => Err(self.at_fault(
                format!(
                    "the reference is NaN in all elements of `{}`, {}, so nothing can be compared",
                    tensor.spec.name,
                    self.on()
                ),
                "correct the reference or the inputs",
            )),
        }
    }

    /// A reference that answers otherwise each time makes every kernel wrong; differences of rounding stay within the limits.
    pub(super) fn refuse_another(&self, output: &Output, again: &Output) -> Result<(), TaskError> {
        if output == again {
            return Ok(());
        }
        let limits = self.limits(output)?;
        let expected = Expected::of(output).within(limits);
        let rules = Rules::default();
        let errors = ErrorMeasures::between(again, &expected, rules.tolerance);
        match rules.fault(&errors, Rightness::default()) {
            None => Ok(()),
            Some(fault) => Err(self.at_fault(
                format!(
                    "the reference gives two results for the same inputs, {}, which are farther apart than a kernel's may be: {fault}",
                    self.on()
                ),
                "let it compute the same each time: switch off dropout and other random draws (`eval()` for a model), and keep nothing \
                 from call to call; a task with several right results writes `tolerance = \"check\"` and a `check`",
            )),
        }
    }

    pub(super) fn at_fault(&self, message: String, remedy: &str) -> TaskError {
        TaskError::new(message, remedy).in_file(self.task.path())
    }
}
