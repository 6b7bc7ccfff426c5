//! What a ledger holds, as pages.
//!
//! [`write_site`] writes them as files for any web server, by the pictures of the reports; [`page`] makes one of them. They need no script.

mod address;
mod error;
mod frame;
mod ledger;
mod listing;
mod regressed;
mod rounds;
mod site;
mod source;
mod tasks;
mod verdict;

pub use error::PageError;
pub use site::{page, write_site};
