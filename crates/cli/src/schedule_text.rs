//! Schedules as people give them on the command line.

use std::path::Path;

use gauntlet_lab::Candidate;
use gauntlet_schedule::{DispatchTable, Schedule, ScheduleChange};

use crate::trouble::Trouble;

/// Reads `baseline`, a TOML file, or words such as `stages = 2, order = "dynamic"`, on top of `base`.
pub fn read(text: &str, base: &Schedule) -> Result<Schedule, Trouble> {
    if text.trim() == "baseline" {
        return Ok(base.clone());
    }
    let path = Path::new(text);
    let change = if path.extension().is_some_and(|ending| ending == "toml") {
        let source = gauntlet_lab::Source::<ScheduleChange>::read(path, "schedule")?;
        source.value
    } else {
        words(text).map_err(|message| {
            Trouble::bad_input(
                format!("`{text}` is no schedule: {message}"),
                "write words such as 'stages = 2, order = \"dynamic\"'; `gauntlet schedules` explains them",
            )
        })?
    };
    Ok(change.apply(base))
}

/// What precedes the name of a dispatch table.
const DISPATCH: &str = "dispatch:";

/// Reads what [`read`] reads, or `dispatch:FILE`: a table that says the schedule of each problem, with `base` for
/// problems to which none of its entries comes near.
pub fn candidate(name: &str, text: &str, base: &Schedule) -> Result<Candidate, Trouble> {
    let dispatch = match text.strip_prefix(DISPATCH) {
        None => None,
        Some(file) => Some(DispatchTable::load(Path::new(file)).map_err(|error| {
            Trouble::bad_input(
                error.to_string(),
                "name a table that `gauntlet tune --output FILE` has written",
            )
        })?),
    };
    Ok(Candidate {
        name: name.to_owned(),
        schedule: match dispatch {
            None => read(text, base)?,
            Some(_) => base.clone(),
        },
        command: None,
        dispatch,
        recorded_loop: None,
    })
}

/// Words separated by commas, as in an inline table.
fn words(text: &str) -> Result<ScheduleChange, String> {
    if !text.contains('=') {
        return Err("it names no word and its value".to_owned());
    }
    #[derive(serde::Deserialize)]
    struct Words {
        words: ScheduleChange,
    }
    toml::from_str::<Words>(&format!("words = {{ {text} }}"))
        .map(|parsed| parsed.words)
        .map_err(|error| error.message().to_owned())
}
