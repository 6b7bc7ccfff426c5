//! A ledger and a queue, from which pages are made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gauntlet_judge::ledger::{Index, Judged, Ledger, Wanted};
use gauntlet_queue::Queue;
use maud::Markup;

use crate::address::Address;
use crate::error::PageError;
use crate::frame::{Links, frame};
use crate::notes::Notes;
use crate::{beside, ledger, now, regressed, rounds, tasks, verdict};

/// How pages reach their readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// By a server that answers requests.
    Served,
    /// As files, which have no filters.
    Files,
}

/// A ledger and a queue, from which pages are made.
#[derive(Debug)]
pub struct Pages {
    ledger: PathBuf,
    queue: Option<Arc<Queue>>,
    form: Form,
    /// Kept from page to page; none before the first.
    index: Mutex<Option<Index>>,
}

/// What a page is made from.
pub(crate) struct Source<'s> {
    pub ledger: &'s Ledger,
    pub index: &'s Index,
    pub queue: Option<&'s Queue>,
    pub notes: Notes,
    pub links: Links,
}

/// A page before its frame.
pub(crate) struct Page {
    pub title: String,
    pub body: Markup,
}

impl Pages {
    /// The pages of a ledger, and of the queue beside it if there is one.
    pub fn new(ledger: &Path, queue: Option<Arc<Queue>>, form: Form) -> Self {
        Self {
            ledger: ledger.to_owned(),
            queue,
            form,
            index: Mutex::new(None),
        }
    }

    /// The page at an address, as HTML.
    ///
    /// # Errors
    /// If there is nothing at the address, or the ledger or the queue cannot be read.
    pub fn answer(&self, address: &Address) -> Result<String, PageError> {
        let ledger = Ledger::open_read_only(&self.ledger)?;
        let mut kept = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let index = match kept.take() {
            Some(mut index) => {
                index.catch_up(&ledger)?;
                index
            }
            None => Index::of(&ledger)?,
        };
        let source = Source {
            ledger: &ledger,
            index: kept.insert(index),
            queue: self.queue.as_deref(),
            notes: Notes::beside(&self.ledger),
            links: Links::of(self.form, address),
        };
        let page = match address {
            Address::Now => now::page(&source)?,
            Address::Verdicts(filter) => crate::listing::page(&source, filter)?,
            Address::Verdict(run) => verdict::page(&source, run)?,
            Address::Beside(one, other) => beside::page(&source, [one, other])?,
            Address::Regressed { since } => regressed::page(&source, *since)?,
            Address::Tasks => tasks::list(&source)?,
            Address::Task(task) => tasks::page(&source, task)?,
            Address::Rounds => rounds::list(&source)?,
            Address::Round(run) => rounds::page(&source, run)?,
            Address::Forecasters => rounds::forecasters(&source)?,
            Address::Ledger { verify } => ledger::page(&source, *verify)?,
        };
        Ok(frame(&source.links, address, &page))
    }
}

impl Source<'_> {
    /// All verdicts that are wanted, the newest first.
    pub fn verdicts(&self, wanted: &Wanted) -> Result<Vec<Judged>, PageError> {
        Ok(self.index.verdicts(wanted)?)
    }

    /// All verdicts, by task.
    pub fn by_task(&self) -> Result<BTreeMap<String, Vec<Judged>>, PageError> {
        let mut tasks: BTreeMap<String, Vec<Judged>> = BTreeMap::new();
        for one in self.verdicts(&Wanted::default())? {
            tasks
                .entry(one.task.clone().unwrap_or_default())
                .or_default()
                .push(one);
        }
        Ok(tasks)
    }
}
