//! What answers for a participant, as a file says it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::used::Used;

/// What answers for a participant: a program, or a model behind a provider's interface. Its keys stand among those of a
/// `[[contestant]]` or a `[[panellist]]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Engine {
    /// A program and its arguments, started in the folder of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Vec<PathBuf>>,
    /// Whose interface the model speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderName>,
    /// The name of the provider's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A file that tells the model who it is, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<PathBuf>,
    /// The base address of another server that speaks the provider's interface, such as `http://localhost:8000/v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// What the model's tokens cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The most that it may use over a tournament.
    #[serde(default)]
    pub budget: Budget,
}

/// Whose interface a model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderName {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's chat completions, which local servers speak too.
    Openai,
}

/// What a million tokens cost, in any currency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Price {
    /// Those that the model reads.
    pub input: f64,
    /// Those that it writes.
    pub output: f64,
}

/// The most that a participant may use over a tournament.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Budget {
    /// Lines of a program; answers and uses of tools of a model.
    pub turns: u32,
    /// Tokens that a model reads and writes.
    pub tokens: u64,
    /// Time for which its answers are awaited.
    pub wall: SignedDuration,
    /// Uses of the tools `check` and `quick`.
    pub checks: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            turns: 40,
            tokens: 200_000,
            wall: SignedDuration::from_mins(20),
            checks: 10,
        }
    }
}

impl Budget {
    /// What is left of it.
    pub fn without(&self, used: &Used) -> Self {
        let wall = self.wall.as_secs_f64() - used.wall;
        Self {
            turns: self.turns.saturating_sub(used.turns),
            tokens: self.tokens.saturating_sub(used.tokens()),
            wall: SignedDuration::try_from_secs_f64(wall.max(0.0)).unwrap_or(SignedDuration::MAX),
            checks: self.checks.saturating_sub(used.checks),
        }
    }
}

impl Engine {
    /// Checks what can be checked before anything starts; `folder` is that of the file.
    ///
    /// # Errors
    /// With what is wrong and how to mend it.
    pub fn validate(&self, folder: &Path) -> Result<(), String> {
        match (&self.program, self.provider) {
            (Some(_), Some(_)) => Err("`program` and `provider` exclude each other: keep one".to_owned()),
            (None, None) => {
                Err("nothing answers: name a `program`, or a `provider` and its `model`".to_owned())
            }
            (Some(program), None) => self.validate_program(program, folder),
            (None, Some(_)) => self.validate_model(folder),
        }?;
        self.validate_budget()
    }

    fn validate_program(&self, program: &[PathBuf], folder: &Path) -> Result<(), String> {
        let others = [
            ("model", self.model.is_some()),
            ("persona", self.persona.is_some()),
            ("address", self.address.is_some()),
            ("price", self.price.is_some()),
        ];
        if let Some((key, _)) = others.iter().find(|(_, is_there)| *is_there) {
            return Err(format!(
                "`{key}` belongs to a `provider`, not to a `program`: leave it out"
            ));
        }
        let Some(first) = program.first().filter(|first| !first.as_os_str().is_empty()) else {
            return Err("`program` is empty: name a program and its arguments".to_owned());
        };
        if located(first, folder).is_none() {
            let place = if is_path(first) {
                "in the file's folder"
            } else {
                "on PATH"
            };
            return Err(format!("there is no program `{}` {place}", first.display()));
        }
        Ok(())
    }

    fn validate_model(&self, folder: &Path) -> Result<(), String> {
        if self.model.as_ref().is_none_or(|model| model.trim().is_empty()) {
            return Err("a `provider` has many models: name one as `model`".to_owned());
        }
        self.persona_text(folder)?;
        if let Some(address) = &self.address {
            validate_address(address)?;
        }
        let is_price = |price: f64| price.is_finite() && price >= 0.0;
        if let Some(price) = self.price
            && !(is_price(price.input) && is_price(price.output))
        {
            return Err("a `price` is a number of at least 0".to_owned());
        }
        Ok(())
    }

    fn validate_budget(&self) -> Result<(), String> {
        let Budget {
            turns, tokens, wall, ..
        } = self.budget;
        let empty = [
            ("turns", turns == 0),
            ("tokens", tokens == 0 && self.provider.is_some()),
            ("wall", wall <= SignedDuration::ZERO),
        ];
        match empty.iter().find(|(_, is_empty)| *is_empty) {
            Some((key, _)) => Err(format!(
                "a budget without `{key}` allows no answer: give it more than 0"
            )),
            None => Ok(()),
        }
    }

    /// The text of the persona, if there is one.
    pub(crate) fn persona_text(&self, folder: &Path) -> Result<Option<String>, String> {
        let Some(persona) = &self.persona else {
            return Ok(None);
        };
        fs::read_to_string(folder.join(persona))
            .map(Some)
            .map_err(|error| format!("the persona `{}` cannot be read: {error}", persona.display()))
    }
}

/// Whether an address is one of a server, and holds no secret.
fn validate_address(address: &str) -> Result<(), String> {
    let rest = ["https://", "http://"]
        .iter()
        .find_map(|scheme| address.strip_prefix(scheme));
    let Some(rest) = rest.filter(|rest| !rest.is_empty() && !rest.starts_with('/')) else {
        return Err(format!(
            "`{address}` is no `address`: write `https://host` or `http://host:port`, with a path if need be"
        ));
    };
    if rest.contains(['@', '?', '#']) {
        return Err(
            "an `address` holds no user, password or query: keys come from the environment".to_owned(),
        );
    }
    Ok(())
}

fn is_path(program: &Path) -> bool {
    program.components().count() > 1
}

/// The file of a program: relative to the folder, or, of a lone name, on PATH.
pub(crate) fn located(program: &Path, folder: &Path) -> Option<PathBuf> {
    let is_file = |file: &PathBuf| file.is_file();
    if is_path(program) {
        return Some(folder.join(program)).filter(is_file);
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|place| place.join(program))
        .find(is_file)
}
