//! Parameters in the form used on the command line.

use gauntlet_judge::{KernelForm, KernelText};
use gauntlet_parameters::{Parameters, Table};

use crate::error::EntrantError;
use crate::kernel::read;
use crate::source::Source;

/// Reads `builtin` (or `baseline`), a TOML file, or parameters such as `stages=2, order=dynamic`, on top of `base`. The
/// table defines the parameters.
pub fn read_parameters(text: &str, base: &Parameters, table: &Table) -> Result<Parameters, EntrantError> {
    changed_parameters(&read(text)?, base, table)
}

/// The same for a text that has been read.
pub fn changed_parameters(
    kernel: &KernelText,
    base: &Parameters,
    table: &Table,
) -> Result<Parameters, EntrantError> {
    let change = match kernel.form() {
        KernelForm::BuiltIn => return Ok(base.clone()),
        KernelForm::Parameters(change) => change.clone(),
        KernelForm::ParameterFile(path) => Source::<Parameters>::read(path, "schedule")?.value,
        _ => {
            return Err(EntrantError::wrong(
                format!("`{kernel}` is not a set of parameters"),
                "write them as 'stages=2, order=dynamic'; `gauntlet schedules` explains them",
            ));
        }
    };
    table.check(&change).map_err(|error| {
        EntrantError::wrong(
            format!("`{kernel}`: {error}"),
            "`gauntlet schedules --suite SUITE` explains the parameters",
        )
    })?;
    Ok(base.changed(&change))
}
