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
    /// The budget without what was used.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// As a round file names contestants.
    #[derive(Debug, Deserialize)]
    struct Entry {
        name: String,
        #[serde(flatten)]
        engine: Engine,
    }

    fn entry(text: &str) -> Entry {
        toml::from_str(text).unwrap()
    }

    fn complaint(text: &str) -> String {
        entry(&format!("name = 'Tiles'\n{text}"))
            .engine
            .validate(Path::new("/bin"))
            .unwrap_err()
    }

    #[test]
    fn an_entry_is_read_and_written() {
        let entry = entry(
            "name = 'Tiles'\nprovider = 'openai'\nmodel = 'small'\naddress = 'http://localhost:8000/v1'\n\
             price = { input = 0.5, output = 1.5 }\nbudget = { turns = 4, wall = '90s' }",
        );
        assert_eq!(entry.name, "Tiles");
        let engine = entry.engine;
        engine.validate(Path::new("/")).unwrap();
        let expected = Budget {
            turns: 4,
            wall: SignedDuration::from_secs(90),
            ..Budget::default()
        };
        assert_eq!(engine.budget, expected);
        assert_eq!((expected.tokens, expected.checks), (200_000, 10));
        let text = serde_json::to_string(&engine).unwrap();
        assert_eq!(serde_json::from_str::<Engine>(&text).unwrap(), engine);
    }

    #[test]
    fn what_cannot_work_is_told_with_a_remedy() {
        let model = "provider = 'openai'\nmodel = 'small'\n";
        for (text, words) in [
            ("", "nothing answers"),
            ("program = ['sh']\nprovider = 'openai'", "exclude each other"),
            ("program = []", "is empty"),
            (
                "program = ['no-such-program']",
                "there is no program `no-such-program` on PATH",
            ),
            (
                "program = ['./no-such-program']",
                "there is no program `./no-such-program` in the file's folder",
            ),
            (
                "program = ['sh']\nmodel = 'small'",
                "`model` belongs to a `provider`",
            ),
            ("program = ['sh']\nbudget = { turns = 0 }", "without `turns`"),
            ("program = ['sh']\nbudget = { wall = '-1s' }", "without `wall`"),
            ("provider = 'openai'", "name one as `model`"),
            (
                &format!("{model}persona = 'nobody.md'"),
                "the persona `nobody.md` cannot be read",
            ),
            (&format!("{model}address = 'localhost:8000'"), "is no `address`"),
            (
                &format!("{model}address = 'http://me:secret@host/'"),
                "holds no user",
            ),
            (
                &format!("{model}price = {{ input = -1.0, output = 1.0 }}"),
                "at least 0",
            ),
            (&format!("{model}budget = {{ tokens = 0 }}"), "without `tokens`"),
        ] {
            let complaint = complaint(text);
            assert!(
                complaint.contains(words) && !complaint.contains("secret"),
                "{text}: {complaint}"
            );
        }
        entry("name = 'Tiles'\nprogram = ['./sh', '-c', 'x']")
            .engine
            .validate(Path::new("/bin"))
            .unwrap();
        assert!(toml::from_str::<Entry>("name = 'Tiles'\nbudget = { turn = 4 }").is_err());
    }

    #[test]
    fn what_is_used_is_taken_off() {
        let used = Used {
            turns: 50,
            tokens_in: 1000,
            tokens_out: 500,
            wall: 90.5,
            checks: 3,
            money: None,
        };
        let left = Budget::default().without(&used);
        let expected = Budget {
            turns: 0,
            tokens: 198_500,
            wall: SignedDuration::from_millis(1_109_500),
            checks: 7,
        };
        assert_eq!(left, expected);
    }
}
