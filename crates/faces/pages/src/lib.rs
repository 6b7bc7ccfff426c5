//! What a ledger and a queue hold, as pages.
//!
//! A [`Pages`] answers an [`Address`] with a page; [`write_site`] writes all of them as files for any web server. Everything is rendered
//! here, by the pictures of the reports, so that pages can be read without scripts. A page that a server gives has a small script
//! that keeps it up to date.
//!
//! ```
//! use gauntlet_pages::Address;
//!
//! let address = Address::parse("/verdicts", Some("task=softmax")).unwrap();
//! assert_eq!(address.location(), "/verdicts?task=softmax");
//! assert_eq!(Address::parse("/favicon.ico", None), None);
//! ```

mod address;
mod beside;
mod error;
mod frame;
mod ledger;
mod listing;
mod notes;
mod now;
mod pages;
mod regressed;
mod rounds;
mod site;
mod tasks;
mod verdict;

pub use address::{Address, Filter};
pub use error::PageError;
pub use notes::{Note, Notes};
pub use pages::{Form, Pages};
pub use site::write_site;

/// The script of served pages, at the address `/pages.js`.
pub const SCRIPT: &str = include_str!("pages.js");
