//! What a ledger holds, as pages.
//!
//! [`write_site`] writes them as files for any web server, by the pictures of the reports; [`page`] makes one of them. They need no script.
//! [`Notes`] are what people say of verdicts.

mod address;
mod beside;
mod error;
mod frame;
mod histories;
mod ledger;
mod listing;
mod noted;
mod notes;
mod now;
mod regressed;
mod rounds;
mod site;
mod source;
mod tasks;
mod tickets;
mod verdict;

pub use error::PageError;
pub use noted::annotate;
pub use notes::{Act, MAX_NOTE, Note, Notes};
pub use site::{Made, Served, Site, page, write_site};
