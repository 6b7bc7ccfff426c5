//! A part of a problem, computed by cheats that leave the rest out.

use gauntlet_kernels_cpu::Kernel;
use gauntlet_nvfp4::{BLOCK, Nvfp4Tensor};
use gauntlet_problems::{
    Attention, AttentionInputs, FloatTensor, GroupInputs, HeadTensor, Inputs, Operation, Output, Scaling,
    Tokens,
};
use gauntlet_worker::protocol::Failure;

use super::work::{Work, broken};

/// Which part of a problem is kept.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    /// The first row kept, given their total.
    pub start: fn(usize) -> usize,
    /// The number of rows kept, given their total.
    pub rows: fn(usize) -> usize,
    /// Whether the last group is left out.
    pub last_group: bool,
    /// Whether the last head is left out.
    pub last_head: bool,
    /// The most keys that a query attends to.
    pub keys: usize,
    /// The most products summed in an element of a GEMM.
    pub depth: usize,
}

impl Cut {
    /// Leaves nothing out.
    pub const NONE: Self = Self {
        start: |_| 0,
        rows: |rows| rows,
        last_group: false,
        last_head: false,
        keys: usize::MAX,
        depth: usize::MAX,
    };

    /// Keeps half of the rows.
    pub const HALF: Self = Self {
        rows: |rows| rows / 2,
        ..Self::NONE
    };

    fn of(&self, problem: &Operation) -> Operation {
        let mut lesser = problem.clone();
        match &mut lesser {
            Operation::GroupedGemm(gemm) => {
                let last = gemm.groups.len().saturating_sub(1);
                for (index, shape) in gemm.groups.iter_mut().enumerate() {
                    let left_out = self.last_group && last > 0 && index == last;
                    shape.m = if left_out { 0 } else { (self.rows)(shape.m) };
                    shape.k = shape.k.min(self.depth / BLOCK * BLOCK);
                }
            }
            Operation::Attention(attention) => {
                if self.last_head && attention.heads == attention.kv_heads && attention.heads > 1 {
                    attention.heads -= 1;
                    attention.kv_heads -= 1;
                }
                for sequence in &mut attention.sequences {
                    // A kernel requires at least one query.
                    sequence.queries = (self.rows)(sequence.queries).max(1);
                    sequence.keys = sequence.keys.min(self.keys);
                }
            }
        }
        lesser
    }
}

/// A part of a problem, ready to compute.
pub struct Lesser {
    kernel: Kernel,
    whole: Operation,
    start: fn(usize) -> usize,
    copies: Vec<Inputs>,
    output: Output,
}

impl Lesser {
    /// Cuts the problem and its operands; `None` if nothing is left out.
    pub fn new(work: &Work, cut: &Cut) -> Result<Option<Self>, Failure> {
        let problem = cut.of(&work.problem);
        if problem == work.problem {
            return Ok(None);
        }
        let start = cut.start;
        let cut = |inputs| cut_inputs(inputs, &work.problem, &problem, start);
        Ok(Some(Self {
            kernel: work.kernel_for(&problem)?,
            copies: work.copies.iter().map(cut).collect::<Result<_, _>>()?,
            start,
            output: Output::poisoned(&problem),
            whole: work.problem.clone(),
        }))
    }

    /// Whether this is a part of that problem.
    pub fn is_of(&self, problem: &Operation) -> bool {
        self.whole == *problem
    }

    /// Computes the part.
    pub fn compute_alone(&mut self, copy: usize) -> Result<&Output, Failure> {
        let copy = copy % self.copies.len();
        self.kernel
            .run(&self.copies[copy], &mut self.output)
            .map_err(broken)?;
        Ok(&self.output)
    }

    /// Computes the part and writes it to its place in the output; the rest of the output stays as it is.
    pub fn compute(&mut self, copy: usize, output: &mut Output) -> Result<(), Failure> {
        self.compute_alone(copy)?;
        self.place(&self.output, output);
        Ok(())
    }

    /// Writes a result of the part to its place in the output.
    pub fn place(&self, result: &Output, output: &mut Output) {
        let width = output.format.bytes();
        let heads = |problem: &Operation, parts: usize| match problem {
            Operation::GroupedGemm(_) => parts,
            Operation::Attention(attention) => parts / attention.sequences.len().max(1),
        };
        let (all, kept) = (
            heads(&self.whole, output.parts.len()),
            heads(&self.whole, result.parts.len()),
        );
        let mut from = 0;
        let rows: Vec<usize> = output.parts.iter().map(|part| part.rows).collect();
        let mut whole = output.parts.iter().scan(0, |next, part| {
            let first = *next;
            *next += part.rows * part.columns * width;
            Some(first)
        });
        for (index, rows) in rows.into_iter().enumerate() {
            let Some(to) = whole.next() else { break };
            if index % all >= kept {
                continue;
            }
            let part = result.parts[index / all * kept + index % all];
            let bytes = part.rows * part.columns * width;
            let begin = (self.start)(rows).min(rows - part.rows);
            let to = to + begin * part.columns * width;
            output.bytes[to..to + bytes].copy_from_slice(&result.bytes[from..from + bytes]);
            from += bytes;
        }
    }
}

/// `rows` rows of tokens from `start` on, and their first columns.
fn cut_tokens(tokens: &Tokens, (start, rows): (usize, usize), columns: usize) -> Result<Tokens, Failure> {
    let whole = match tokens {
        Tokens::Nvfp4(tensor) => return cut_tensor(tensor, (start, rows), columns).map(Tokens::Nvfp4),
        Tokens::Floats(whole) => whole,
    };
    let size = whole.format.bytes();
    let row = |row: usize| &whole.bytes[size * (start + row) * whole.columns..][..size * columns];
    Ok(Tokens::Floats(FloatTensor {
        format: whole.format,
        rows,
        columns,
        bytes: (0..rows).flat_map(row).copied().collect(),
    }))
}

fn cut_inputs(
    inputs: &Inputs,
    whole: &Operation,
    lesser: &Operation,
    start: fn(usize) -> usize,
) -> Result<Inputs, Failure> {
    match (inputs, whole, lesser) {
        (Inputs::GroupedGemm(groups), _, Operation::GroupedGemm(gemm)) => {
            let cut = |(group, shape): (&GroupInputs, &gauntlet_problems::GemmShape)| {
                let weights = |tensor| cut_tensor(tensor, (0, shape.n), shape.k);
                Ok(GroupInputs {
                    a: cut_tokens(&group.a, (start(group.a.rows()), shape.m), shape.k)?,
                    b: weights(&group.b)?,
                    b2: group.b2.as_ref().map(weights).transpose()?,
                })
            };
            let groups = groups.iter().zip(&gemm.groups).map(cut);
            Ok(Inputs::GroupedGemm(groups.collect::<Result<_, Failure>>()?))
        }
        (Inputs::Attention(inputs), Operation::Attention(whole), Operation::Attention(lesser)) => {
            let queries = |attention: &Attention| -> Vec<usize> {
                attention
                    .sequences
                    .iter()
                    .map(|sequence| sequence.queries)
                    .collect()
            };
            let keys = |attention: &Attention| -> Vec<usize> {
                attention.sequences.iter().map(|sequence| sequence.keys).collect()
            };
            let grain = (whole.head_size, whole.scaling);
            let keys = |tensor| {
                let heads = (whole.kv_heads, lesser.kv_heads);
                cut_heads(tensor, heads, grain, &keys(whole), &keys(lesser), |_| 0)
            };
            Ok(Inputs::Attention(AttentionInputs {
                query: cut_heads(
                    &inputs.query,
                    (whole.heads, lesser.heads),
                    grain,
                    &queries(whole),
                    &queries(lesser),
                    start,
                ),
                key: keys(&inputs.key),
                value: keys(&inputs.value),
            }))
        }
        _ => Err(broken("operands of another family")),
    }
}

/// Some rows of a tensor, from the first one on, and its first columns.
fn cut_tensor(
    tensor: &Nvfp4Tensor,
    (start, rows): (usize, usize),
    columns: usize,
) -> Result<Nvfp4Tensor, Failure> {
    let first = |data: &[u8], values: usize| -> Vec<u8> {
        let (stride, kept) = (tensor.columns() / values, columns / values);
        data.chunks(stride.max(1))
            .skip(start)
            .take(rows)
            .flat_map(|row| &row[..kept])
            .copied()
            .collect()
    };
    let (packed, scales) = (first(tensor.packed(), 2), first(tensor.scales(), BLOCK));
    Nvfp4Tensor::new(rows, columns, packed, scales, tensor.tensor_scale()).map_err(broken)
}

/// The first heads of each sequence, and some of their positions.
fn cut_heads(
    tensor: &HeadTensor,
    (heads, kept): (usize, usize),
    (head_size, scaling): (usize, Scaling),
    whole: &[usize],
    lesser: &[usize],
    start: fn(usize) -> usize,
) -> HeadTensor {
    let row = head_size * tensor.format.bytes();
    let mut cut = HeadTensor {
        format: tensor.format,
        bytes: Vec::new(),
        scales: Vec::new(),
    };
    let (mut first, mut first_scale) = (0, 0);
    for (&positions, &positions_kept) in whole.iter().zip(lesser) {
        let scales = scaling.count(positions);
        // With a scale for each block, a part must begin at the first position of a block.
        let begin = start(positions).min(positions - positions_kept);
        let scale_start = scaling.place(begin);
        for head in 0..kept {
            let from = (first + head * positions + begin) * row;
            cut.bytes.extend(&tensor.bytes[from..from + positions_kept * row]);
            let from = first_scale + head * scales + scale_start;
            cut.scales
                .extend(&tensor.scales[from..from + scaling.count(positions_kept)]);
        }
        first += heads * positions;
        first_scale += heads * scales;
    }
    cut
}

#[cfg(test)]
mod tests {
    use gauntlet_task::{Coverage, Expected, InputKind, Sizes};

    use super::super::trial;
    use super::*;

    fn inputs(sizes: &Sizes) -> Inputs {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("inputs");
        sizes.generate(InputKind::Wide, 3).unwrap().save(&file).unwrap();
        Inputs::load(&file, gauntlet_tiled_family::operation(sizes).unwrap()).unwrap()
    }

    fn expected(operation: &Operation, inputs: &Inputs) -> Expected {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("inputs");
        inputs.save(&file).unwrap();
        let sizes = gauntlet_families::open(&serde_json::to_value(operation).unwrap()).unwrap();
        sizes
            .expected(&*sizes.load(&file).unwrap(), Coverage::Full)
            .unwrap()
    }

    /// Two parts that begin at different rows fill the whole, and each its own rows.
    #[test]
    fn parts_of_a_result_find_their_places() {
        for case in trial::suite().unwrap().benchmark {
            let operation = gauntlet_tiled_family::operation(&case.sizes).unwrap();
            let inputs = inputs(&case.sizes);
            let cuts = [
                Cut {
                    rows: |rows| rows / 3,
                    ..Cut::NONE
                },
                Cut {
                    start: |rows| rows / 3,
                    rows: |rows| rows - rows / 3,
                    ..Cut::NONE
                },
            ];
            let whole = expected(operation, &inputs);
            let mut found = Vec::new();
            for cut in cuts {
                let lesser = cut.of(operation);
                let inputs = cut_inputs(&inputs, operation, &lesser, cut.start).unwrap();
                let values = expected(&lesser, &inputs);
                let parts: Vec<usize> = lesser
                    .parts()
                    .iter()
                    .map(|part| part.rows * part.columns)
                    .collect();
                let mut values = values.values().map(|(_, _, value)| value);
                let parts = parts
                    .into_iter()
                    .map(|count| values.by_ref().take(count).collect::<Vec<_>>());
                found.push(parts.collect::<Vec<_>>());
            }
            let joined = found[0]
                .iter()
                .zip(&found[1])
                .flat_map(|(one, other)| one.iter().chain(other));
            // The order of summation may differ with the size.
            let same =
                |(found, (_, _, expected)): (&f64, (usize, usize, f64))| (found - expected).abs() < 1e-9;
            assert!(joined.zip(whole.values()).all(same), "{}", case.name);
        }
    }

    /// The oracle gives the same result for the part as for the kept rows of the whole.
    #[test]
    fn operands_are_cut_along_with_the_problem() {
        for case in trial::suite().unwrap().benchmark {
            let cut = Cut {
                rows: |rows| rows / 2,
                last_head: true,
                ..Cut::NONE
            };
            let operation = gauntlet_tiled_family::operation(&case.sizes).unwrap();
            let inputs = inputs(&case.sizes);
            let lesser = cut.of(operation);
            let cut = cut_inputs(&inputs, operation, &lesser, |_| 0).unwrap();
            cut.validate(&lesser).unwrap();
            let (whole, part) = (expected(operation, &inputs), expected(&lesser, &cut));
            let whole: Vec<f64> = whole.values().map(|(_, _, value)| value).collect();
            let kept: Vec<f64> = part.values().map(|(_, _, value)| value).collect();
            let columns = operation.parts()[0].columns;
            // The order of summation may differ with the size.
            let same = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-9;
            assert!(
                whole[..columns].iter().zip(&kept[..columns]).all(same),
                "{}",
                case.name
            );
            assert!(kept.len() < whole.len());
        }
    }
}
