//! The arguments of `compile`.

use clap::Args;

use super::JsonFile;

/// `compile`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet compile                 every shipped CUDA kernel, without a GPU; fails if one breaks its budget
  gauntlet compile swapped --json  those whose names contain `swapped`, as JSON

It takes minutes where the cache holds no machine code yet; stderr shows which variant is being compiled.")]
pub struct Compile {
    /// Only variants whose names contain this.
    pub name: Option<String>,
    /// The GPU to compile for.
    #[arg(long, default_value = "h200")]
    pub device: String,
    /// Where the result goes as JSON.
    #[command(flatten)]
    pub json: JsonFile,
}
