//! Addresses of pages: every state of a page is in its address.

use form_urlencoded::Serializer;
use jiff::civil::Date;

/// Which verdicts are listed: those that fit everything that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this task.
    pub task: Option<String>,
    /// Of a kernel whose digest begins so.
    pub kernel: Option<String>,
    /// On behalf of this client.
    pub client: Option<String>,
    /// With this verdict.
    pub verdict: Option<String>,
    /// How many newer ones are left out.
    pub skip: usize,
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// What runs and waits, and what was found last.
    Now,
    /// A list of verdicts.
    Verdicts(Filter),
    /// What a run found.
    Verdict(String),
    /// Two runs side by side.
    Beside(String, String),
    /// What became slower.
    Regressed {
        /// Since this day; the last 30 days without one.
        since: Option<Date>,
    },
    /// The tasks.
    Tasks,
    /// A task, by its name as a part of a path.
    Task(String),
    /// The rounds and tournaments.
    Rounds,
    /// One of them.
    Round(String),
    /// The quality of forecasts.
    Forecasters,
    /// The ledger.
    Ledger {
        /// Whether its chain is verified, which reads all of it.
        verify: bool,
    },
}

impl Address {
    /// Reads the path and the query of a request; none if there is no such page.
    pub fn parse(path: &str, query: Option<&str>) -> Option<Self> {
        let of = |name: &str| {
            let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
            let found = pairs.find(|(key, _)| key == name)?;
            Some(found.1.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        Some(match parts[..] {
            [""] => Self::Now,
            ["verdicts"] => Self::Verdicts(Filter {
                task: of("task"),
                kernel: of("kernel"),
                client: of("client"),
                verdict: of("verdict"),
                skip: of("skip").and_then(|skip| skip.parse().ok()).unwrap_or(0),
            }),
            ["verdicts", run] => Self::Verdict(run.to_owned()),
            ["beside"] => Self::Beside(of("one")?, of("other")?),
            ["regressed"] => Self::Regressed {
                since: of("since").and_then(|day| day.parse().ok()),
            },
            ["tasks"] => Self::Tasks,
            ["tasks", task] => Self::Task(task.to_owned()),
            ["rounds"] => Self::Rounds,
            ["rounds", run] => Self::Round(run.to_owned()),
            ["forecasters"] => Self::Forecasters,
            ["ledger"] => Self::Ledger {
                verify: of("verify").is_some(),
            },
            _ => return None,
        })
    }

    /// Its path, without the query.
    pub fn path(&self) -> String {
        match self {
            Self::Now => String::new(),
            Self::Verdicts(_) => "verdicts".to_owned(),
            Self::Verdict(run) => format!("verdicts/{run}"),
            Self::Beside(..) => "beside".to_owned(),
            Self::Regressed { .. } => "regressed".to_owned(),
            Self::Tasks => "tasks".to_owned(),
            Self::Task(task) => format!("tasks/{task}"),
            Self::Rounds => "rounds".to_owned(),
            Self::Round(run) => format!("rounds/{run}"),
            Self::Forecasters => "forecasters".to_owned(),
            Self::Ledger { .. } => "ledger".to_owned(),
        }
    }

    /// Path and query, as a server is asked.
    pub fn location(&self) -> String {
        let mut query = Serializer::new(String::new());
        let mut say = |name: &str, value: &Option<String>| {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        };
        match self {
            Self::Verdicts(filter) => {
                say("task", &filter.task);
                say("kernel", &filter.kernel);
                say("client", &filter.client);
                say("verdict", &filter.verdict);
                say("skip", &Some(filter.skip.to_string()).filter(|_| filter.skip > 0));
            }
            Self::Beside(one, other) => {
                say("one", &Some(one.clone()));
                say("other", &Some(other.clone()));
            }
            Self::Regressed { since } => say("since", &since.map(|day| day.to_string())),
            Self::Ledger { verify: true } => say("verify", &Some("1".to_owned())),
            _ => {}
        }
        let query = query.finish();
        match query.is_empty() {
            true => format!("/{}", self.path()),
            false => format!("/{}?{query}", self.path()),
        }
    }
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_slug_is_a_plain_part_of_a_path_and_tells_names_apart() {
        assert_eq!(slug("group-gemm"), "group-gemm");
        assert_ne!(slug("a/b"), slug("a-b"));
        assert_ne!(slug("a/b"), slug("a:b"));
        assert!(!slug("../x").contains('/') && !slug("..").starts_with('.'));
    }

    proptest! {
        #[test]
        fn an_address_is_read_as_it_was_written(task in ".{1,20}", verdict in "[a-z-]{0,9}", skip in 0_usize..999, run in "[0-9a-f-]{1,22}") {
            let filter = Filter {
                task: Some(task.trim().to_owned()).filter(|task| !task.is_empty()),
                verdict: Some(verdict).filter(|verdict| !verdict.is_empty()),
                skip,
                ..Filter::default()
            };
            let addresses = [
                Address::Verdicts(filter),
                Address::Verdict(run.clone()),
                Address::Beside(run.clone(), run),
                Address::Regressed { since: "2026-11-03".parse().ok() },
                Address::Task(slug(&task)),
                Address::Ledger { verify: true },
            ];
            for address in addresses {
                let location = address.location();
                let (path, query) = location.split_once('?').unwrap_or((&location, ""));
                prop_assert_eq!(Address::parse(path, Some(query)), Some(address));
            }
        }
    }
}
