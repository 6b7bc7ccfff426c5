//! What a model of a device predicts in place of what would be measured.

use std::collections::BTreeMap;

use crate::evidence::{Candidate, Comparison, JudgeError, Profile, Setting};

/// Predicts times where nothing runs. The judge has none of its own.
pub trait Model: Sync {
    /// The predicted comparison of two candidates; in words why there is none.
    ///
    /// # Errors
    /// If the predictions cannot be analysed.
    fn compare(
        &self,
        setting: &Setting,
        baseline: &Candidate,
        candidate: &Candidate,
    ) -> Result<Result<Comparison, String>, JudgeError>;

    /// Where the time of each timed case goes, in the words of measured profiles.
    ///
    /// # Errors
    /// Says in words why there is no prediction.
    fn profiles(&self, setting: &Setting, candidate: &Candidate)
    -> Result<BTreeMap<String, Profile>, String>;
}

/// Predicts nothing.
#[cfg(test)]
pub struct NoModel;

#[cfg(test)]
impl Model for NoModel {
    fn compare(
        &self,
        _: &Setting,
        _: &Candidate,
        _: &Candidate,
    ) -> Result<Result<Comparison, String>, JudgeError> {
        Ok(Err("there is no model".to_owned()))
    }

    fn profiles(&self, _: &Setting, _: &Candidate) -> Result<BTreeMap<String, Profile>, String> {
        Err("there is no model".to_owned())
    }
}
