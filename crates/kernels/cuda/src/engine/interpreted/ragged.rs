//! Sequences whose lengths, and pages of whose keys, are in the device's memory, beside the oracle on the same sequences.

use std::iter::repeat_n;

use gauntlet_problems::{Attention, AttentionFormat, HeadTensor, OutputFormat, Scaling, Sequence as Lengths};
use rayon::prelude::*;

use super::*;
use crate::plan::attention::ragged::{KeyPlaces, RaggedPlaces, RaggedPlan, RaggedShape, Strides};
use crate::plan::fixture::ADDRESSES;

/// How keys and values lie in memory.
#[derive(Debug, Clone, Copy)]
enum Keys {
    Ragged,
    /// As many positions of each sequence as `counts` says, though more lie there.
    Counted,
    /// Pages of `1 << 0` positions, all heads of a position side by side; keys and values share pages, side by side.
    Paged(u32),
}

struct Case {
    attention: Attention,
    keys: Keys,
    /// Beyond the lengths, as a captured call has them.
    spare: [usize; 2],
}

/// Positions of unequal sequences with the heads of each side by side, from heads with their positions one after another.
fn by_position(tensor: &HeadTensor, lengths: &[usize], heads: usize, row: usize) -> Vec<Vec<u8>> {
    let mut rest = tensor.bytes.as_slice();
    let mut positions = Vec::new();
    for &length in lengths {
        let (own, others) = rest.split_at(length * heads * row);
        rest = others;
        positions.extend((0..length).map(|position| {
            let of_head = |head: usize| &own[(head * length + position) * row..][..row];
            (0..heads).flat_map(of_head).copied().collect()
        }));
    }
    positions
}

/// The reverse, of results.
fn by_head(bytes: &[u8], lengths: &[usize], heads: usize, row: usize) -> Vec<u8> {
    let mut found = Vec::new();
    let mut first = 0;
    for &length in lengths {
        for head in 0..heads {
            for position in first..first + length {
                found.extend_from_slice(&bytes[(position * heads + head) * row..][..row]);
            }
        }
        first += length;
    }
    found
}

fn begins(lengths: impl Iterator<Item = usize>) -> Vec<u8> {
    let mut ends = vec![0];
    for length in lengths {
        ends.push(ends[ends.len() - 1] + length as i32);
    }
    bytemuck::cast_slice(&ends).to_vec()
}

/// What is written where no key is: NaN of every format, and no sequence's page.
const NOTHING: u8 = 0xFF;

impl Case {
    fn shape(&self) -> RaggedShape {
        let most = |length: fn(&Lengths) -> usize| self.attention.sequences.iter().map(length).max().unwrap();
        RaggedShape {
            batch: self.attention.sequences.len(),
            heads: self.attention.heads,
            kv_heads: self.attention.kv_heads,
            head_size: self.attention.head_size,
            most_queries: most(|lengths| lengths.queries) + self.spare[0],
            most_keys: most(|lengths| lengths.keys) + self.spare[1],
            causal: self.attention.causal,
            format: self.attention.format,
            scaling: self.attention.scaling,
            output: self.attention.output,
        }
    }

    /// Places keys and values; returns their addresses, their strides and where their lengths are.
    fn place_keys(&self, memory: &mut Memory, tensors: [&HeadTensor; 2]) -> ([u64; 2], Strides, KeyPlaces) {
        let attention = &self.attention;
        let row = attention.head_size * attention.format.bytes();
        let lengths: Vec<_> = attention.sequences.iter().map(|lengths| lengths.keys).collect();
        let [keys, values] = tensors.map(|tensor| by_position(tensor, &lengths, attention.kv_heads, row));
        let counts: Vec<i32> = lengths.iter().map(|&length| length as i32).collect();
        let counts = memory.allocate(bytemuck::cast_slice(&counts).to_vec());
        let position = attention.kv_heads * row;
        let strides = Strides {
            page: 0,
            position: position as u64,
            head: row as u64,
        };
        match self.keys {
            Keys::Ragged | Keys::Counted => {
                let is_counted = matches!(self.keys, Keys::Counted);
                let gap = if is_counted { 3 } else { 0 };
                let place = |positions: &[Vec<u8>]| {
                    let mut rest = positions.iter();
                    let of = |&length: &usize| {
                        let mut own: Vec<_> = rest.by_ref().take(length).flatten().copied().collect();
                        own.extend(repeat_n(NOTHING, gap * position));
                        own
                    };
                    lengths.iter().flat_map(of).collect()
                };
                let addresses = [&keys, &values].map(|positions| memory.allocate(place(positions)));
                let begins = memory.allocate(begins(lengths.iter().map(|length| length + gap)));
                let counts = if is_counted { counts } else { 0 };
                (addresses, strides, KeyPlaces::Ragged { begins, counts })
            }
            Keys::Paged(page_shift) => {
                let page = 1 << page_shift;
                let of_each = lengths.iter().map(|length| length.div_ceil(page));
                let pages_a_sequence = of_each.clone().max().unwrap() + 2;
                let all: usize = of_each.sum();
                // A page has its keys and then its values; pages are taken from the last one down.
                let mut bytes = vec![NOTHING; (all + 1) * 2 * page * position];
                let mut table = vec![-1_i32; lengths.len() * pages_a_sequence];
                let (mut free, mut first) = (all, 0);
                for (sequence, &length) in lengths.iter().enumerate() {
                    for (number, positions) in (first..first + length)
                        .collect::<Vec<_>>()
                        .chunks(page)
                        .enumerate()
                    {
                        table[sequence * pages_a_sequence + number] = free as i32;
                        for (place, &of) in positions.iter().enumerate() {
                            let at = (free * 2 * page + place) * position;
                            bytes[at..at + position].copy_from_slice(&keys[of]);
                            let at = at + page * position;
                            bytes[at..at + position].copy_from_slice(&values[of]);
                        }
                        free -= 1;
                    }
                    first += length;
                }
                let cache = memory.allocate(bytes);
                let places = KeyPlaces::Paged {
                    counts,
                    pages: memory.allocate(bytemuck::cast_slice(&table).to_vec()),
                    pages_a_sequence: pages_a_sequence as u32,
                    page_shift,
                };
                let strides = Strides {
                    page: (2 * page * position) as u64,
                    ..strides
                };
                ([cache, cache + (page * position) as u64], strides, places)
            }
        }
    }

    /// What is wrong with the results, if anything.
    fn wrong(&self, compiler: &Compiler) -> Option<String> {
        let attention = &self.attention;
        let problem = Operation::Attention(attention.clone());
        let Inputs::Attention(inputs) = operations::generate(&problem, InputKind::Competition, 5) else {
            panic!("the inputs are of another family")
        };
        let mut memory = Memory::new();
        let lengths: Vec<_> = attention
            .sequences
            .iter()
            .map(|lengths| lengths.queries)
            .collect();
        let row = attention.head_size * attention.format.bytes();
        // Positions of Q lie apart, as in a tensor that has K and V beside.
        let mut query: Vec<u8> = Vec::new();
        for position in by_position(&inputs.query, &lengths, attention.heads, row) {
            query.extend(position);
            query.extend([NOTHING; 16]);
        }
        let query_strides = Strides {
            page: 0,
            position: (attention.heads * row + 16) as u64,
            head: row as u64,
        };
        query.extend([NOTHING; 16]);
        let query = memory.allocate(query);
        let ([key, value], strides, keys) = self.place_keys(&mut memory, [&inputs.key, &inputs.value]);
        let scales = [&inputs.query, &inputs.key, &inputs.value]
            .map(|tensor| memory.allocate(bytemuck::cast_slice(&tensor.scales).to_vec()));
        let plan = RaggedPlan::new(&self.shape(), target(Arch::Sm90a)).unwrap();
        let call = plan.call(RaggedPlaces {
            query_begins: memory.allocate(begins(lengths.iter().copied())),
            keys,
            query: query_strides,
            key: strides,
            value: strides,
        });
        let needed = call.memory(&[]);
        let result = attention.head_size * attention.output.bytes();
        let output = memory.allocate_unwritten(lengths.iter().sum::<usize>() * attention.heads * result);
        let addresses = Addresses {
            operands: [query, key, value],
            scales,
            output,
            workspace: memory.allocate_unwritten(needed.workspace_bytes),
            counters: memory.allocate(vec![0; needed.counter_bytes]),
            ..ADDRESSES
        };
        let kernels = read(compiler, &call, Arch::Sm90a);
        let queued = call.launches(&addresses);
        let name = format!("{attention}, {:?}", self.keys);
        for seed in 0..2 {
            if let Err(fault) = run(&call, &kernels, &queued, &mut memory, seed, None) {
                return Some(format!("{name}, seed {seed}: {fault}"));
            }
            let bytes = by_head(
                memory.contents(output).unwrap(),
                &lengths,
                attention.heads,
                result,
            );
            let output = Output::new(&problem, bytes).unwrap();
            let inputs = Inputs::Attention(inputs.clone());
            let expected = operations::expected(&problem, &inputs, Coverage::Full).unwrap();
            let rules = operations::rules(&problem, plan.schedule());
            let rightness = operations::sizes(&problem)
                .unwrap()
                .rightness(Some(InputKind::Competition));
            let errors =
                ErrorMeasures::between(&operations::output(&problem, &output), &expected, rules.tolerance);
            if let Some(fault) = rules.fault(&errors, rightness) {
                return Some(format!("{name}, seed {seed}: {fault}"));
            }
        }
        None
    }
}

fn case(
    format: AttentionFormat,
    head_size: usize,
    causal: bool,
    lengths: &[(usize, usize)],
    keys: Keys,
    spare: [usize; 2],
) -> Case {
    let sequences = lengths.iter().map(|&(queries, keys)| Lengths { queries, keys });
    Case {
        attention: Attention {
            sequences: sequences.collect(),
            heads: 6,
            kv_heads: 2,
            head_size,
            causal,
            format,
            scaling: Scaling::PerHead,
            output: OutputFormat::F16,
        },
        keys,
        spare,
    }
}

#[test]
fn sequences_of_several_lengths_and_pages_are_right() {
    let Some(compiler) = compiler() else { return };
    let decoded = [(1, 300), (1, 1), (0, 17), (1, 129)];
    let mixed = [(70, 130), (1, 260), (9, 9), (5, 2)];
    // More than a warp looks at at a time; some without queries, one with most of all keys.
    let many: Vec<_> = (0..40)
        .map(|number| (number % 4, if number == 35 { 700 } else { 1 + number * 7 % 90 }))
        .collect();
    let cases = [
        case(AttentionFormat::F16, 64, true, &many, Keys::Paged(4), [2, 0]),
        case(AttentionFormat::Bf16, 64, false, &many, Keys::Ragged, [9, 0]),
        case(AttentionFormat::F16, 64, true, &decoded, Keys::Paged(4), [0, 0]),
        case(AttentionFormat::Bf16, 128, true, &mixed, Keys::Paged(5), [3, 100]),
        case(
            AttentionFormat::E4m3,
            128,
            false,
            &decoded[..1],
            Keys::Paged(0),
            [0, 1000],
        ),
        case(AttentionFormat::Int8, 64, true, &mixed, Keys::Ragged, [0, 0]),
        case(
            AttentionFormat::F16,
            80,
            false,
            &mixed[..3],
            Keys::Counted,
            [0, 40],
        ),
        case(
            AttentionFormat::E4m3,
            96,
            true,
            &[(16, 200), (3, 64)],
            Keys::Paged(6),
            [0, 0],
        ),
    ];
    let wrong: Vec<_> = cases
        .par_iter()
        .filter_map(|case| case.wrong(&compiler))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
