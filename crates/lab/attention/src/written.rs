//! Sizes of attention as suite files write them.

use gauntlet_problems::{Attention, AttentionFormat, OutputFormat, Scaling, Sequence};
use gauntlet_task::{Fault, WrittenSizes};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

/// Sequences that `batch` can stand for.
const MAX_BATCH: usize = 65536;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct AttentionTable {
    /// The number of sequences of `length` tokens; 1 if it is left out.
    batch: Option<usize>,
    /// The queries and keys of every sequence, in place of `sequences`.
    length: Option<usize>,
    /// The queries and keys of each sequence, in place of `batch` and `length`.
    sequences: Option<Vec<Sequence>>,
    /// Query heads.
    heads: usize,
    /// Heads of keys and values; as many as `heads` if it is left out.
    kv_heads: Option<usize>,
    /// Values of a head.
    head_size: usize,
    /// Whether a query sees only the keys up to its own position.
    #[serde(default)]
    causal: bool,
    /// The element type of queries, keys and values.
    format: AttentionFormat,
    /// The scaling of quantised operands.
    #[serde(default)]
    scaling: Scaling,
    /// The element type of the output.
    #[serde(default)]
    output: OutputFormat,
}

/// The JSON Schema of the sizes.
pub fn schema(generator: &mut SchemaGenerator) -> Schema {
    AttentionTable::json_schema(generator)
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
