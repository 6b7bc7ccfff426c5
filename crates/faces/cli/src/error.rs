//! Errors as shown to the user: the error, its place, and the remedy.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, ErrorKind, Write};

use gauntlet_entrants::{EntrantError, FileError};
use gauntlet_foreign_measurements::SamplesError;
use gauntlet_judge::JudgeError;
use gauntlet_judge::ledger::LedgerError;
use gauntlet_report::{printed, visible, visible_lines};
use gauntlet_tournament::TournamentError;
use gauntlet_tuning::TuningError;
use gauntlet_worker::WorkerError;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceSpan};
use textwrap::WordSeparator;

use crate::exit::Exit;

/// An error that stops a command.
#[derive(Debug)]
pub struct CliError {
    exit: Exit,
    message: String,
    remedy: Option<String>,
    place: Option<Box<(NamedSource<String>, SourceSpan)>>,
}

impl CliError {
    /// An input is wrong.
    pub fn bad_input(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            exit: Exit::BadInput,
            message: message.into(),
            remedy: Some(remedy.into()),
            place: None,
        }
    }

    /// The same from an error whose message includes the remedy.
    pub fn of_input(error: impl fmt::Display) -> Self {
        Self {
            exit: Exit::BadInput,
            ..Self::broken(error.to_string())
        }
    }

    /// A file cannot be made in a place given by the user, which is not always the place's fault.
    pub fn of_place(error: &io::Error, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        if is_of_the_place(error) {
            Self::bad_input(message, remedy)
        } else {
            Self::broken(message).with_remedy(remedy)
        }
    }

    /// The command stops before there is evidence for a decision.
    pub fn undecided(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            exit: Exit::Undecided,
            ..Self::bad_input(message, remedy)
        }
    }

    /// A failure that is not the user's.
    pub fn broken(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Broken,
            message: message.into(),
            remedy: None,
            place: None,
        }
    }

    /// The same error with a remedy.
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }

    /// Whether the input is wrong, as opposed to the place or the program.
    pub fn is_of_input(&self) -> bool {
        self.exit == Exit::BadInput
    }

    /// The message with place and remedy, without marks and colours.
    pub fn text(self) -> String {
        let shown = self.shown();
        let mut text = shown.message;
        if let Some((source, span)) = shown.place.as_deref() {
            let before = source.inner().get(..span.offset()).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            text = format!("{}, line {line}: {text}", source.name());
        }
        match shown.remedy {
            Some(remedy) => format!("{text}\n  help: {remedy}"),
            None => text,
        }
    }

    /// Prints it on standard error and returns the exit code.
    pub fn tell(self) -> Exit {
        let shown = self.shown();
        let mut text = String::new();
        let theme = GraphicalTheme::unicode();
        // Lines break only at blanks, so that paths and commands can be copied.
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(terminal_width())
            .with_break_words(false)
            .with_word_separator(WordSeparator::AsciiSpace);
        match handler.render_report(&mut text, &shown) {
            Ok(()) => say(&text),
            Err(_) => say_line(&shown.message),
        }
        shown.exit
    }

    /// The same error with texts of others made visible.
    fn shown(self) -> Self {
        let of_place = |place: Box<(NamedSource<String>, SourceSpan)>| {
            let (source, span) = *place;
            let name = visible(source.name()).into_owned();
            Box::new((NamedSource::new(name, in_place(source.inner())), span))
        };
        Self {
            message: visible_lines(&self.message).into_owned(),
            remedy: self.remedy.map(|remedy| visible_lines(&remedy).into_owned()),
            place: self.place.map(of_place),
            ..self
        }
    }
}

/// The text of a file with a mark for each byte of what cannot be seen: places in it stay the same.
fn in_place(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for letter in text.chars() {
        let mut bytes = [0; 4];
        match visible_lines(letter.encode_utf8(&mut bytes)) {
            Cow::Borrowed(same) => seen.push_str(same),
            Cow::Owned(_) => seen.push_str(&"?".repeat(letter.len_utf8())),
        }
    }
    seen
}

/// Prints on standard error. A failure to write is ignored.
pub fn say(text: &str) {
    let _heard = anstream::stderr().write_all(printed(text).as_bytes());
}

/// Prints one line on standard error, whatever it holds.
pub fn say_line(text: impl fmt::Display) {
    say(&format!("{}\n", visible(&text.to_string())));
}

/// Columns of the terminal; where there is none, those that the variable COLUMNS says, or 100.
pub fn terminal_width() -> usize {
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    let terminal =
        terminal_size::terminal_size().map(|(terminal_size::Width(columns), _)| usize::from(columns));
    terminal.or_else(said).unwrap_or(100)
}

impl fmt::Display for CliError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for CliError {}

impl Diagnostic for CliError {
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

impl From<FileError> for CliError {
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

impl From<SamplesError> for CliError {
    fn from(error: SamplesError) -> Self {
        Self::bad_input(error.to_string(), error.remedy)
    }
}

impl From<EntrantError> for CliError {
    fn from(error: EntrantError) -> Self {
        match error {
            EntrantError::File(error) => error.into(),
            EntrantError::Wrong { message, remedy } => Self::bad_input(message, remedy),
            EntrantError::Machine(message) => Self::broken(message),
        }
    }
}

impl From<LedgerError> for CliError {
    fn from(error: LedgerError) -> Self {
        let exit = match error {
            // The user can correct a place that cannot be written, or a file that is not a ledger.
            LedgerError::Create { .. }
            | LedgerError::Missing { .. }
            | LedgerError::Unreadable { .. }
            | LedgerError::NotALedger { .. }
            | LedgerError::Newer { .. }
            | LedgerError::ReadOnly { .. }
            | LedgerError::UnknownRun { .. }
            | LedgerError::Forked { .. } => Exit::BadInput,
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

impl From<TournamentError> for CliError {
    fn from(error: TournamentError) -> Self {
        match error {
            TournamentError::Entrant(error) => (*error).into(),
            TournamentError::Ledger(error) => error.into(),
            TournamentError::Judge(error) => error.into(),
            error @ (TournamentError::NoFolder(_) | TournamentError::Elsewhere(_)) => {
                Self::broken(error.to_string())
            }
            error @ TournamentError::NotRecorded { .. } => Self::of_input(error),
        }
    }
}

impl From<TuningError> for CliError {
    fn from(error: TuningError) -> Self {
        match error {
            TuningError::Judge(error) => error.into(),
            TuningError::NoBaseline { .. }
            | TuningError::BaselineFails { .. }
            | TuningError::ShortBudget { .. }
            | TuningError::NoEstimate(_) => Self::of_input(error),
        }
    }
}

impl From<JudgeError> for CliError {
    fn from(error: JudgeError) -> Self {
        let said = error.to_string();
        match error {
            // The user can correct a folder that is missing or not writable, but not a full disk.
            JudgeError::Files { ref source, .. } if is_of_the_place(source) => Self::of_input(said),
            // A task's own code failed, or a file of operands does not fit.
            JudgeError::Inputs(_) => Self::of_input(said),
            // The worker is this program, and reports that its input is wrong.
            JudgeError::Executor(WorkerError::Died {
                status: Some(status), ..
            }) if status.code() == Some(Exit::BadInput as i32) => Self::of_input(said),
            _ => Self::broken(said),
        }
    }
}

/// Whether the error lies in the place given by the user, and not in the operation.
fn is_of_the_place(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
    )
}
