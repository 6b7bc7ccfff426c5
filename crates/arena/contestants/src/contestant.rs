//! One participant over a tournament.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::conversation::Conversation;
use crate::engine::{Budget, Engine};
use crate::misconduct::Misconduct;
use crate::model::{self, Surroundings};
use crate::program;
use crate::tools::Tools;
use crate::used::Used;

/// A contestant or a panellist. What it uses of its budget adds up over all questions.
#[derive(Debug, Clone)]
pub struct Contestant {
    name: String,
    engine: Engine,
    folder: PathBuf,
    pub(crate) surroundings: Surroundings,
    used: Used,
}

/// What answers of a phase look like.
#[derive(Debug, Clone)]
pub struct Form {
    /// What is asked, in words: told to models. Programs know it from the documentation.
    pub words: String,
    /// The JSON schema of the answer: told to models.
    pub schema: Value,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The answer.
    pub answer: Value,
    /// What it has cost.
    pub used: Used,
    /// What was wrong with the answers before it.
    pub refused: Vec<String>,
}

impl Contestant {
    /// A participant of this name that has used nothing yet; the paths in `engine` are relative to `folder`.
    pub fn new(name: impl Into<String>, engine: Engine, folder: &Path) -> Self {
        Self {
            name: name.into(),
            engine,
            // Programs are started there, and look from there.
            folder: std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()),
            surroundings: Surroundings::default(),
            used: Used::default(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it has used so far, questions without an answer included.
    pub fn used(&self) -> &Used {
        &self.used
    }

    /// The part of its budget that it has not used.
    pub fn left(&self) -> Budget {
        self.engine.budget.without(&self.used)
    }

    /// Counts what it has used before, such as in the records of a tournament that is resumed.
    pub fn spend(&mut self, used: &Used) {
        self.used.add(used);
    }

    /// Asks a question, which is a JSON object; tools and the rest of the budget are added to it. An answer that `accepts`
    /// refuses may be given again, twice at most.
    ///
    /// # Errors
    /// If there is no answer. What it has cost counts all the same.
    pub fn ask(
        &mut self,
        question: &Value,
        form: &Form,
        tools: Option<&mut dyn Tools>,
        accepts: &dyn Fn(&Value) -> Result<(), String>,
    ) -> Result<Asked, Misconduct> {
        let tools = tools.map(|tools| tools as &mut dyn Tools);
        let mut conversation = Conversation::new(self.left(), tools, accepts)?;
        let answer = self.answer(question, form, &mut conversation);
        let (used, refused) = conversation.end();
        self.used.add(&used);
        Ok(Asked {
            answer: answer?,
            used,
            refused,
        })
    }

    fn answer(
        &self,
        question: &Value,
        form: &Form,
        conversation: &mut Conversation,
    ) -> Result<Value, Misconduct> {
        match (&self.engine.program, self.engine.provider) {
            (Some(program), _) => program::answer(program, &self.folder, question, conversation),
            (None, Some(provider)) => model::answer(
                provider,
                &self.engine,
                &self.folder,
                &self.surroundings,
                (question, form),
                conversation,
            ),
            (None, None) => Err(Misconduct::Environment {
                why: "nothing answers: the file names neither a program nor a provider".to_owned(),
            }),
        }
    }
}
