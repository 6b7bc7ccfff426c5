//! The JSON documents that this program writes: each says its kind and version in its first field.

use std::fmt;

use gauntlet_device::Device;
use gauntlet_judge::ComparisonReport;
use gauntlet_judge::ledger::Entry;
use gauntlet_queue::Status;
use gauntlet_task::Suite;
use gauntlet_tournament::TournamentReport;
use gauntlet_tournament::forecast::Forecasters;
use schemars::JsonSchema;
use serde::Serialize;

/// A result that is written as a JSON object.
pub trait Document: Serialize + JsonSchema {
    /// The kind of document, such as `comparison`.
    const NAME: &'static str;

    /// The version of its form; raised when a reader of the previous form could misread it.
    const VERSION: u32;
}

impl Document for ComparisonReport {
    const NAME: &'static str = "comparison";
    const VERSION: u32 = 2;
}

impl Document for TournamentReport {
    const NAME: &'static str = "run";
    const VERSION: u32 = 2;
}

impl Document for Suite {
    const NAME: &'static str = "suite";
    const VERSION: u32 = 1;
}

impl Document for Device {
    const NAME: &'static str = "device";
    const VERSION: u32 = 1;
}

impl Document for Entry {
    const NAME: &'static str = "ledger-record";
    const VERSION: u32 = 1;
}

impl Document for Status {
    const NAME: &'static str = "ticket";
    const VERSION: u32 = 1;
}

impl Document for Forecasters {
    const NAME: &'static str = "forecasters";
    const VERSION: u32 = 1;
}

/// A document with its kind and version before its own fields.
#[derive(Serialize)]
pub struct Versioned<'d, D> {
    schema: String,
    #[serde(flatten)]
    document: &'d D,
}

impl<'d, D: Document> Versioned<'d, D> {
    /// The document as it is written.
    pub fn of(document: &'d D) -> Self {
        Self {
            schema: Kind::of::<D>().to_string(),
            document,
        }
    }
}

/// A kind of document in a version: `gauntlet/comparison/2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind<'k> {
    /// The name.
    pub name: &'k str,
    /// The version.
    pub version: u32,
}

impl Kind<'static> {
    /// The kind of a type of document, in the version that this program writes.
    pub const fn of<D: Document>() -> Self {
        Self {
            name: D::NAME,
            version: D::VERSION,
        }
    }
}

impl<'k> Kind<'k> {
    /// The kind that a document's `schema` names; none if it is no such name.
    pub fn read(schema: &'k str) -> Option<Self> {
        let (name, version) = schema.strip_prefix("gauntlet/")?.split_once('/')?;
        Some(Self {
            name,
            version: version.parse().ok()?,
        })
    }
}

impl fmt::Display for Kind<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "gauntlet/{}/{}", self.name, self.version)
    }
}
