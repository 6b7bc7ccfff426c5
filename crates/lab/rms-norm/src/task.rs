//! The task and the parameters of its kernels.

use std::sync::LazyLock;

use gauntlet_parameters::{Domain, Parameter, Table};
use gauntlet_task::{Fault, Sizes, Task, WrittenSizes};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::RmsNorm;

/// Row-wise RMSNorm.
pub const RMS_NORM: &dyn Task = &RmsNormTask;

#[derive(Debug)]
struct RmsNormTask;

/// The number of rows that one thread takes at a time.
pub const ROWS_PER_TASK: &str = "rows-per-task";

/// The number of partial sums of squares of a row.
pub const PARTIAL_SUMS: &str = "partial-sums";

static PARAMETERS: LazyLock<Table> = LazyLock::new(|| {
    Table::new(
        "RMSNorm",
        vec![
            Parameter::new(
                ROWS_PER_TASK,
                Domain::number(1, 65_536),
                16_usize.into(),
                "rows that a thread takes at a time: few balance the threads, many need fewer steps of a shared counter",
            ),
            Parameter::new(
                PARTIAL_SUMS,
                Domain::one_of([1, 8, 32]),
                32_usize.into(),
                "independent partial sums of squares: with 1 each addition waits for the one before",
            ),
        ],
    )
});

impl Task for RmsNormTask {
    fn name(&self) -> &'static str {
        "rms-norm"
    }

    fn summary(&self) -> &'static str {
        "row-wise RMSNorm in f32 or bf16"
    }

    fn parameters(&self) -> &'static Table {
        &PARAMETERS
    }

    fn suites(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("rms-norm", include_str!("../suites/rms-norm.toml")),
            ("rms-norm-bf16", include_str!("../suites/rms-norm-bf16.toml")),
        ]
    }

    fn read(&self, written: &WrittenSizes) -> Result<Sizes, Fault> {
        let sizes: RmsNorm = written.parse()?;
        sizes.checked().map_err(|message| written.fault(message))
    }

    fn written_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        RmsNorm::json_schema(generator)
    }

    fn open(&self, record: &serde_json::Value) -> Result<Sizes, String> {
        let mut record = record.clone();
        // Records of suites have the task's name among the sizes.
        record.as_object_mut().and_then(|fields| fields.remove("family"));
        let sizes: RmsNorm = serde_json::from_value(record).map_err(|error| error.to_string())?;
        sizes.checked()
    }

    fn claims(&self, names: &[&str]) -> bool {
        names.contains(&"rows") && names.contains(&"columns")
    }
}
