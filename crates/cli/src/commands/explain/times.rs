//! What measured times alone say.

mod cell;
mod table;

use std::path::Path;

use gauntlet_device::Device;
use gauntlet_lab::FileError;
use gauntlet_model::diagnose::{Variant, VariantChange, changes};
use gauntlet_schedule::Schedule;
use serde::Serialize;

use crate::exit::Exit;
use crate::sink::{self, write_json};
use crate::trouble::{Trouble, terminal_width};
use table::{Table, VariantRows};

/// What is written as JSON.
#[derive(Serialize)]
struct Explained {
    variants: Vec<Variant>,
    changes: Vec<VariantChange>,
}

/// Diagnoses the times of a file, each variant on its own, and compares them.
pub fn explain(file: &Path, schedule: &Schedule, device: &Device, json: bool) -> Result<Exit, Trouble> {
    let table = table::read(file)?;
    let diagnosed = |rows: &VariantRows| diagnose(&table, rows, schedule, device);
    let variants = table
        .variants
        .iter()
        .map(diagnosed)
        .collect::<Result<Vec<_>, _>>()?;
    let changes = changes(&variants, device)
        .map_err(|error| table.error(None, error.to_string(), "correct the rows, or leave them out"))?;
    if json {
        write_json(Path::new("-"), &Explained { variants, changes })?;
    } else {
        sink::print(gauntlet_report::diagnoses(&variants, &changes, terminal_width()).trim_end())?;
    }
    Ok(Exit::Done)
}

fn diagnose(
    table: &Table,
    rows: &VariantRows,
    schedule: &Schedule,
    device: &Device,
) -> Result<Variant, FileError> {
    let diagnosis = gauntlet_model::diagnose(&rows.measurements, schedule, device).map_err(|error| {
        let span = error.measurement().map(|index| rows.spans[index].clone());
        table.error(span, error.to_string(), "correct the row, or leave it out")
    })?;
    Ok(Variant {
        name: rows.name.clone(),
        diagnosis,
    })
}
