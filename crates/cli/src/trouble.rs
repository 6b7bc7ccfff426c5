//! Errors on their way to a person: what, where, and the remedy.

use std::fmt;
use std::io::{self, ErrorKind, Write};

use gauntlet_judge::JudgeError;
use gauntlet_judge::ledger::LedgerError;
use gauntlet_tournament::{FileError, TournamentError};
use gauntlet_tuning::TuningError;
use gauntlet_worker::WorkerError;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceSpan};
use textwrap::WordSeparator;

use crate::exit::Exit;

/// What stops a command.
#[derive(Debug)]
pub struct Trouble {
    exit: Exit,
    message: String,
    remedy: Option<String>,
    place: Option<Box<(NamedSource<String>, SourceSpan)>>,
}

impl Trouble {
    /// Something given is wrong.
    pub fn bad_input(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            exit: Exit::BadInput,
            message: message.into(),
            remedy: Some(remedy.into()),
            place: None,
        }
    }

    /// The same, told by an error that says what to do about it.
    fn of_input(error: impl fmt::Display) -> Self {
        Self {
            exit: Exit::BadInput,
            ..Self::broken(error.to_string())
        }
    }

    /// Something cannot be made in a place that was named, which need not be the place's fault.
    pub fn of_place(error: &io::Error, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        if is_of_the_place(error) {
            Self::bad_input(message, remedy)
        } else {
            Self::broken(message).with_remedy(remedy)
        }
    }

    /// The command stops before there is evidence that could decide anything.
    pub fn undecided(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            exit: Exit::Undecided,
            ..Self::bad_input(message, remedy)
        }
    }

    /// Something broke.
    pub fn broken(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Broken,
            message: message.into(),
            remedy: None,
            place: None,
        }
    }

    /// The same with what to do about it.
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }

    /// Prints it on standard error and says how to exit.
    pub fn tell(self) -> Exit {
        let mut text = String::new();
        let theme = GraphicalTheme::unicode();
        // Lines are broken at blanks alone: a path or a command is to be copied.
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(terminal_width())
            .with_break_words(false)
            .with_word_separator(WordSeparator::AsciiSpace);
        match handler.render_report(&mut text, &self) {
            Ok(()) => say(&text),
            Err(_) => say(&format!("{}\n", self.message)),
        }
        self.exit
    }
}

/// Prints on standard error. That nobody listens there is no reason to stop.
pub fn say(text: &str) {
    let _heard = anstream::stderr().write_all(text.as_bytes());
}

/// Columns of the terminal; 100 where there is none.
pub fn terminal_width() -> usize {
    terminal_size::terminal_size().map_or(100, |(terminal_size::Width(columns), _)| usize::from(columns))
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Trouble {}

impl Diagnostic for Trouble {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.remedy
            .as_ref()
            .map(|remedy| Box::new(remedy) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.place
            .as_ref()
            .map(|place| &place.0 as &dyn miette::SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (_, span) = self.place.as_deref()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(
            Some("here".to_owned()),
            *span,
        ))))
    }
}

impl From<FileError> for Trouble {
    fn from(error: FileError) -> Self {
        let message = error.to_string();
        let name = error.path.display().to_string();
        let place = error.span.map(|span| {
            let start = span.start.min(error.text.len());
            let length = span.end.min(error.text.len()).saturating_sub(start);
            let source = NamedSource::new(name, error.text);
            Box::new((source, SourceSpan::new(start.into(), length)))
        });
        Self {
            exit: Exit::BadInput,
            message,
            remedy: Some(error.remedy),
            place,
        }
    }
}

impl From<LedgerError> for Trouble {
    fn from(error: LedgerError) -> Self {
        let exit = match error {
            // A place that cannot be written or a file that is no ledger is the caller's to put right.
            LedgerError::Create { .. }
            | LedgerError::Missing { .. }
            | LedgerError::Unreadable { .. }
            | LedgerError::NotALedger { .. }
            | LedgerError::Newer { .. }
            | LedgerError::ReadOnly { .. }
            | LedgerError::UnknownRun { .. } => Exit::BadInput,
            LedgerError::Full { .. }
            | LedgerError::Locked { .. }
            | LedgerError::Damaged { .. }
            | LedgerError::Ended { .. }
            | LedgerError::Started { .. }
            | LedgerError::Export { .. }
            | LedgerError::Storage { .. } => Exit::Broken,
        };
        Self {
            exit,
            message: error.to_string(),
            remedy: None,
            place: None,
        }
    }
}

impl From<TournamentError> for Trouble {
    fn from(error: TournamentError) -> Self {
        match error {
            TournamentError::File(error) => error.into(),
            TournamentError::Ledger(error) => error.into(),
            TournamentError::Judge(error) => error.into(),
        }
    }
}

impl From<TuningError> for Trouble {
    fn from(error: TuningError) -> Self {
        match error {
            TuningError::Judge(error) => error.into(),
            TuningError::NoBaseline { .. } | TuningError::ShortBudget { .. } => Self::of_input(error),
        }
    }
}

impl From<JudgeError> for Trouble {
    fn from(error: JudgeError) -> Self {
        let said = error.to_string();
        match error {
            // A folder that is not there or may not be written is the caller's to put right; a full disk is not.
            JudgeError::Files { ref source, .. } if is_of_the_place(source) => Self::of_input(said),
            JudgeError::NoEstimate(_) => Self::of_input(said),
            // This very program, which says that what it was given is wrong.
            JudgeError::Executor(WorkerError::Died {
                status: Some(status), ..
            }) if status.code() == Some(Exit::BadInput as i32) => Self::of_input(said),
            _ => Self::broken(said),
        }
    }
}

/// Whether an error is of the place that was named, and not of what is done there.
fn is_of_the_place(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
    )
}
