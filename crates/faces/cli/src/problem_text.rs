//! Problems in the form used on the command line.

use std::path::Path;

use gauntlet_families::TASKS;
use gauntlet_task::{Case, Sizes, Suite, SuiteError};

use crate::error::CliError;

/// The remedy for a text that is not a problem.
const REMEDY: &str = "give a case such as group-gemm/case-1, a suite, or sizes such as 'g=2 m=\"80 176\" n=4096 k=7168'; \
                      `gauntlet suites` lists the suites";

/// Reads a case of a suite (by name, or as the number of a benchmark case), a suite (all its benchmark cases), or
/// sizes. Each problem is returned with its name.
pub fn read(text: &str) -> Result<Vec<(String, Sizes)>, CliError> {
    let text = text.trim();
    if text.contains('=') {
        return Ok(vec![("given".to_owned(), sizes(text)?)]);
    }
    if is_suite(text) {
        let suite = gauntlet_entrants::find_task(text)?;
        let named = |case: Case| (format!("{}/{}", suite.name, case.name), case.sizes);
        return Ok(suite.benchmark.into_iter().map(named).collect());
    }
    match text.rsplit_once('/') {
        Some((suite, case)) if is_suite(suite) => {
            one_case(&gauntlet_entrants::find_task(suite)?, case).map(|one| vec![one])
        }
        _ => Err(unknown(text)?),
    }
}

/// Whether it names a suite: a file, a task in Python, or a built-in one.
fn is_suite(name: &str) -> bool {
    name.ends_with(".toml")
        || gauntlet_families::suite_names().contains(&name)
        || gauntlet_python_task::is_task(Path::new(name))
}

fn one_case(suite: &Suite, name: &str) -> Result<(String, Sizes), CliError> {
    let by_number = || suite.benchmark.get(name.parse::<usize>().ok()?.checked_sub(1)?);
    let mut cases = suite.benchmark.iter().chain(&suite.correctness);
    let found = cases.find(|case| case.name == name).or_else(by_number);
    let case = found.ok_or_else(|| {
        let names = suite.benchmark.iter().chain(&suite.correctness);
        let nearest = nearest(name, names.map(|case| case.name.as_str()));
        CliError::bad_input(
            format!("the suite {} has no case `{name}`", suite.name),
            format!(
                "the nearest is {}/{nearest}; `gauntlet suites {}` lists all",
                suite.name, suite.name
            ),
        )
    })?;
    Ok((format!("{}/{}", suite.name, case.name), case.sizes.clone()))
}

/// The error for a text that is neither a suite, a case nor sizes.
fn unknown(text: &str) -> Result<CliError, CliError> {
    let mut names = Vec::new();
    for name in gauntlet_families::suite_names() {
        let suite = gauntlet_entrants::find_task(name)?;
        names.extend(suite.benchmark.iter().map(|case| format!("{name}/{}", case.name)));
        names.push(name.to_owned());
    }
    // A path is not a misspelt name.
    let is_path = text.contains('.');
    let nearest = nearest(text, names.iter().map(String::as_str));
    let message = match is_path {
        true => format!("`{text}` is no problem, and there is no such file"),
        false => format!("`{text}` is no problem; the nearest is {nearest}"),
    };
    Ok(CliError::bad_input(message, REMEDY))
}

/// The name most similar to a text, with or without its suite.
fn nearest<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> &'n str {
    let distance = |name: &&str| {
        let case = name.rsplit('/').next().unwrap_or(name);
        [*name, case]
            .map(|known| strsim::damerau_levenshtein(known, text))
            .into_iter()
            .min()
    };
    names.min_by_key(distance).unwrap_or_default()
}

/// Words such as `g=2 m="80 176" n=4096 k=7168`: sizes of the task that has these names.
fn sizes(text: &str) -> Result<Sizes, CliError> {
    let refuse = |message: String| CliError::bad_input(format!("`{text}` is no problem: {message}"), REMEDY);
    let words = words(text).map_err(refuse)?;
    let names: Vec<&str> = words.iter().map(|(name, _)| name.as_str()).collect();
    let task = TASKS
        .iter()
        .find(|task| task.claims(&names))
        .ok_or_else(|| refuse("no task has such sizes".to_owned()))?;
    let table = task.inline_table(&words).map_err(refuse)?;
    // Parsed as a case of a suite, so that errors have the same messages.
    let suite = format!("[[benchmark]]\nname = \"given\"\n{} = {table}\n", task.name());
    match Suite::parse(&suite, Path::new("given.toml"), TASKS) {
        Ok(mut suite) => Ok(suite.benchmark.remove(0).sizes),
        Err(SuiteError::Invalid { message, .. }) => Err(refuse(message)),
        Err(error) => Err(refuse(error.to_string())),
    }
}

/// A name and the value after its equals sign, without quotes.
type Word = (String, String);

fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, behind) = rest
            .split_once('=')
            .ok_or_else(|| format!("`{rest}` has no value"))?;
        let behind = behind.trim_start();
        let (value, left) = match behind.chars().next().filter(|first| "\"'".contains(*first)) {
            Some(quote) => behind[1..]
                .split_once(quote)
                .ok_or_else(|| format!("the quote at {behind} is never closed"))?,
            None => behind.split_once(char::is_whitespace).unwrap_or((behind, "")),
        };
        words.push((name.trim().to_owned(), value.trim().to_owned()));
        rest = left.trim_start();
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &str) -> serde_json::Value {
        read(text).unwrap().remove(0).1.record()
    }

    fn groups(text: &str) -> Vec<[u64; 3]> {
        let size = |group: &serde_json::Value, name: &str| group[name].as_u64().unwrap();
        let groups = record(text)["groups"].as_array().unwrap().clone();
        groups
            .iter()
            .map(|group| ["m", "n", "k"].map(|name| size(group, name)))
            .collect()
    }

    #[test]
    fn sizes_are_listed_or_repeated() {
        let two = [[80, 4096, 7168], [176, 4096, 7168]];
        assert_eq!(groups("g=2 m=\"80 176\" n=4096 k=7168"), two);
        assert_eq!(groups("m=80,176 n=4096 k=7168"), two);
        assert_eq!(groups("m = '80 176' n = 4096 k = 7168 form = swiglu"), two);
        assert_eq!(groups("g=3 m=64 n=128 k=256"), [[64, 128, 256]; 3]);
        assert_eq!(groups("m=64 n=128 k=256"), [[64, 128, 256]]);
    }

    #[test]
    fn attention_has_words_of_its_own() {
        let record = record("heads=8 length=512 head-size=64 format=e4m3 causal=true");
        assert_eq!(
            (record["heads"].as_u64(), record["causal"].as_bool()),
            (Some(8), Some(true))
        );
    }

    #[test]
    fn cases_have_names_and_numbers() {
        for text in ["group-gemm/case-2", "group-gemm/2"] {
            assert_eq!(read(text).unwrap()[0].0, "group-gemm/case-2");
        }
        assert_eq!(read("dual-gemm").unwrap().len(), 4);
        assert_eq!(
            read("attention/grouped-heads").unwrap()[0].0,
            "attention/grouped-heads"
        );
    }

    #[test]
    fn what_is_no_problem_is_told_with_what_is() {
        for (text, reason) in [
            ("group-gem/case-1", "the nearest is group-gemm/case-1"),
            ("mission", "the nearest is attention/mission"),
            ("group-gemm/case-9", "the suite group-gemm has no case `case-9`"),
            ("group-gemm/0", "no case `0`"),
            ("g=2 m=\"80 176 90\" n=128 k=256", "g = 2, but 3 sizes in m"),
            ("g=x m=80 n=128 k=256", "g = x"),
            ("m=80 n=128 k=100", "not a multiple of 16"),
            ("m=80 n=128", "missing field `k`"),
            ("m=\"80 n=128", "never closed"),
            ("m=80 n=128 k=256 tile=3", "unknown field `tile`"),
        ] {
            let failure = read(text).unwrap_err().to_string();
            assert!(failure.contains(reason), "{text}: {failure}");
        }
    }
}
