//! The launch of one case: its shape, its shared memory, its arguments.

use gauntlet_host_native::{Addresses, Bound};
use gauntlet_task::{Expression, Scope};

use crate::table::{KernelTable, Sides};

/// Most blocks in x, and in y and z (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
const MAX_BLOCKS: [i64; 3] = [i32::MAX as i64, 65_535, 65_535];

/// Most threads of a block in x, y and z, and of all together.
const MAX_SIDES: [i64; 3] = [1024, 1024, 64];
const MAX_THREADS: i64 = 1024;

/// Most blocks of a cluster: eight on every device with clusters, sixteen where a kernel allows it.
const MAX_CLUSTER: [i64; 3] = [16, 16, 16];

/// The launch of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchPlan {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Blocks of a cluster in x, y and z.
    pub cluster: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// The arguments, in order.
    pub arguments: Vec<Bound>,
    /// The arguments as the table writes them.
    pub texts: Vec<String>,
}

impl LaunchPlan {
    /// The launch that a table describes for the names of a case.
    ///
    /// # Errors
    /// The key of the table, and the error with its remedy.
    pub(crate) fn new(table: &KernelTable, scope: &Scope) -> Result<Self, (&'static str, String)> {
        let arguments = table.arguments.iter().map(|argument| match argument.bind(scope) {
            Ok(Bound::Stream) => Err((
                "arguments",
                "a kernel takes no stream; leave `stream` out".to_owned(),
            )),
            Ok(bound) => Ok(bound),
            Err(error) => Err(("arguments", error.to_string())),
        });
        let arguments = arguments.collect::<Result<_, _>>()?;
        let block = sides("block", &table.block, scope, MAX_SIDES)?;
        let threads: i64 = block.iter().map(|side| i64::from(*side)).product();
        if threads > MAX_THREADS {
            let message =
                format!("{threads} threads, and a block has at most {MAX_THREADS}; use smaller sides");
            return Err(("block", message));
        }
        let grid = sides("grid", &table.grid, scope, MAX_BLOCKS)?;
        let cluster = match &table.cluster {
            Some(cluster) => sides("cluster", cluster, scope, MAX_CLUSTER)?,
            None => [1; 3],
        };
        if let Some(axis) = (0..3).find(|axis| !grid[*axis].is_multiple_of(cluster[*axis])) {
            let message = format!(
                "{} blocks in {} are not whole clusters of {}; round the grid up with round_up",
                grid[axis],
                ["x", "y", "z"][axis],
                cluster[axis]
            );
            return Err(("cluster", message));
        }
        let shared = table.shared.as_ref().map_or(Ok(0), |shared| {
            let bytes = value("shared", shared, scope)?;
            let message = || format!("`{shared}` is {bytes} bytes; it must be from 0 to 4 GiB");
            u32::try_from(bytes).map_err(|_| ("shared", message()))
        })?;
        Ok(Self {
            grid,
            block,
            cluster,
            shared_bytes: shared,
            arguments,
            texts: table.arguments.iter().map(ToString::to_string).collect(),
        })
    }

    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Blocks of the grid.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|side| u64::from(*side)).product()
    }

    /// The bytes of each argument, for tensors at these addresses.
    pub fn values(&self, addresses: &Addresses) -> Vec<[u8; 8]> {
        let value = |bound: &Bound| match bound {
            Bound::Input(index) => addresses.inputs[*index].to_le_bytes(),
            Bound::Output(index) => addresses.outputs[*index].to_le_bytes(),
            Bound::Stream => [0; 8],
            Bound::Value(passed) => passed.bytes,
        };
        self.arguments.iter().map(value).collect()
    }

    /// Whether the arguments fit a kernel whose parameters have these sizes in bytes.
    ///
    /// # Errors
    /// The error and the remedy.
    pub fn check_parameters(&self, sizes: &[usize]) -> Result<(), String> {
        if self.arguments.len() != sizes.len() {
            return Err(format!(
                "{} arguments ({}), and the kernel has {} parameters; name one for each parameter, in order",
                self.arguments.len(),
                self.texts.join(", "),
                sizes.len()
            ));
        }
        for ((bound, text), size) in self.arguments.iter().zip(&self.texts).zip(sizes) {
            let fits = match bound {
                Bound::Input(_) | Bound::Output(_) | Bound::Stream => *size == 8,
                Bound::Value(passed) if passed.is_float => *size == float_bytes(text),
                Bound::Value(_) => *size <= 8,
            };
            if !fits {
                return Err(format!(
                    "argument `{text}`: the kernel's parameter there has {size} bytes; check the order and the types"
                ));
            }
        }
        Ok(())
    }
}

fn float_bytes(text: &str) -> usize {
    if text.contains("double") { 8 } else { 4 }
}

fn value(key: &'static str, expression: &Expression, scope: &Scope) -> Result<i64, (&'static str, String)> {
    expression.value(scope).map_err(|error| (key, error.to_string()))
}

fn sides(
    key: &'static str,
    sides: &Sides,
    scope: &Scope,
    most: [i64; 3],
) -> Result<[u32; 3], (&'static str, String)> {
    let expressions = sides.expressions();
    if expressions.is_empty() || expressions.len() > 3 {
        let message = format!("{} sides; give one to three", expressions.len());
        return Err((key, message));
    }
    let mut found = [1; 3];
    for (axis, expression) in expressions.iter().enumerate() {
        let number = value(key, expression, scope)?;
        if !(1..=most[axis]).contains(&number) {
            let message = format!("`{expression}` is {number}; it must be from 1 to {}", most[axis]);
            return Err((key, message));
        }
        // At most i32::MAX, as just checked.
        found[axis] = number as u32;
    }
    Ok(found)
}
