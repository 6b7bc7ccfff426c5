//! A layer of a mixture of experts in one call: route, gather, both products of each expert, and the weighted sum.

use gauntlet_nvfp4::Nvfp4Tensor;
use gauntlet_problems::{Form, GemmShape, GroupedGemm, Operation, OutputFormat};
use thiserror::Error;

use crate::engine::Engine;
use crate::error::{BuildError, RunError};
use crate::gemm::{FloatRows, GemmOperands, TokenRows, Weights};
use crate::memory::{Disjoint, output_for};

/// The weights of one expert, which computes `(silu(x·gateᵀ) ∘ (x·upᵀ))·downᵀ`.
#[derive(Debug, Clone, Copy)]
pub struct Expert<'a> {
    /// `[intermediate, hidden]`.
    pub gate: &'a Nvfp4Tensor,
    /// `[intermediate, hidden]`.
    pub up: &'a Nvfp4Tensor,
    /// `[hidden, intermediate]`.
    pub down: &'a Nvfp4Tensor,
}

/// Which experts each token goes to.
#[derive(Debug, Clone, Copy)]
pub struct TopExperts<'a> {
    /// Experts of a token.
    pub count: usize,
    /// Numbers of experts, `[tokens, count]`; [`NO_EXPERT`] fills a place and adds nothing, as engines pad.
    pub ids: &'a [i64],
    /// What each expert's result is multiplied by, `[tokens, count]`.
    pub weights: &'a [f32],
    /// Where each number's expert is among those given, or −1 if it is elsewhere and adds nothing here; without a map the
    /// numbers are places.
    pub map: Option<&'a [i64]>,
}

/// The number that stands for no expert among a token's numbers, and for an expert elsewhere among the places of a map.
pub const NO_EXPERT: i64 = -1;

/// Why a layer cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MoeError {
    /// A list of another length.
    #[error("{what}: {found} for {tokens} tokens of {count} experts each; give {}", tokens * count)]
    Length {
        /// Numbers or weights.
        what: &'static str,
        /// Tokens.
        tokens: usize,
        /// Experts of a token.
        count: usize,
        /// Length of the list.
        found: usize,
    },
    /// A number that stands for no expert.
    #[error(
        "expert {id} of token {token}: there are {experts}; give 0 to {}, or -1 for none",
        experts.saturating_sub(1)
    )]
    Expert {
        /// The token.
        token: usize,
        /// The number.
        id: i64,
        /// How many experts there are.
        experts: usize,
    },
    /// A place in the map that stands for no expert.
    #[error("expert {id} is mapped to {place}, and {experts} are given; give 0 to {}, or -1", experts.saturating_sub(1))]
    Place {
        /// The number.
        id: usize,
        /// Its place.
        place: i64,
        /// How many experts are given.
        experts: usize,
    },
    /// Weights of other sizes than the first expert's, or than the tokens'.
    #[error("expert {expert}: {what} is {}×{}, and the layer takes {}×{}", found[0], found[1], expected[0], expected[1])]
    Shape {
        /// The expert.
        expert: usize,
        /// Gate, up or down.
        what: &'static str,
        /// Its rows and columns.
        found: [usize; 2],
        /// Those of the layer.
        expected: [usize; 2],
    },
    /// The products cannot be planned.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The products cannot be computed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// The rows of all experts, sorted by expert and then by token.
#[derive(Debug)]
struct Sorted {
    /// Rows of each expert.
    sizes: Vec<usize>,
    /// The token of each row.
    tokens: Vec<usize>,
    /// The row of each token and expert; none for experts that are elsewhere, and for padding.
    rows: Vec<Option<usize>>,
}

impl Engine {
    /// Computes a layer: for each of the tokens, `[tokens, hidden]`, the sum of its experts' results times their weights,
    /// `[tokens, hidden]` in `output`, little-endian.
    ///
    /// Results between the two products are rounded to the type of the tokens. The experts' results are f32; they are summed
    /// in f64 in the order of the token's experts, so the bits depend neither on the threads nor on the other tokens' routes.
    ///
    /// # Errors
    ///
    /// If sizes or numbers do not fit, or memory runs out.
    pub fn moe(
        &self,
        tokens: &FloatRows<'_>,
        top: &TopExperts<'_>,
        experts: &[Expert<'_>],
        output: OutputFormat,
    ) -> Result<Vec<u8>, MoeError> {
        let [count, hidden] = tokens.shape();
        let intermediate = experts.first().map_or(0, |expert| expert.gate.rows());
        check_shapes(experts, hidden, intermediate)?;
        let sorted = Sorted::new(top, count, experts.len())?;

        let all = 0..hidden;
        let gathered: Vec<u8> = sorted
            .tokens
            .iter()
            .flat_map(|&token| tokens.row(token, &all))
            .copied()
            .collect();
        let format = tokens.format();
        let pairs = experts.iter().map(|expert| (expert.gate, Some(expert.up)));
        let between = self.products(
            format,
            &gathered,
            &sorted.sizes,
            pairs,
            [intermediate, hidden],
            format,
        )?;
        let single = experts.iter().map(|expert| (expert.down, None));
        let sizes = [hidden, intermediate];
        let results = self.products(format, &between, &sorted.sizes, single, sizes, OutputFormat::F32)?;
        Ok(self.weighted_sums(&results, &sorted, top, hidden, output))
    }

    /// The products of each expert's rows, `[rows, n]`, with one matrix or two and SwiGLU.
    fn products<'a>(
        &self,
        format: OutputFormat,
        rows: &[u8],
        sizes: &[usize],
        weights: impl Iterator<Item = (&'a Nvfp4Tensor, Option<&'a Nvfp4Tensor>)>,
        [n, k]: [usize; 2],
        output: OutputFormat,
    ) -> Result<Vec<u8>, MoeError> {
        let mut operands = Vec::with_capacity(sizes.len());
        let mut rest = rows;
        for (&m, (first, second)) in sizes.iter().zip(weights) {
            let (own, others) = rest.split_at(m * k * format.bytes());
            rest = others;
            operands.push(GemmOperands {
                a: TokenRows::Floats(FloatRows::new(format, [m, k], own)?),
                b: Weights::Tensor(first),
                b2: second.map(Weights::Tensor),
            });
        }
        let is_dual = operands.first().is_some_and(|operands| operands.b2.is_some());
        let gemm = GroupedGemm {
            groups: sizes.iter().map(|&m| GemmShape { m, n, k }).collect(),
            form: if is_dual { Form::Swiglu } else { Form::Plain },
            output,
            tokens: format.into(),
        };
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let schedule = self.recommend(&gemm);
        let problem = Operation::GroupedGemm(gemm);
        let mut result = output_for(&problem)?;
        self.build(&problem, &schedule)?
            .run_gemm(&operands, &mut result)?;
        Ok(result.bytes)
    }

    /// The sums of each token's rows times their weights; the threads share the tokens.
    fn weighted_sums(
        &self,
        results: &[u8],
        sorted: &Sorted,
        top: &TopExperts<'_>,
        hidden: usize,
        output: OutputFormat,
    ) -> Vec<u8> {
        let (results, _) = results.as_chunks::<4>();
        let tokens = sorted.rows.len() / top.count.max(1);
        let mut bytes = vec![0; tokens * hidden * output.bytes()];
        let row_bytes = hidden * output.bytes();
        let all = Disjoint::new(&mut bytes);
        let threads = self.threads();
        self.for_each_thread(&|thread| {
            let mut sums = vec![0.0; hidden];
            for token in tokens * thread / threads..tokens * (thread + 1) / threads {
                sums.fill(0.0);
                let own = token * top.count..(token + 1) * top.count;
                for (row, weight) in sorted.rows[own.clone()].iter().zip(&top.weights[own]) {
                    let Some(row) = row else { continue };
                    let values = &results[row * hidden..(row + 1) * hidden];
                    for (sum, value) in sums.iter_mut().zip(values) {
                        *sum += f64::from(*weight) * f64::from(f32::from_le_bytes(*value));
                    }
                }
                // SAFETY: each token has its own range, and one thread.
                let place = unsafe { all.part_mut(token * row_bytes..(token + 1) * row_bytes) };
                for (bytes, sum) in place.chunks_exact_mut(output.bytes()).zip(&sums) {
                    output.encode(*sum, bytes);
                }
            }
        });
        bytes
    }
}

impl Sorted {
    fn new(top: &TopExperts<'_>, tokens: usize, experts: usize) -> Result<Self, MoeError> {
        let expected = tokens.saturating_mul(top.count);
        for (what, found) in [("ids", top.ids.len()), ("weights", top.weights.len())] {
            if found != expected {
                return Err(MoeError::Length {
                    what,
                    tokens,
                    count: top.count,
                    found,
                });
            }
        }
        let places = top.map.map(|map| places(map, experts)).transpose()?;
        let there = places.as_ref().map_or(experts, Vec::len);
        let place = |(at, &id): (usize, &i64)| {
            if id == NO_EXPERT {
                return Ok(None);
            }
            let number = usize::try_from(id).ok().filter(|&id| id < there);
            let number = number.ok_or(MoeError::Expert {
                token: at / top.count.max(1),
                id,
                experts: there,
            })?;
            Ok(places.as_ref().map_or(Some(number), |places| places[number]))
        };
        let experts_of = top.ids.iter().enumerate().map(place);
        let experts_of = experts_of.collect::<Result<Vec<Option<usize>>, MoeError>>()?;
        let mut sizes = vec![0; experts];
        experts_of.iter().flatten().for_each(|&expert| sizes[expert] += 1);
        let mut next: Vec<usize> = sizes
            .iter()
            .scan(0, |end, size| {
                *end += size;
                Some(*end - size)
            })
            .collect();
        let mut sorted = vec![0; sizes.iter().sum()];
        let rows = experts_of.iter().enumerate().map(|(at, expert)| {
            let next = &mut next[(*expert)?];
            let row = *next;
            *next += 1;
            sorted[row] = at / top.count;
            Some(row)
        });
        Ok(Self {
            rows: rows.collect(),
            tokens: sorted,
            sizes,
        })
    }
}

/// The places of a map; none for experts elsewhere.
fn places(map: &[i64], experts: usize) -> Result<Vec<Option<usize>>, MoeError> {
    let place = |(id, &place): (usize, &i64)| match usize::try_from(place) {
        Ok(found) if found < experts => Ok(Some(found)),
        Err(_) if place == NO_EXPERT => Ok(None),
        _ => Err(MoeError::Place { id, place, experts }),
    };
    map.iter().enumerate().map(place).collect()
}

fn check_shapes(experts: &[Expert<'_>], hidden: usize, intermediate: usize) -> Result<(), MoeError> {
    for (number, Expert { gate, up, down }) in experts.iter().enumerate() {
        let first = [intermediate, hidden];
        for (what, tensor, expected) in [
            ("gate", gate, first),
            ("up", up, first),
            ("down", down, [hidden, intermediate]),
        ] {
            let found = [tensor.rows(), tensor.columns()];
            if found != expected {
                return Err(MoeError::Shape {
                    expert: number,
                    what,
                    found,
                    expected,
                });
            }
        }
    }
    Ok(())
}
