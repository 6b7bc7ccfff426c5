//! All pages as files.

use std::fs;
use std::path::Path;

use gauntlet_judge::ledger::{Index, Judged, Ledger, Wanted};

use crate::address::{Address, Filter, slug};
use crate::error::PageError;
use crate::frame::file;
use crate::pages::{Form, Pages};

/// Writes the pages of a ledger, with those of the newest verdicts and all of the tasks and rounds that they are about. `told` is
/// called with the number of pages so far and in all. Returns how many there are.
///
/// # Errors
/// If the ledger cannot be read, or a file cannot be written.
pub fn write_site(
    ledger: &Path,
    folder: &Path,
    newest: usize,
    mut told: impl FnMut(usize, usize),
) -> Result<usize, PageError> {
    let verdicts = {
        let opened = Ledger::open_read_only(ledger)?;
        let wanted = Wanted {
            newest: Some(newest),
            ..Wanted::default()
        };
        Index::of(&opened)?.verdicts(&wanted)?
    };
    let pages = Pages::new(ledger, None, Form::Files);
    let addresses = addresses(&verdicts);
    for (number, address) in addresses.iter().enumerate() {
        let path = folder.join(file(address));
        let page = pages.answer(address)?;
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            fs::write(&path, page)
        };
        write().map_err(|source| PageError::File {
            path: path.clone(),
            source,
        })?;
        told(number + 1, addresses.len());
    }
    Ok(addresses.len())
}

fn addresses(verdicts: &[Judged]) -> Vec<Address> {
    let mut addresses = vec![
        Address::Now,
        Address::Verdicts(Filter::default()),
        Address::Regressed { since: None },
        Address::Tasks,
        Address::Rounds,
        Address::Forecasters,
        Address::Ledger { verify: true },
    ];
    for one in verdicts {
        let own = [
            crate::listing::place(one),
            Address::Task(slug(one.task.as_deref().unwrap_or_default())),
        ];
        for address in own {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    addresses
}
