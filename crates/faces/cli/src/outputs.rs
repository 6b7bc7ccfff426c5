//! Where results go: to the terminal, and to files in the forms that were asked for.

use std::path::Path;

use gauntlet_report::{Detail, Rendered};
use serde::Serialize;

use crate::arguments::{JsonFile, ReportFiles};
use crate::documents::{Document, Versioned};
use crate::error::{CliError, terminal_width};
use crate::sink;

impl JsonFile {
    /// Refuses early a file that could not be written at the end.
    pub fn check(&self) -> Result<(), CliError> {
        self.path.iter().try_for_each(|path| sink::check(path))
    }

    /// Writes a result if a file was asked for, and prints the report unless that file is standard output.
    pub fn deliver(
        &self,
        result: &impl Document,
        tell: impl FnOnce() -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        sink::deliver(self.path.as_deref(), &Versioned::of(result), tell)
    }

    /// The same for a list, which has no place for a field that says its kind.
    pub fn deliver_list<T: Serialize>(
        &self,
        results: &[T],
        tell: impl FnOnce() -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        sink::deliver(self.path.as_deref(), &results, tell)
    }
}

impl ReportFiles {
    /// Every file that was asked for, with the option that asks for it.
    fn all(&self) -> [(&'static str, Option<&Path>); 4] {
        [
            ("--json", self.json.as_deref()),
            ("--html", self.html.as_deref()),
            ("--markdown", self.markdown.as_deref()),
            ("--junit", self.junit.as_deref()),
        ]
    }

    /// The first option other than `--json` that asks for a file, if one does.
    pub fn beside_json(&self) -> Option<&'static str> {
        let given = self.all().into_iter().filter(|(_, path)| path.is_some());
        given.map(|(option, _)| option).find(|option| *option != "--json")
    }

    /// Writes a result as JSON if that was asked for, and prints the report unless it goes to standard output.
    pub fn deliver_json(
        &self,
        result: &impl Document,
        tell: impl FnOnce() -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        sink::deliver(self.json.as_deref(), &Versioned::of(result), tell)
    }

    /// Refuses, before anything is measured, files that could not be written at the end, and two results for standard
    /// output.
    pub fn check(&self) -> Result<(), CliError> {
        let named: Vec<_> = self
            .all()
            .into_iter()
            .filter_map(|(option, path)| Some((option, path?)))
            .collect();
        let to_stdout: Vec<_> = named.iter().filter(|(_, path)| sink::is_stdout(path)).collect();
        if let [(one, _), (other, _), ..] = to_stdout[..] {
            return Err(CliError::bad_input(
                format!("`{one} -` and `{other} -` both go to standard output"),
                "give one of them a file",
            ));
        }
        named.into_iter().try_for_each(|(_, path)| sink::check(path))
    }

    /// Writes all files, and prints the report, with `after` it, unless one of the files is standard output. A failure
    /// of one does not prevent the others.
    pub fn deliver<R: Rendered + Document>(
        &self,
        result: &R,
        detail: Detail,
        after: impl FnOnce() -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let write = |path: Option<&Path>, text: &dyn Fn() -> Result<String, CliError>| match path {
            Some(path) => sink::write(path, text()?.as_bytes()),
            None => Ok(()),
        };
        let json = self.json.as_deref();
        let mut done = json.map_or(Ok(()), |path| sink::write_json(path, &Versioned::of(result)));
        done = sink::both(done, write(self.html.as_deref(), &|| Ok(result.html())));
        done = sink::both(done, write(self.markdown.as_deref(), &|| Ok(result.markdown())));
        let junit = || {
            result
                .junit()
                .map_err(|error| CliError::broken(error.to_string()))
        };
        done = sink::both(done, write(self.junit.as_deref(), &junit));
        let is_silent = self
            .all()
            .iter()
            .any(|(_, path)| path.is_some_and(sink::is_stdout));
        let told = if is_silent {
            Ok(())
        } else {
            sink::print(result.text(detail, terminal_width()).trim_end()).and_then(|()| after())
        };
        sink::both(done, told)
    }
}
