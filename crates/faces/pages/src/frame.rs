//! What all pages have in common: links, navigation, times.

use std::cell::RefCell;
use std::collections::BTreeSet;

use gauntlet_report::page;
use jiff::Timestamp;
use maud::{Markup, html};

use crate::address::Address;
use crate::source::Page;

/// The links of a page.
#[derive(Debug)]
pub struct Links {
    /// The way from the page's file to the folder of the site.
    up: String,
    /// The pages that it links to.
    to: RefCell<BTreeSet<Address>>,
}

impl Links {
    /// The links of the page at an address.
    pub fn of(address: &Address) -> Self {
        Self {
            up: "../".repeat(address.file().matches('/').count()),
            to: RefCell::default(),
        }
    }

    /// Where a page is, as seen from this one.
    pub fn to(&self, address: &Address) -> String {
        self.to.borrow_mut().insert(address.clone());
        format!("{}{}", self.up, address.file())
    }

    /// The pages that were linked to.
    pub fn into_addresses(self) -> BTreeSet<Address> {
        self.to.into_inner()
    }
}

/// A page with its navigation.
pub fn frame(links: &Links, address: &Address, content: &Page) -> String {
    let places = [
        ("Verdicts", Address::Verdicts),
        ("Regressed", Address::Regressed),
        ("Tasks", Address::Tasks),
        ("Rounds", Address::Rounds),
        ("Forecasters", Address::Forecasters),
        ("Ledger", Address::Ledger),
    ];
    let navigation = html! {
        nav aria-label="pages" {
            @for (name, place) in &places {
                a href=(links.to(place)) aria-current=[(place == address).then_some("page")] { (name) }
            }
        }
    };
    page(&content.title, Some(&navigation), &content.body)
}

/// A moment, to the minute, for people; in full for programs.
pub fn moment(at: Timestamp) -> Markup {
    html! { time datetime=(at) { (at.strftime("%Y-%m-%d %H:%M UTC")) } }
}
