//! The pages, and their files.

use std::collections::BTreeMap;

/// A page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// What is under way; only of a server.
    Now,
    /// A ticket; only of a server.
    Ticket(String),
    /// The newest verdicts.
    Verdicts,
    /// What a run found.
    Verdict(String),
    /// Two verdicts side by side, by their runs.
    Beside([String; 2]),
    /// What became slower, since a day or a commit.
    Regressed(Option<String>),
    /// The tasks.
    Tasks,
    /// A task.
    Task(String),
    /// The kernels with a history of commits.
    Histories,
    /// The history of a kernel on a task, on one of its cases or on the first.
    History {
        /// The task.
        task: String,
        /// The kernel as it is named at the root of its repository.
        kernel: String,
        /// The case as a part of a path; none for the first.
        case: Option<String>,
    },
    /// The rounds and tournaments.
    Rounds,
    /// One of them, by its run.
    Round(String),
    /// The quality of forecasts.
    Forecasters,
    /// The ledger.
    Ledger,
}

impl Address {
    /// Its file in the folder of the site.
    pub fn file(&self) -> String {
        let name = match self {
            Self::Now => "now".to_owned(),
            Self::Ticket(id) => format!("tickets/{id}"),
            Self::Verdicts => "index".to_owned(),
            Self::Verdict(run) => format!("verdicts/{run}"),
            Self::Beside(_) => "beside".to_owned(),
            Self::Regressed(_) => "regressed".to_owned(),
            Self::Tasks => "tasks".to_owned(),
            Self::Task(task) => format!("tasks/{}", slug(task)),
            Self::Histories => "histories".to_owned(),
            Self::History { task, kernel, case } => {
                let of_kernel = slug(&format!("{task} {kernel}"));
                case.iter().fold(format!("histories/{of_kernel}"), |above, case| {
                    format!("{above}/{case}")
                })
            }
            Self::Rounds => "rounds".to_owned(),
            Self::Round(run) => format!("rounds/{run}"),
            Self::Forecasters => "forecasters".to_owned(),
            Self::Ledger => "ledger".to_owned(),
        };
        format!("{name}.html")
    }

    /// Where it is, from the folder of the site: its file, with what is asked of it.
    pub fn target(&self) -> String {
        let file = self.file();
        match self {
            Self::Beside([left, right]) => format!("{file}?left={}&right={}", encoded(left), encoded(right)),
            Self::Regressed(Some(since)) => format!("{file}?since={}", encoded(since)),
            _ => file,
        }
    }

    /// The page of a file and what is asked of it; none for the files of tasks and of histories, which are made of their names.
    pub fn of(file: &str, asked: &BTreeMap<String, String>) -> Option<Self> {
        let name = file.strip_suffix(".html")?;
        let given = |name: &str| asked.get(name).filter(|text| !text.is_empty()).cloned();
        match name {
            "now" => Some(Self::Now),
            "index" => Some(Self::Verdicts),
            "regressed" => Some(Self::Regressed(given("since"))),
            "beside" => Some(Self::Beside([given("left")?, given("right")?])),
            "tasks" => Some(Self::Tasks),
            "histories" => Some(Self::Histories),
            "rounds" => Some(Self::Rounds),
            "forecasters" => Some(Self::Forecasters),
            "ledger" => Some(Self::Ledger),
            _ => match name.split_once('/')? {
                ("tickets", id) => Some(Self::Ticket(id.to_owned())),
                ("verdicts", run) => Some(Self::Verdict(run.to_owned())),
                ("rounds", run) => Some(Self::Round(run.to_owned())),
                _ => None,
            },
        }
    }
}

/// A text as a value in an address.
fn encoded(text: &str) -> String {
    let letter = |byte: u8| match byte {
        b'-' | b'_' | b'.' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(letter).collect()
}

/// A name as a part of a path: letters, digits and `-_.`, with a digest of the name where others were replaced.
pub fn slug(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let plain: String = name
        .chars()
        .map(|letter| if is_plain(letter) { letter } else { '-' })
        .take(60)
        .collect();
    if plain == name && !plain.starts_with('.') {
        return plain;
    }
    let digest = blake3::hash(name.as_bytes()).to_hex();
    format!("{}-{}", plain.trim_start_matches('.'), &digest[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_to_the_page_that_has_it() {
        for page in [
            Address::Verdicts,
            Address::Histories,
            Address::Ledger,
            Address::Now,
            Address::Ticket("t-1".to_owned()),
            Address::Verdict("20260314-1".to_owned()),
            Address::Round("20260314-2".to_owned()),
            Address::Regressed(Some("2026-03-14".to_owned())),
            Address::Beside(["20260314-1".to_owned(), "20260314-2".to_owned()]),
        ] {
            let target = page.target();
            let (file, asked) = target.split_once('?').unwrap_or((&target, ""));
            let pairs = asked.split('&').filter_map(|pair| pair.split_once('='));
            let asked = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(Address::of(file, &asked.collect()), Some(page), "{target}");
        }
        for file in [
            "",
            "index",
            "verdicts.html",
            "../index.html",
            "other/x.html",
            "beside.html",
        ] {
            assert_eq!(Address::of(file, &BTreeMap::new()), None, "{file}");
        }
        assert_eq!(encoded("a&b=ü"), "a%26b%3D%C3%BC");
    }

    #[test]
    fn a_slug_is_a_plain_part_of_a_path_and_tells_names_apart() {
        assert_eq!(slug("group-gemm"), "group-gemm");
        assert_ne!(slug("a/b"), slug("a-b"));
        assert_ne!(slug("a/b"), slug("a:b"));
        assert!(!slug("../x").contains('/') && !slug("..").starts_with('.'));
    }
}
