//! Sizes of attention as suite files write them.

use gauntlet_operations::{Attention, AttentionFormat, OutputFormat, Scaling, Sequence};
use gauntlet_task::{Fault, WrittenSizes};
use serde::Deserialize;

/// Sequences that `batch` can stand for.
const MAX_BATCH: usize = 65536;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct AttentionTable {
    batch: Option<usize>,
    length: Option<usize>,
    sequences: Option<Vec<Sequence>>,
    heads: usize,
    kv_heads: Option<usize>,
    head_size: usize,
    #[serde(default)]
    causal: bool,
    format: AttentionFormat,
    #[serde(default)]
    scaling: Scaling,
    #[serde(default)]
    output: OutputFormat,
}

/// Reads the sizes of a suite file.
pub fn read(written: &WrittenSizes) -> Result<Attention, Fault> {
    let table: AttentionTable = written.parse()?;
    let sequences = table.sequences().map_err(|message| written.fault(message))?;
    Ok(Attention {
        sequences,
        heads: table.heads,
        kv_heads: table.kv_heads.unwrap_or(table.heads),
        head_size: table.head_size,
        causal: table.causal,
        format: table.format,
        scaling: table.scaling,
        output: table.output,
    })
}

impl AttentionTable {
    fn sequences(&self) -> Result<Vec<Sequence>, String> {
        match (&self.sequences, self.batch, self.length) {
            (Some(sequences), None, None) => Ok(sequences.clone()),
            (None, batch, Some(length)) => {
                // Refused here, before that many sequences are allocated.
                let batch = batch.unwrap_or(1);
                if batch > MAX_BATCH {
                    return Err(format!("batch = {batch} is over {MAX_BATCH}; use a smaller one"));
                }
                let sequence = Sequence {
                    queries: length,
                    keys: length,
                };
                Ok(vec![sequence; batch])
            }
            _ => Err(
                "attention takes either `batch` and `length`, or `sequences = [{ queries = …, keys = … }, …]`".to_owned(),
            ),
        }
    }
}
