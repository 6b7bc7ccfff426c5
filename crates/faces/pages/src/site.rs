//! All pages as files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gauntlet_judge::ledger::{Index, Ledger};

use crate::address::Address;
use crate::error::PageError;
use crate::frame::frame;
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
        let source = Source::new(&ledger, &index, newest, &address);
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

/// The page of a ledger that [`write_site`] writes to this file, such as `tasks/softmax.html`. None if there is no such page.
///
/// # Errors
/// If the ledger cannot be read.
pub fn page(ledger: &Path, file: &str, newest: usize) -> Result<Option<String>, PageError> {
    let ledger = Ledger::open_read_only(ledger)?;
    let index = Index::of(&ledger)?;
    let Some(address) = address(&ledger, &index, file)? else {
        return Ok(None);
    };
    let source = Source::new(&ledger, &index, newest, &address);
    match source.page(&address) {
        Ok(content) => Ok(Some(frame(&source.links, &address, &content))),
        Err(PageError::Unknown(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The address of a file. A file's name is made from a task's, so that the tasks are looked through for it.
fn address(ledger: &Ledger, index: &Index, file: &str) -> Result<Option<Address>, PageError> {
    let Some(name) = file.strip_prefix("tasks/") else {
        return Ok(Address::of_file(file));
    };
    let tasks = Source::new(ledger, index, 0, &Address::Tasks).by_task()?;
    let mut tasks = tasks.into_keys().map(Address::Task);
    Ok(tasks.find(|task| task.file().strip_prefix("tasks/") == Some(name)))
}
