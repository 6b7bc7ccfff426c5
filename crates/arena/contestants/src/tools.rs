//! Tools that a participant may use while it works on an answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool, as its users are told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Its name: letters, digits, `_` and `-`.
    pub name: String,
    /// What it does, and when to use it.
    pub description: String,
    /// The JSON schema of its arguments, an object.
    pub arguments: Value,
}

/// The tools of one question.
pub trait Tools {
    /// All of them.
    fn list(&self) -> Vec<Tool>;

    /// Uses one.
    ///
    /// # Errors
    /// If there is no such tool, or it cannot do what is asked: a sentence that the participant is told.
    fn call(&mut self, name: &str, arguments: &Value) -> Result<Value, String>;
}
