//! `gauntlet compile`: the compile gate of every shipped CUDA kernel, without a GPU.

use std::path::Path;

use gauntlet_cuda::compiler::Compiler;
use gauntlet_cuda::{CheckError, CheckedVariant, CompileError, shipped};
use gauntlet_report::{Column, table};

use crate::arguments::Compile;
use crate::commands::devices;
use crate::exit::Exit;
use crate::sink::{self, write_json};
use crate::trouble::{Trouble, terminal_width};

/// Compiles what is shipped and holds it against its budgets.
pub fn compile(arguments: &Compile) -> Result<Exit, Trouble> {
    let device = devices::find(&arguments.device)?;
    let wanted = arguments.name.as_deref().unwrap_or_default();
    let shipped: Vec<_> = shipped()
        .into_iter()
        .filter(|one| one.name.contains(wanted))
        .collect();
    if shipped.is_empty() {
        return Err(Trouble::bad_input(
            format!("no shipped variant's name contains `{wanted}`"),
            "`gauntlet compile` lists all of them",
        ));
    }
    let compiler = Compiler::new().map_err(|error| Trouble::broken(error.to_string()))?;
    let mut checked = Vec::new();
    for one in &shipped {
        checked.push(one.check(&compiler, &device).map_err(trouble)?);
    }
    if arguments.json {
        write_json(Path::new("-"), &checked)?;
    } else {
        tell(&checked, &compiler)?;
    }
    let is_within = checked.iter().all(|one| one.broken.is_empty());
    Ok(if is_within { Exit::Done } else { Exit::NotReached })
}

/// What is asked for may be wrong; else something is missing.
fn trouble(error: CheckError) -> Trouble {
    match error {
        CheckError::Compile(CompileError::Architecture { .. }) => {
            Trouble::bad_input(error.to_string(), "name a Hopper GPU with --device: h100 or h200")
        }
        _ => Trouble::broken(error.to_string()),
    }
}

fn tell(checked: &[CheckedVariant], compiler: &Compiler) -> Result<(), Trouble> {
    let head = [
        ("variant", Column::Words),
        ("file", Column::Whole),
        ("registers", Column::Figures),
        ("spills", Column::Figures),
        ("shared memory", Column::Figures),
        ("warnings", Column::Figures),
        ("seconds", Column::Figures),
        ("", Column::Words),
    ];
    let rows = checked.iter().map(|one| {
        vec![
            one.name.clone(),
            one.file.clone(),
            format!("{} of {}", one.registers, one.registers_allowed),
            one.spill_bytes.to_string(),
            format!("{} of {}", one.shared_bytes, one.shared_allowed),
            one.warnings.len().to_string(),
            one.seconds
                .map_or_else(|| "kept".to_owned(), |seconds| format!("{seconds:.1}")),
            if one.broken.is_empty() {
                "✓".to_owned()
            } else {
                one.broken.join("; ")
            },
        ]
    });
    sink::print(table(&head, rows.collect(), 0, terminal_width()))?;
    let broken = checked.iter().filter(|one| !one.broken.is_empty()).count();
    sink::print(format_args!(
        "{} variants by NVRTC {}, {broken} over budget.",
        checked.len(),
        compiler.version()
    ))
}
