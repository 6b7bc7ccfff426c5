//! The forms in which a result can be shown, the same for a comparison and for a tournament.

use gauntlet_tournament::TournamentReport;
use maud::Markup;

use crate::comparison::{Detail, compared};
use crate::foreign::shown;
use crate::html::{comparison_body, page, tournament_body};
use crate::junit::{self, UnwritableXml};
use crate::markdown;
use crate::tournament::tournament;
use gauntlet_judge::ComparisonReport;

/// A result that is shown on a terminal and written to files. Texts of others in it are made visible first, for all forms
/// alike.
pub trait Rendered {
    /// For a terminal of `width` columns.
    fn text(&self, detail: Detail, width: usize) -> String;

    /// What a page of it is called.
    fn title(&self) -> String;

    /// The content of a page of it.
    fn body(&self) -> Markup;

    /// A page of its own.
    fn html(&self) -> String {
        page(&self.title(), None, None, &self.body())
    }

    /// For a comment under a pull request: no colours, no pictures, details behind folds.
    fn markdown(&self) -> String;

    /// JUnit XML, as build servers read it: a test for each gate of `judge` and rounds, and for each verdict.
    ///
    /// # Errors
    /// If the XML cannot be written.
    fn junit(&self) -> Result<String, UnwritableXml>;
}

impl Rendered for ComparisonReport {
    fn text(&self, detail: Detail, width: usize) -> String {
        compared(&shown(self), detail, width)
    }

    fn title(&self) -> String {
        let report = shown(self);
        format!(
            "{} against {} · {}",
            report.candidate.text, report.baseline.text, report.task
        )
    }

    fn body(&self) -> Markup {
        comparison_body(&shown(self))
    }

    fn markdown(&self) -> String {
        markdown::comparison(&shown(self))
    }

    fn junit(&self) -> Result<String, UnwritableXml> {
        junit::comparison(&shown(self))
    }
}

impl Rendered for TournamentReport {
    fn text(&self, detail: Detail, width: usize) -> String {
        tournament(&shown(self), detail, width)
    }

    fn title(&self) -> String {
        shown(self).name.clone()
    }

    fn body(&self) -> Markup {
        tournament_body(&shown(self))
    }

    fn markdown(&self) -> String {
        markdown::tournament(&shown(self))
    }

    fn junit(&self) -> Result<String, UnwritableXml> {
        junit::tournament(&shown(self))
    }
}
