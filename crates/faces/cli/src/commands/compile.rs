//! `gauntlet compile`: the compile gate of every shipped CUDA kernel, without a GPU.

use std::collections::BTreeMap;

use gauntlet_cuda::compiler::Compiler;
use gauntlet_kernels_cuda::{CheckError, CheckedVariant, shipped, shipped_kernels};
use gauntlet_report::{Column, table};
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::Compile;
use crate::commands::devices;
use crate::documents::Document;
use crate::error::{CliError, terminal_width};
use crate::exit::Exit;
use crate::progress::Steps;
use crate::sink;

/// The result of `gauntlet compile`.
#[derive(Serialize, JsonSchema)]
pub struct Compiled {
    /// The compiler and its version.
    compiler: String,
    /// The device that the kernels were compiled for.
    device: String,
    /// The kernels that were compiled, with their resources and budgets.
    variants: Vec<CheckedVariant>,
    /// Kernels without machine code, and the reasons.
    refused: BTreeMap<String, String>,
}

impl Document for Compiled {
    const NAME: &'static str = "compiled-kernels";
    const VERSION: u32 = 2;
}

/// Compiles a kernel and compares it with its budgets.
type Check<'t> = Box<dyn Fn() -> Result<CheckedVariant, CheckError> + 't>;

/// Compiles all shipped kernels and checks them against their budgets.
pub fn compile(arguments: &Compile) -> Result<Exit, CliError> {
    arguments.json.check()?;
    let device = devices::find(&arguments.device)?;
    let mut shipped = shipped(device.arch);
    // Reported before the search for a compiler, which this error does not need.
    if shipped.is_empty() {
        return Err(CliError::bad_input(
            format!(
                "there are no CUDA kernels for {}, the architecture of {}",
                device.arch, device.name
            ),
            "name a GPU that has kernels with --device: a100, l4, h100, h200 or b200",
        ));
    }
    let wanted = arguments.name.as_deref().unwrap_or_default();
    shipped.retain(|one| one.name.contains(wanted));
    let mut kernels = shipped_kernels(device.arch);
    kernels.retain(|one| one.name.contains(wanted));
    if shipped.is_empty() && kernels.is_empty() {
        return Err(CliError::bad_input(
            format!("no shipped variant's name contains `{wanted}`"),
            "`gauntlet compile` lists all of them",
        ));
    }
    let compiler = Compiler::new().map_err(|error| CliError::broken(error.to_string()))?;
    let mut compiled = Compiled {
        compiler: format!("NVRTC {}", compiler.version()),
        device: device.name.clone(),
        variants: Vec::new(),
        refused: BTreeMap::new(),
    };
    let of_schedules = shipped
        .iter()
        .map(|one| -> (&str, Check<'_>) { (&one.name, Box::new(|| one.check(&compiler, &device))) });
    let of_layers = kernels
        .iter()
        .map(|one| -> (&str, Check<'_>) { (&one.name, Box::new(|| one.check(&compiler, &device))) });
    let mut steps = Steps::new(shipped.len() + kernels.len());
    for (index, (name, check)) in of_schedules.chain(of_layers).enumerate() {
        steps.begin(index + 1, &format!("compiling {name}"));
        match check() {
            Ok(checked) => compiled.variants.push(checked),
            Err(CheckError::Compile(error)) if !error.is_of_the_kernel() => {
                return Err(CliError::broken(error.to_string()));
            }
            Err(error) => {
                compiled.refused.insert(name.to_owned(), error.to_string());
            }
        }
    }
    drop(steps);
    arguments.json.deliver(&compiled, || tell(&compiled))?;
    let is_within = compiled.refused.is_empty() && compiled.variants.iter().all(is_within);
    Ok(if is_within { Exit::Done } else { Exit::NotReached })
}

fn is_within(variant: &CheckedVariant) -> bool {
    variant.broken.is_empty()
}

fn tell(compiled: &Compiled) -> Result<(), CliError> {
    let head = [
        ("variant", Column::Words),
        ("file", Column::Whole),
        ("registers", Column::Figures),
        ("spills", Column::Figures),
        ("shared memory", Column::Figures),
        ("warnings", Column::Figures),
        ("seconds", Column::Figures),
    ];
    let variants = &compiled.variants;
    let rows = variants.iter().map(|one| {
        vec![
            one.name.clone(),
            one.file.clone(),
            format!("{}/{}", one.registers, one.registers_allowed),
            one.spill_bytes.to_string(),
            format!("{}/{}", one.shared_bytes, one.shared_allowed),
            one.warnings.len().to_string(),
            one.seconds
                .map_or_else(|| "kept".to_owned(), |seconds| format!("{seconds:.1}")),
        ]
    });
    sink::print(table(&head, rows.collect(), 0, terminal_width()))?;
    for one in variants.iter().filter(|one| !is_within(one)) {
        sink::line(format_args!(
            "over budget: {}: {}",
            one.name,
            one.broken.join("; ")
        ))?;
    }
    for (name, error) in &compiled.refused {
        // Most errors begin with the name, too.
        let error = error.strip_prefix(&format!("{name}: ")).unwrap_or(error);
        sink::message(format_args!("refused: {name}: {error}"))?;
    }
    sink::line(format_args!(
        "{} variants compiled for {} by {}, {} over budget, {} refused.",
        variants.len(),
        compiled.device,
        compiled.compiler,
        variants.iter().filter(|one| !is_within(one)).count(),
        compiled.refused.len()
    ))
}
