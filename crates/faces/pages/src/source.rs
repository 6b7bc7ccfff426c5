//! What pages are made from.

use std::collections::BTreeMap;
use std::path::Path;

use gauntlet_judge::ledger::{Index, Judged, Ledger, Wanted};
use maud::Markup;

use crate::address::Address;
use crate::error::PageError;
use crate::frame::Links;
use crate::notes::Notes;
use crate::site::{Served, Site};
use crate::{beside, histories, ledger, listing, regressed, rounds, tasks, verdict};

/// What a page is made from.
pub struct Source<'s> {
    pub ledger: &'s Ledger,
    pub index: &'s Index,
    pub notes: &'s Notes,
    /// A folder in the repository of the kernels.
    pub repository: Option<&'s Path>,
    /// What a server adds; none for a file.
    pub served: Option<&'s Served>,
    /// How many verdicts the first page lists.
    pub newest: usize,
    pub links: Links,
}

/// A page before its frame.
pub struct Page {
    pub title: String,
    pub body: Markup,
    /// Whether it shows something that is under way.
    pub is_live: bool,
}

impl Page {
    /// A page that stays as it is until the ledger has more.
    pub fn new(title: impl Into<String>, body: Markup) -> Self {
        Self {
            title: title.into(),
            body,
            is_live: false,
        }
    }
}

impl<'s> Source<'s> {
    /// What the page at an address is made from.
    pub fn new(
        site: &Site<'s>,
        (ledger, index, notes): (&'s Ledger, &'s Index, &'s Notes),
        address: &Address,
    ) -> Self {
        Self {
            ledger,
            index,
            notes,
            repository: site.repository,
            served: site.served,
            newest: site.newest,
            links: Links::of(address),
        }
    }

    /// The page at an address.
    pub fn page(&self, address: &Address) -> Result<Page, PageError> {
        match address {
            Address::Verdicts => listing::page(self),
            Address::Verdict(run) => verdict::page(self, run),
            Address::Beside(runs) => beside::page(self, runs),
            Address::Now | Address::Ticket(_) => {
                Err(PageError::Unknown("a ledger has no tickets".to_owned()))
            }
            Address::Regressed(since) => regressed::page(self, since.as_deref()),
            Address::Tasks => tasks::list(self),
            Address::Task(task) => tasks::page(self, task),
            Address::Histories => histories::list(self),
            Address::History { task, kernel, case } => histories::page(self, task, kernel, case.as_deref()),
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
