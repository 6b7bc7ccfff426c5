//! The pages, and their files.

/// A page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// The newest verdicts.
    Verdicts,
    /// What a run found.
    Verdict(String),
    /// What became slower.
    Regressed,
    /// The tasks.
    Tasks,
    /// A task.
    Task(String),
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
            Self::Verdicts => "index".to_owned(),
            Self::Verdict(run) => format!("verdicts/{run}"),
            Self::Regressed => "regressed".to_owned(),
            Self::Tasks => "tasks".to_owned(),
            Self::Task(task) => format!("tasks/{}", slug(task)),
            Self::Rounds => "rounds".to_owned(),
            Self::Round(run) => format!("rounds/{run}"),
            Self::Forecasters => "forecasters".to_owned(),
            Self::Ledger => "ledger".to_owned(),
        };
        format!("{name}.html")
    }

    /// The page of a file, unless it is a task's.
    pub fn of_file(file: &str) -> Option<Self> {
        let name = file.strip_suffix(".html")?;
        let fixed = [
            Self::Verdicts,
            Self::Regressed,
            Self::Tasks,
            Self::Rounds,
            Self::Forecasters,
            Self::Ledger,
        ];
        if let Some(page) = fixed.into_iter().find(|page| page.file() == file) {
            return Some(page);
        }
        match name.split_once('/')? {
            ("verdicts", run) => Some(Self::Verdict(run.to_owned())),
            ("rounds", run) => Some(Self::Round(run.to_owned())),
            _ => None,
        }
    }
}

/// A name as a part of a path: letters, digits and `-_.`, with a digest of the name where others were replaced.
fn slug(name: &str) -> String {
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
    fn a_file_leads_to_the_page_that_is_written_to_it() {
        for page in [
            Address::Verdicts,
            Address::Ledger,
            Address::Verdict("20260314-1".to_owned()),
            Address::Round("20260314-2".to_owned()),
        ] {
            assert_eq!(Address::of_file(&page.file()), Some(page));
        }
        for file in ["", "index", "verdicts.html", "../index.html", "other/x.html"] {
            assert_eq!(Address::of_file(file), None, "{file}");
        }
    }

    #[test]
    fn a_slug_is_a_plain_part_of_a_path_and_tells_names_apart() {
        assert_eq!(slug("group-gemm"), "group-gemm");
        assert_ne!(slug("a/b"), slug("a-b"));
        assert_ne!(slug("a/b"), slug("a:b"));
        assert!(!slug("../x").contains('/') && !slug("..").starts_with('.'));
    }
}
