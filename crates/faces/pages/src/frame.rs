//! What all pages have in common: links, navigation, times.

use gauntlet_report::{Surroundings, page};
use jiff::Timestamp;
use maud::{Markup, html};

use crate::address::{Address, Filter};
use crate::pages::{Form, Page};

/// How a page links to others.
#[derive(Debug, Clone)]
pub struct Links {
    form: Form,
    /// The way from a file to the folder of the site.
    up: String,
}

impl Links {
    /// The links of the page at an address.
    pub fn of(form: Form, address: &Address) -> Self {
        Self {
            form,
            up: "../".repeat(address.path().matches('/').count()),
        }
    }

    /// Whether a server answers, so that pages can be asked for more than files hold.
    pub fn are_served(&self) -> bool {
        self.form == Form::Served
    }

    /// Where a page is, as seen from this one.
    pub fn to(&self, address: &Address) -> String {
        match self.form {
            Form::Served => address.location(),
            Form::Files => format!("{}{}", self.up, file(address)),
        }
    }
}

/// The file of a page in the folder of a site.
pub fn file(address: &Address) -> String {
    match address {
        Address::Now => "index.html".to_owned(),
        other => format!("{}.html", other.path()),
    }
}

/// A page with its navigation.
pub fn frame(links: &Links, address: &Address, content: &Page) -> String {
    let places = [
        ("Now", Address::Now),
        ("Verdicts", Address::Verdicts(Filter::default())),
        ("Regressed", Address::Regressed { since: None }),
        ("Tasks", Address::Tasks),
        ("Rounds", Address::Rounds),
        ("Forecasters", Address::Forecasters),
        ("Ledger", Address::Ledger { verify: false }),
    ];
    let is_here = |place: &Address| place.path() == address.path();
    let navigation = html! {
        nav aria-label="pages" {
            @for (name, place) in &places {
                a href=(links.to(place)) aria-current=[is_here(place).then_some("page")] { (name) }
            }
        }
    };
    let around = Surroundings {
        navigation: Some(navigation),
        script: links.are_served().then(|| "/pages.js".to_owned()),
    };
    page(&content.title, &around, &content.body)
}

/// A moment, to the minute, for people; in full for programs.
pub fn moment(at: Timestamp) -> Markup {
    html! { time datetime=(at) { (at.strftime("%Y-%m-%d %H:%M UTC")) } }
}
