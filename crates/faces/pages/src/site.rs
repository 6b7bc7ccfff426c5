//! All pages as files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gauntlet_judge::ledger::{Index, Ledger};

use crate::address::Address;
use crate::error::PageError;
use crate::frame::{Links, frame};
use crate::source::Source;

/// Writes the pages of a ledger: a list of the newest verdicts, so many of them, and every page that leads to another from there.
/// `told` is called with the number of pages that are written. Returns how many there are.
///
/// # Errors
/// If the ledger cannot be read, or a file cannot be written.
pub fn write_site(
    ledger: &Path,
    folder: &Path,
    newest: usize,
    mut told: impl FnMut(usize),
) -> Result<usize, PageError> {
    let ledger = Ledger::open_read_only(ledger)?;
    let index = Index::of(&ledger)?;
    let mut open = vec![Address::Verdicts];
    let mut known = BTreeSet::from([Address::Verdicts]);
    while let Some(address) = open.pop() {
        let source = Source {
            ledger: &ledger,
            index: &index,
            newest,
            links: Links::of(&address),
        };
        let page = frame(&source.links, &address, &source.page(&address)?);
        let path = folder.join(address.file());
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            fs::write(&path, page)
        };
        write().map_err(|source| PageError::File {
            path: path.clone(),
            source,
        })?;
        for linked in source.links.into_addresses() {
            if known.insert(linked.clone()) {
                open.push(linked);
            }
        }
        told(known.len() - open.len());
    }
    Ok(known.len())
}
