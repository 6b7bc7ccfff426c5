//! Explanations from measured times alone.

mod cell;
mod table;

use std::path::Path;

use gauntlet_device::Device;
use gauntlet_diagnose::{Variant, VariantChange, changes};
use gauntlet_entrants::FileError;
use gauntlet_parameters::Parameters;
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::JsonFile;
use crate::documents::Document;
use crate::error::{CliError, terminal_width};
use crate::exit::Exit;
use crate::sink;
use table::{Table, VariantRows};

/// The result of `gauntlet explain --times`.
#[derive(Serialize, JsonSchema)]
pub struct Diagnosed {
    /// Each variant of the file, with what its times say.
    variants: Vec<Variant>,
    /// What changed from one variant to another.
    changes: Vec<VariantChange>,
}

impl Document for Diagnosed {
    const NAME: &'static str = "diagnosis";
    const VERSION: u32 = 1;
}

/// Diagnoses the times of a file, separately for each variant, and compares the variants.
pub fn explain(
    file: &Path,
    schedule: &Parameters,
    device: &Device,
    json: &JsonFile,
) -> Result<Exit, CliError> {
    let table = table::read(file)?;
    let of_variant = |rows: &VariantRows| diagnose(&table, rows, schedule, device);
    let variants = table
        .variants
        .iter()
        .map(of_variant)
        .collect::<Result<Vec<_>, _>>()?;
    let changes = changes(&variants, device)
        .map_err(|error| table.error(None, error.to_string(), "correct the rows, or leave them out"))?;
    let diagnosed = Diagnosed { variants, changes };
    json.deliver(&diagnosed, || {
        let Diagnosed { variants, changes } = &diagnosed;
        sink::print(gauntlet_report::diagnoses(variants, changes, terminal_width()).trim_end())
    })?;
    Ok(Exit::Done)
}

fn diagnose(
    table: &Table,
    rows: &VariantRows,
    schedule: &Parameters,
    device: &Device,
) -> Result<Variant, FileError> {
    let schedule = gauntlet_problems::Schedule::among(schedule)
        .map_err(|error| table.error(None, error.to_string(), "correct the schedule of the rows"))?;
    let diagnosis = gauntlet_diagnose::diagnose(&rows.measurements, &schedule, device).map_err(|error| {
        let span = error.measurement().map(|index| rows.spans[index].clone());
        table.error(span, error.to_string(), "correct the row, or leave it out")
    })?;
    Ok(Variant {
        name: rows.name.clone(),
        diagnosis,
    })
}
