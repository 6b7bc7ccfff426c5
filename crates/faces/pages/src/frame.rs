//! What all pages have in common: links, navigation, times.

use std::cell::RefCell;
use std::collections::BTreeSet;

use gauntlet_report::page;
use jiff::Timestamp;
use maud::{Markup, html};

use crate::address::Address;
use crate::site::Made;
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
        format!("{}{}", self.up, address.target())
    }

    /// Where something is that is no page, below the folder of the site: where a form is sent to, or a script.
    pub fn below(&self, place: &str) -> String {
        format!("{}{place}", self.up)
    }

    /// The pages that were linked to.
    pub fn into_addresses(self) -> BTreeSet<Address> {
        self.to.into_inner()
    }
}

/// How often a browser without scripts loads a page again that shows something under way, in seconds.
const AGAIN: u32 = 5;

/// A page with its navigation. A server's pages have further places; what they show under way follows by a script, or without scripts
/// by loading the page again.
pub fn framed(links: &Links, is_served: bool, address: &Address, content: &Page) -> Made {
    let mut places = vec![
        ("Verdicts", Address::Verdicts),
        ("Regressed", Address::Regressed(None)),
        ("Tasks", Address::Tasks),
        ("History", Address::Histories),
        ("Rounds", Address::Rounds),
        ("Forecasters", Address::Forecasters),
        ("Ledger", Address::Ledger),
    ];
    if is_served {
        places.insert(0, ("Now", Address::Now));
    }
    let navigation = html! {
        nav aria-label="pages" {
            @for (name, place) in &places {
                a href=(links.to(place)) aria-current=[(place == address).then_some("page")] { (name) }
            }
        }
    };
    let is_live = is_served && content.is_live;
    let live = html! {
        script src=(links.below("live.js")) data-live=(links.below(&format!("live/{}", address.file()))) defer {}
        noscript { meta http-equiv="refresh" content=(AGAIN); }
    };
    Made {
        text: page(
            &content.title,
            is_live.then_some(&live),
            Some(&navigation),
            &content.body,
        ),
        is_live,
    }
}

/// A moment, to the minute, for people; in full for programs.
pub fn moment(at: Timestamp) -> Markup {
    html! { time datetime=(at) { (at.strftime("%Y-%m-%d %H:%M UTC")) } }
}
