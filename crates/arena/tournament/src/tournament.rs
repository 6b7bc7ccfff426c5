//! Tournament files: rounds in order.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::participants::{self, ContestantFile, PanellistFile};
use crate::round::{Overrides, Round, digest_of};
use gauntlet_entrants::{EntrantError, FileError, Source};

/// The content of a tournament file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TournamentFile {
    /// Its name.
    name: String,
    /// What it is about, in a sentence or more.
    title: String,
    /// Round files, and tournament files whose rounds are inserted at that place.
    rounds: Vec<PathBuf>,
    /// Contestants of all its rounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    contestant: Vec<ContestantFile>,
    /// Panellists of all its rounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    panellist: Vec<PanellistFile>,
}

/// A series of rounds, all read and checked before the first is played.
#[derive(Debug, Clone)]
pub struct Tournament {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// The rounds in order.
    pub rounds: Vec<Round>,
    /// A digest of everything that was read.
    pub digest: String,
    /// What it was read from, as it was named.
    pub path: PathBuf,
    /// What replaces values of its files.
    pub overrides: Overrides,
}

/// The file name looked for in a folder.
const FILE_IN_FOLDER: &str = "tournament.toml";

/// Nesting deeper than this means that a file includes itself.
const DEEPEST: usize = 8;

impl Tournament {
    /// Reads a tournament file, a folder with a `tournament.toml`, or a lone round file.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Self, EntrantError> {
        let path = if path.is_dir() {
            path.join(FILE_IN_FOLDER)
        } else {
            path.to_owned()
        };
        let mut rounds = Vec::new();
        let (name, title) = collect(&path, overrides, &mut rounds, 0)?;
        for (index, round) in rounds.iter().enumerate() {
            let taken = rounds[..index]
                .iter()
                .any(|earlier| earlier.file().name == round.file().name);
            if taken {
                let message = format!("two rounds are named `{}`", round.file().name);
                return Err(round
                    .source
                    .error_at("name", message, "give every round its own name")
                    .into());
            }
            let follows_source = index > 0 && rounds[index - 1].tree.is_some();
            if (index == 0 || follows_source) && round.file().baseline.is_none() && round.tree.is_none() {
                return Err(round
                    .source
                    .error_at(
                        "name",
                        match follows_source {
                            true => "the round has no `baseline`, and the one before it changes a source of its own",
                            false => "the first round has no `baseline` and there is no round before it",
                        },
                        "add a [baseline] with its schedule or kernel, or a [source]",
                    )
                    .into());
            }
        }
        for round in &rounds {
            let is_contestant = |author: &str| round.contestants.iter().any(|one| one.name == author);
            if let Some(pitch) = round.pitches.iter().find(|pitch| is_contestant(&pitch.author)) {
                let message = format!(
                    "`{}` is pitched in the name of the contestant {}",
                    pitch.name, pitch.author
                );
                let remedy = "give the person who wrote it as its author";
                return Err(round.source.error_at(&pitch.author, message, remedy).into());
            }
        }
        let digests: Vec<_> = rounds.iter().map(|round| round.digest.as_str()).collect();
        let digest = digest_of(&digests);
        Ok(Self {
            name,
            title,
            rounds,
            digest,
            path,
            overrides: overrides.clone(),
        })
    }
}

/// Adds the rounds of a file; returns the file's name and title.
fn collect(
    path: &Path,
    overrides: &Overrides,
    rounds: &mut Vec<Round>,
    depth: usize,
) -> Result<(String, String), EntrantError> {
    if depth > DEEPEST {
        return Err(FileError::whole(
            path,
            "tournament files include one another without end",
            "break the circle",
        )
        .into());
    }
    if is_round(path)? {
        let round = Round::load(path, overrides)?;
        let names = (round.file().name.clone(), round.file().title.clone());
        rounds.extend(round.repeated());
        return Ok(names);
    }
    let source: Source<TournamentFile> = Source::read(path, "tournament")?;
    if source.value.rounds.is_empty() {
        return Err(source
            .error_at(
                "rounds",
                "a tournament without rounds",
                "name at least one round file",
            )
            .into());
    }
    let TournamentFile {
        contestant,
        panellist,
        ..
    } = &source.value;
    participants::check(&source, contestant, panellist)?;
    let first = rounds.len();
    for file in &source.value.rounds {
        collect(&source.resolve(file), overrides, rounds, depth + 1)?;
    }
    for round in &mut rounds[first..] {
        round.join(
            participants::contestants(&source, contestant),
            participants::panellists(&source, panellist),
        )?;
    }
    Ok((source.value.name, source.value.title))
}

/// A file with `rounds` is a tournament, any other a round.
fn is_round(path: &Path) -> Result<bool, FileError> {
    let source: Source<toml::Table> = Source::read(path, "round or tournament")?;
    Ok(!source.value.contains_key("rounds"))
}
