//! Who takes part in a round besides the people who write pitches into files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use gauntlet_contestants::Engine;
use gauntlet_entrants::{FileError, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::panel::USUAL_WEIGHTS;
use crate::round::{Weights, digest_of};

/// Someone who pitches changes, builds them, and says afterwards what was wrong with the forecast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(rename_all = "kebab-case")]
pub struct ContestantFile {
    /// A name; pitches, records and credit belong to it.
    pub name: String,
    /// What answers for it.
    #[serde(flatten)]
    pub engine: Engine,
    /// Keys that no part of this knows.
    #[serde(flatten)]
    #[schemars(skip)]
    unknown: BTreeMap<String, Value>,
}

/// Someone who asks about pitches and scores them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(rename_all = "kebab-case")]
pub struct PanellistFile {
    /// A name.
    pub name: String,
    /// The weights of the dimensions; the usual ones unless given.
    #[serde(default = "usual_weights")]
    pub weights: Weights,
    /// What answers for it.
    #[serde(flatten)]
    pub engine: Engine,
    /// Keys that no part of this knows.
    #[serde(flatten)]
    #[schemars(skip)]
    unknown: BTreeMap<String, Value>,
}

fn usual_weights() -> Weights {
    USUAL_WEIGHTS
}

/// A contestant or a panellist of a round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Participant {
    /// A name.
    pub name: String,
    /// The weights of the dimensions, for a panellist.
    pub weights: Weights,
    /// What answers.
    pub engine: Engine,
    /// The folder that its paths are relative to.
    #[serde(skip)]
    pub folder: PathBuf,
}

impl Participant {
    /// Whether anything answers; a panellist without a program or a model follows the written rules.
    pub fn acts(&self) -> bool {
        self.engine.program.is_some() || self.engine.provider.is_some()
    }
}

/// The contestants that a file names.
pub fn contestants<T>(source: &Source<T>, files: &[ContestantFile]) -> Vec<Participant> {
    let contestant = |file: &ContestantFile| Participant {
        name: file.name.clone(),
        weights: USUAL_WEIGHTS,
        engine: file.engine.clone(),
        folder: source.folder().to_owned(),
    };
    files.iter().map(contestant).collect()
}

/// The panellists that a file names.
pub fn panellists<T>(source: &Source<T>, files: &[PanellistFile]) -> Vec<Participant> {
    let panellist = |file: &PanellistFile| Participant {
        name: file.name.clone(),
        weights: file.weights,
        engine: file.engine.clone(),
        folder: source.folder().to_owned(),
    };
    files.iter().map(panellist).collect()
}

/// A digest of participants, with the programs and personas that they name.
pub fn digest<'p>(participants: impl Iterator<Item = &'p Participant>) -> String {
    let mut texts = Vec::new();
    for one in participants {
        texts.push(serde_json::to_string(one).unwrap_or_default());
        let words = one.engine.program.iter().flatten().chain(&one.engine.persona);
        let files = words
            .map(|word| one.folder.join(word))
            .filter(|file| file.is_file());
        texts.extend(
            files.filter_map(|file| Some(blake3::hash(&std::fs::read(file).ok()?).to_hex().to_string())),
        );
    }
    digest_of(&texts)
}

/// Checks those that a file names.
pub fn check<T>(
    source: &Source<T>,
    contestants: &[ContestantFile],
    panellists: &[PanellistFile],
) -> Result<(), FileError> {
    let is_contestant = |name: &str| contestants.iter().any(|one| one.name == name);
    let acting = contestants
        .iter()
        .map(|one| (&one.name, &one.engine, &one.unknown));
    let panellists = panellists
        .iter()
        .map(|one| (&one.name, &one.engine, &one.unknown));
    let mut names = BTreeSet::new();
    for (name, engine, unknown) in acting.chain(panellists) {
        if name.trim().is_empty() || !names.insert(name) {
            let message = format!("a contestant or panellist is called `{name}`, which is empty or taken");
            return Err(source.error_at(name, message, "give each a name of its own"));
        }
        if let Some(key) = unknown.keys().next() {
            let message = format!("{name}: there is no key `{key}`");
            let remedy = "docs/reference/contestants.md shows the keys of contestants and panellists";
            return Err(source.error_at(key, message, remedy));
        }
        // A panellist may follow the written rules.
        let follows_rules = engine.program.is_none() && engine.provider.is_none() && !is_contestant(name);
        if follows_rules {
            continue;
        }
        engine.validate(source.folder()).map_err(|message| {
            let remedy = "docs/reference/contestants.md shows how contestants and panellists are named";
            source.error_at(name, format!("{name}: {message}"), remedy)
        })?;
    }
    Ok(())
}
