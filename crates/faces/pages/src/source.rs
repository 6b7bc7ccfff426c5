//! What pages are made from.

use std::collections::BTreeMap;

use gauntlet_judge::ledger::{Index, Judged, Ledger, Wanted};
use maud::Markup;

use crate::address::Address;
use crate::error::PageError;
use crate::frame::Links;
use crate::{ledger, listing, regressed, rounds, tasks, verdict};

/// What a page is made from.
pub struct Source<'s> {
    pub ledger: &'s Ledger,
    pub index: &'s Index,
    /// How many verdicts the first page lists.
    pub newest: usize,
    pub links: Links,
}

/// A page before its frame.
pub struct Page {
    pub title: String,
    pub body: Markup,
}

impl<'s> Source<'s> {
    /// What the page at an address is made from.
    pub fn new(ledger: &'s Ledger, index: &'s Index, newest: usize, address: &Address) -> Self {
        Self {
            ledger,
            index,
            newest,
            links: Links::of(address),
        }
    }

    /// The page at an address.
    pub fn page(&self, address: &Address) -> Result<Page, PageError> {
        match address {
            Address::Verdicts => listing::page(self),
            Address::Verdict(run) => verdict::page(self, run),
            Address::Regressed => regressed::page(self),
            Address::Tasks => tasks::list(self),
            Address::Task(task) => tasks::page(self, task),
            Address::Rounds => rounds::list(self),
            Address::Round(run) => rounds::page(self, run),
            Address::Forecasters => rounds::forecasters(self),
            Address::Ledger => ledger::page(self),
        }
    }

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
