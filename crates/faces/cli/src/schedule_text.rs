//! Parameters in the form used on the command line.

use gauntlet_judge::{KernelForm, KernelText};
use gauntlet_parameters::{Parameters, Table};

use crate::error::CliError;
use crate::kernel_text;

/// Reads `builtin` (or `baseline`), a TOML file, or parameters such as `stages=2, order=dynamic`, on top of `base`. The
/// table defines the parameters.
pub fn read(text: &str, base: &Parameters, table: &Table) -> Result<Parameters, CliError> {
    changed(&kernel_text::read(text)?, base, table)
}

/// The same for a text that has been read.
pub fn changed(kernel: &KernelText, base: &Parameters, table: &Table) -> Result<Parameters, CliError> {
    let change = match kernel.form() {
        KernelForm::BuiltIn => return Ok(base.clone()),
        KernelForm::Parameters(change) => change.clone(),
        KernelForm::ParameterFile(path) => {
            gauntlet_tournament::Source::<Parameters>::read(path, "schedule")?.value
        }
        _ => {
            return Err(CliError::bad_input(
                format!("`{kernel}` is not a set of parameters"),
                "write them as 'stages=2, order=dynamic'; `gauntlet schedules` explains them",
            ));
        }
    };
    table.check(&change).map_err(|error| {
        CliError::bad_input(
            format!("`{kernel}`: {error}"),
            "`gauntlet schedules --suite SUITE` explains the parameters",
        )
    })?;
    Ok(base.changed(&change))
}
