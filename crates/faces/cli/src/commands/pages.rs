//! `gauntlet pages`.

use std::path::Path;
use std::time::{Duration, Instant};

use gauntlet_pages::{PageError, Site, write_site};

use crate::arguments::PagesArguments;
use crate::error::{CliError, say_line};
use crate::exit::Exit;
use crate::sink;

/// How often it is said how far the pages are.
const PAUSE: Duration = Duration::from_secs(2);

/// Writes the pages of a ledger.
pub fn pages(arguments: &PagesArguments) -> Result<Exit, CliError> {
    let mut told = Instant::now();
    let site = Site {
        ledger: &arguments.ledger.path,
        newest: arguments.newest,
        repository: Some(Path::new(".")),
        served: None,
    };
    let count = write_site(&site, &arguments.out, |written| {
        if told.elapsed() >= PAUSE {
            told = Instant::now();
            say_line(format_args!("{written} pages so far"));
        }
    })?;
    sink::line(format_args!(
        "{count} pages in {}; begin with index.html",
        arguments.out.display()
    ))?;
    Ok(Exit::Done)
}

impl From<PageError> for CliError {
    fn from(error: PageError) -> Self {
        match error {
            PageError::Unknown(what) => {
                Self::bad_input(what, "`gauntlet ledger verdicts` lists what there is")
            }
            PageError::Ledger(error) => error.into(),
            PageError::Queue(error) => error.into(),
            PageError::File { path, source } => Self::of_place(
                &source,
                format!("{}: {source}", path.display()),
                "make the folder writable and see that its disk has room",
            ),
        }
    }
}
