//! `gauntlet schema`.

use std::path::Path;

use gauntlet_parameters::did_you_mean;

use crate::arguments::Schema;
use crate::error::CliError;
use crate::exit::Exit;
use crate::listing;
use crate::schemas::{PUBLISHED, Published};
use crate::sink;

/// Lists the published schemas, or prints one.
pub fn schema(arguments: &Schema) -> Result<Exit, CliError> {
    match &arguments.name {
        Some(name) => sink::write(Path::new("-"), find(name)?.text.as_bytes())?,
        None => list()?,
    }
    Ok(Exit::Done)
}

/// The schema of a name, or of the value of a document's field `schema`.
fn find(text: &str) -> Result<&'static Published, CliError> {
    let is_named = |published: &&Published| {
        let (name, version) = (published.name, published.version);
        text == name || text == format!("gauntlet/{name}/{version}")
    };
    PUBLISHED.iter().find(is_named).ok_or_else(|| {
        let meant = did_you_mean(text, PUBLISHED.iter().map(|published| published.name));
        CliError::bad_input(
            format!("there is no schema `{text}`"),
            format!("`gauntlet schema` lists them{meant}"),
        )
    })
}

fn list() -> Result<(), CliError> {
    let rows = PUBLISHED.iter().map(|published| {
        vec![
            published.name.to_owned(),
            published.version.to_string(),
            published.medium.to_string(),
            published.summary.to_owned(),
        ]
    });
    listing::print(&["schema", "version", "is a", "of"], rows)?;
    sink::print("`gauntlet schema NAME` prints one as JSON Schema (draft 2020-12).")
}
