//! All pages as files, or one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use gauntlet_judge::ledger::{Index, Ledger};
use gauntlet_queue::Queue;

use crate::address::Address;
use crate::error::PageError;
use crate::frame::{Links, framed};
use crate::notes::Notes;
use crate::source::{Page, Source};
use crate::{histories, now, tickets};

/// What pages are made of.
#[derive(Debug, Clone, Copy)]
pub struct Site<'s> {
    /// The ledger.
    pub ledger: &'s Path,
    /// How many verdicts the first page lists.
    pub newest: usize,
    /// A folder in a repository, whose commits are in the order of its history; others are in the order in which they were measured.
    pub repository: Option<&'s Path>,
    /// What a server adds; none for files.
    pub served: Option<&'s Served>,
}

/// What a server adds to pages: what is under way, and forms.
#[derive(Debug, Clone)]
pub struct Served {
    /// What the reader's forms carry, so that the server knows that its own page sent them. None if this reader may send none.
    pub proof: Option<String>,
    /// The tickets.
    pub queue: Arc<Queue>,
    /// Whether the server runs tickets on its own machine.
    pub works: bool,
    /// Why that machine is given no ticket for a while.
    pub resting: Option<String>,
}

/// A page that was made for a reader of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The page.
    pub text: String,
    /// Whether it shows something that is under way, so that another one is to follow it.
    pub is_live: bool,
}

/// Writes the pages of a ledger: a list of the newest verdicts, and every page that leads to another from there.
/// `told` is called with the number of pages that are written. Returns how many there are.
///
/// # Errors
/// If the ledger cannot be read, or a file cannot be written.
pub fn write_site(site: &Site<'_>, folder: &Path, mut told: impl FnMut(usize)) -> Result<usize, PageError> {
    let ledger = Ledger::open_read_only(site.ledger)?;
    let index = Index::of(&ledger)?;
    let notes = Notes::beside(site.ledger)?;
    let mut open = vec![Address::Verdicts];
    let mut known = BTreeSet::from([Address::Verdicts]);
    while let Some(address) = open.pop() {
        let source = Source::new(site, (&ledger, &index, &notes), &address);
        let page = frame(&source, &address, &source.page(&address)?).text;
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

/// The page of a ledger that [`write_site`] writes to this file, such as `tasks/softmax.html`, with what is asked of it; or one that
/// only a server has. None if there is no such page.
///
/// # Errors
/// If the ledger or the queue cannot be read.
pub fn page(
    site: &Site<'_>,
    file: &str,
    asked: &BTreeMap<String, String>,
) -> Result<Option<Made>, PageError> {
    let made = match Address::of(file, asked) {
        // Tickets come before the first record of a ledger.
        Some(address @ (Address::Now | Address::Ticket(_))) => under_way(site, &address),
        known => of_ledger(site, known, file),
    };
    match made {
        Err(PageError::Unknown(_)) => Ok(None),
        made => made,
    }
}

fn under_way(site: &Site<'_>, address: &Address) -> Result<Option<Made>, PageError> {
    let Some(served) = site.served else {
        return Ok(None);
    };
    let links = Links::of(address);
    let content = match address {
        Address::Ticket(id) => tickets::page(served, id)?,
        _ => now::page(&links, served, site.ledger)?,
    };
    Ok(Some(framed(&links, true, address, &content)))
}

fn of_ledger(site: &Site<'_>, known: Option<Address>, file: &str) -> Result<Option<Made>, PageError> {
    let ledger = Ledger::open_read_only(site.ledger)?;
    let index = Index::of(&ledger)?;
    let notes = Notes::beside(site.ledger)?;
    let parts = (&ledger, &index, &notes);
    let address = match known {
        Some(address) => Some(address),
        None => named_by(&Source::new(site, parts, &Address::Tasks), file)?,
    };
    let Some(address) = address else { return Ok(None) };
    let source = Source::new(site, parts, &address);
    Ok(Some(frame(&source, &address, &source.page(&address)?)))
}

fn frame(source: &Source<'_>, address: &Address, content: &Page) -> Made {
    framed(&source.links, source.served.is_some(), address, content)
}

/// The page of a file that is made from names, of a task or a history; these are looked through for it.
fn named_by(source: &Source<'_>, file: &str) -> Result<Option<Address>, PageError> {
    if file.starts_with("tasks/") {
        let mut tasks = source.by_task()?.into_keys().map(Address::Task);
        return Ok(tasks.find(|task| task.file() == file));
    }
    histories::of_file(source, file)
}
