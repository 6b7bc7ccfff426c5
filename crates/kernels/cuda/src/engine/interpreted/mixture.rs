//! The steps of a mixture of experts around its products, bit for bit as plain code computes them.

use gauntlet_problems::{FloatTensor, OutputFormat};
use half::{bf16, f16};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::plan::fixture::collect;
use crate::plan::mixture::{
    self, ArrangeBuffers, CombineBuffers, ExpertMap, IndexWidth, MAX_ALONE, MAX_EXPERTS, MAX_SLOTS,
    MixtureShape,
};

/// More than a warp, and an odd number, so that rows of counts begin at any address.
const EXPERTS: usize = 37;
/// Not a multiple of what a block copies or adds up.
const HIDDEN: usize = 24;

/// A kernel, read, with the numbers of its launches.
pub(super) struct Read {
    kernel: Kernel,
    variant: plan::Variant,
}

impl Read {
    pub(super) fn new(compiler: &Compiler, variant: plan::Variant) -> Self {
        let ptx = variant.ptx(compiler, Arch::Sm90a).unwrap();
        Self {
            kernel: Kernel::read(&ptx, variant.source.entry()).unwrap(),
            variant,
        }
    }

    pub(super) fn launch<'t>(&'t self, launch: &'t plan::Launch) -> Launch<'t> {
        Launch {
            kernel: &self.kernel,
            grid: [launch.grid, 1, 1],
            block: [self.variant.threads, 1, 1],
            cluster: launch.cluster,
            shared_bytes: self.variant.shared_bytes,
            parameter: &launch.parameter,
            overlaps: self.variant.overlaps(),
            only: None,
        }
    }
}

/// Integers in device memory.
fn placed(memory: &mut Memory, numbers: &[i64], width: IndexWidth) -> u64 {
    memory.allocate(match width {
        IndexWidth::Bits64 => bytemuck::cast_slice(numbers).to_vec(),
        IndexWidth::Bits32 => numbers
            .iter()
            .flat_map(|&number| (number as i32).to_le_bytes())
            .collect(),
    })
}

fn integers(memory: &Memory, address: u64) -> Vec<i32> {
    collect(memory.contents(address).unwrap())
}

/// One arrangement: the experts of all slots and, if only some experts are here, where each is.
struct Case {
    shape: MixtureShape,
    ids: Vec<i64>,
    map: Option<Vec<i64>>,
    widths: [IndexWidth; 2],
}

impl Case {
    fn new(tokens: usize, experts_a_token: usize, id: impl FnMut(usize) -> i64) -> Self {
        Self {
            shape: MixtureShape {
                tokens,
                experts_a_token,
                experts: EXPERTS,
                hidden: HIDDEN,
            },
            ids: (0..tokens * experts_a_token).map(id).collect(),
            map: None,
            widths: [IndexWidth::Bits32, IndexWidth::Bits64],
        }
    }

    /// Where a slot's expert is here, or what its row is instead.
    fn expert(&self, slot: usize) -> Result<usize, i32> {
        let place = match (self.ids[slot], &self.map) {
            (-1, _) => -1,
            (id, None) => id,
            (id, Some(map)) => {
                let place = usize::try_from(id).ok().and_then(|id| map.get(id));
                *place.ok_or(mixture::ROW_OF_WRONG)?
            }
        };
        match usize::try_from(place) {
            Ok(place) if place < self.shape.experts => Ok(place),
            _ if place == -1 => Err(mixture::ROW_OF_NONE),
            _ => Err(mixture::ROW_OF_WRONG),
        }
    }

    /// Ends, experts of rows, rows of slots, and the tokens of rows.
    fn expected(&self) -> [Vec<i32>; 4] {
        let (mut ends, mut tokens, mut experts) = (Vec::new(), Vec::new(), Vec::new());
        let mut rows: Vec<i32> = (0..self.ids.len())
            .map(|slot| self.expert(slot).err().unwrap_or_default())
            .collect();
        for expert in 0..self.shape.experts {
            for slot in (0..self.ids.len()).filter(|&slot| self.expert(slot) == Ok(expert)) {
                rows[slot] = tokens.len() as i32;
                tokens.push((slot / self.shape.experts_a_token) as i32);
                experts.push(expert as i32);
            }
            ends.push(tokens.len() as i32);
        }
        tokens.resize(self.ids.len(), -1);
        experts.resize(self.ids.len(), 0);
        [ends, experts, rows, tokens]
    }

    fn check(&self, kernels: &[Read; 2], seed: u64) {
        let mut memory = Memory::new();
        let slots = self.ids.len();
        let row_bytes = 2 * self.shape.hidden;
        let hidden: Vec<u8> = (0..self.shape.tokens * row_bytes)
            .map(|index| (index * 7 % 251) as u8)
            .collect();
        let buffers = ArrangeBuffers {
            ids: placed(&mut memory, &self.ids, self.widths[0]),
            ids_width: self.widths[0],
            expert_map: self.map.as_ref().map(|map| ExpertMap {
                places: placed(&mut memory, map, self.widths[1]),
                width: self.widths[1],
                len: map.len(),
            }),
            hidden: memory.allocate(hidden.clone()),
            ends: memory.allocate_unwritten(4 * self.shape.experts),
            row_experts: memory.allocate_unwritten(4 * slots),
            rows: memory.allocate_unwritten(4 * slots),
            gathered: memory.allocate(vec![0xFF; slots * row_bytes]),
            counts: memory.allocate_unwritten(self.shape.count_bytes()),
        };
        let queued = self.shape.arrangement(&buffers);
        let launches: Vec<_> = queued
            .iter()
            .map(|launch| kernels[usize::from(launch.pass == plan::Pass::Main)].launch(launch))
            .collect();
        let about = format!("{:?}, seed {seed}", self.shape);
        gauntlet_ptx::run(&launches, &mut memory, seed).unwrap_or_else(|fault| panic!("{about}: {fault}"));
        let expected = self.expected();
        let places = [buffers.ends, buffers.row_experts, buffers.rows];
        for (expected, address) in expected.iter().zip(places) {
            assert_eq!(&integers(&memory, address), expected, "{about}");
        }
        let gathered = memory.contents(buffers.gathered).unwrap();
        for (row, token) in expected[3].iter().enumerate() {
            let found = &gathered[row * row_bytes..][..row_bytes];
            match usize::try_from(*token) {
                Ok(token) => assert_eq!(found, &hidden[token * row_bytes..][..row_bytes], "{about}"),
                Err(_) => assert_eq!(found, vec![0xFF; row_bytes], "{about}"),
            }
        }
    }
}

/// Ids that stand for an expert, mostly.
fn drawn(generator: &mut ChaCha8Rng, experts: usize) -> i64 {
    match generator.random_range(0..12) {
        0 => [-1, -2, i64::from(i32::MIN), experts as i64, i64::from(i32::MAX)][generator.random_range(0..5)],
        _ => generator.random_range(0..experts as i64),
    }
}

fn arranging(compiler: &Compiler) -> [Read; 2] {
    [mixture::count(), mixture::arrange()].map(|variant| Read::new(compiler, variant))
}

#[test]
fn tokens_are_sorted_by_their_experts_and_copied() {
    let Some(compiler) = compiler() else { return };
    let kernels = arranging(&compiler);
    let mut generator = ChaCha8Rng::seed_from_u64(11);
    let widths = [IndexWidth::Bits32, IndexWidth::Bits64];
    // From no warp to all of them with several steps; all experts of a token from one to eight.
    for (turn, tokens) in [0, 1, 5, 8, 33, 64, 129, 300].into_iter().enumerate() {
        let experts_a_token = 1 + (turn + 7) % 8;
        let any = Case::new(tokens, experts_a_token, |_| drawn(&mut generator, EXPERTS));
        let one = Case::new(tokens, 8 - turn, |_| 31);
        let mut mapped = Case::new(tokens, experts_a_token, |_| drawn(&mut generator, 3 * EXPERTS));
        // A third of all experts is here, in another order; one place is beyond those that are here.
        let mut map: Vec<i64> = (0..3 * EXPERTS as i64)
            .map(|expert| {
                if expert % 3 == 1 {
                    EXPERTS as i64 - 1 - expert / 3
                } else {
                    -1
                }
            })
            .collect();
        map[0] = EXPERTS as i64;
        mapped.map = Some(map);
        for (index, mut case) in [any, one, mapped].into_iter().enumerate() {
            case.widths = [widths[(turn + index) % 2], widths[turn / 2 % 2]];
            case.check(&kernels, (turn * 3 + index) as u64);
        }
    }
}

/// Ids of 64 bits are not cut to 32, and a map without experts has none of them here.
#[test]
fn wide_ids_and_empty_maps_have_no_rows() {
    let Some(compiler) = compiler() else { return };
    let kernels = arranging(&compiler);
    let mut case = Case::new(9, 2, |slot| [3, (1 << 32) + 3, i64::MIN, 3 - (1 << 32)][slot % 4]);
    case.widths = [IndexWidth::Bits64; 2];
    assert_eq!(case.expected()[0].last(), Some(&5));
    case.check(&kernels, 1);
    case.map = Some(Vec::new());
    assert_eq!(case.expected()[0].last(), Some(&0));
    case.check(&kernels, 2);
}

/// More slots than a block sorts for all, and the most experts: blocks have parts of them, of which the last is short.
#[test]
fn many_slots_are_sorted_by_several_blocks() {
    let Some(compiler) = compiler() else { return };
    let kernels = arranging(&compiler);
    let mut generator = ChaCha8Rng::seed_from_u64(12);
    for (experts, tokens) in [(MAX_EXPERTS, MAX_ALONE / 8 + 1), (EXPERTS, MAX_ALONE / 8 + 45)] {
        let mut case = Case::new(tokens, 8, |_| drawn(&mut generator, experts));
        (case.shape.experts, case.shape.hidden) = (experts, 8);
        assert!(case.shape.count_bytes() > 0);
        case.check(&kernels, experts as u64);
    }
    let mut one = Case::new(MAX_ALONE / 4 + 9, 4, |_| 0);
    one.shape.hidden = 8;
    one.check(&kernels, 4);
}

/// The most slots that every block sorts by itself.
#[test]
fn the_largest_arrangement_by_every_block_fits() {
    let Some(compiler) = compiler() else { return };
    let kernels = arranging(&compiler);
    let mut generator = ChaCha8Rng::seed_from_u64(14);
    let mut case = Case::new(MAX_ALONE / 32, 32, |_| drawn(&mut generator, EXPERTS));
    case.shape.hidden = 8;
    assert_eq!(case.shape.count_bytes(), 0);
    let shape = MixtureShape {
        tokens: MAX_SLOTS / 32,
        ..case.shape
    };
    assert_eq!(shape.check(), Ok(()));
    case.check(&kernels, 5);
}

#[test]
fn sizes_beyond_the_kernels_are_refused() {
    let shape = Case::new(4, 4, |_| 0).shape;
    let refused = |shape: MixtureShape| shape.check().unwrap_err().to_string();
    assert!(
        refused(MixtureShape {
            tokens: MAX_SLOTS / 4 + 1,
            ..shape
        })
        .starts_with("the number of tokens times experts of each is 1048580")
    );
    assert!(
        refused(MixtureShape {
            experts: 1025,
            ..shape
        })
        .starts_with("the number of experts is 1025")
    );
    let many = MixtureShape {
        experts_a_token: 33,
        ..shape
    };
    assert!(refused(many).starts_with("the number of experts of a token is 33"));
    assert!(refused(MixtureShape { hidden: 12, ..shape }).starts_with("tokens of 12 values"));
}

/// The sum of a token's column in the order of the kernel.
fn summed(terms: &[(f32, f32)]) -> f32 {
    let mut sums = [0.0_f32; 4];
    for (index, (weight, result)) in terms.iter().enumerate() {
        sums[index % 4] += result * weight;
    }
    ((sums[0] + sums[1]) + sums[2]) + sums[3]
}

fn encode(values: &[f32], format: OutputFormat) -> Vec<u8> {
    FloatTensor::round(format, 1, values.len(), values).bytes
}

fn rounded(value: f32, format: OutputFormat) -> f32 {
    match format {
        OutputFormat::F16 => f16::from_f32(value).to_f32(),
        OutputFormat::Bf16 => bf16::from_f32(value).to_f32(),
        OutputFormat::F32 => value,
    }
}

#[test]
fn results_are_added_up_in_their_order() {
    let Some(compiler) = compiler() else { return };
    let mut generator = ChaCha8Rng::seed_from_u64(13);
    let formats = [OutputFormat::F16, OutputFormat::Bf16, OutputFormat::F32];
    for (turn, output) in formats.into_iter().enumerate() {
        let kernel = Read::new(&compiler, mixture::combine(output));
        // The last has more columns than a block.
        for (tokens, experts_a_token, hidden) in [
            (1, 1, 8),
            (3, 4, 24),
            (7, 8, 16),
            (5, 6, 40),
            (2, 13, 8),
            (2, 3, 1032),
        ] {
            let weight_format = formats[(turn + experts_a_token) % 3];
            let shape = MixtureShape {
                tokens,
                experts_a_token,
                experts: EXPERTS,
                hidden,
            };
            let slots = shape.slots();
            let results: Vec<f32> = (0..slots * hidden)
                .map(|_| generator.random_range(-300.0..300.0))
                .collect();
            let weights: Vec<f32> = (0..slots)
                .map(|_| rounded(generator.random_range(-1.0..1.0), weight_format))
                .collect();
            let rows: Vec<i32> = (0..slots)
                .map(|_| generator.random_range(mixture::ROW_OF_WRONG..slots as i32))
                .collect();
            let mut memory = Memory::new();
            let buffers = CombineBuffers {
                results: memory.allocate(encode(&results, OutputFormat::F32)),
                rows: memory.allocate(bytemuck::cast_slice(&rows).to_vec()),
                weights: memory.allocate(encode(&weights, weight_format)),
                weight_format,
                output: memory.allocate_unwritten(encode(&vec![0.0; tokens * hidden], output).len()),
            };
            let launch = shape.combination(&buffers).unwrap();
            gauntlet_ptx::run(&[kernel.launch(&launch)], &mut memory, turn as u64).unwrap();
            let sum = |at: usize| {
                let terms: Vec<_> = (0..experts_a_token)
                    .map(|index| at / hidden * experts_a_token + index)
                    .map(|slot| match usize::try_from(rows[slot]) {
                        Ok(row) => (weights[slot], results[row * hidden + at % hidden]),
                        Err(_) if rows[slot] == mixture::ROW_OF_WRONG => (weights[slot], f32::NAN),
                        Err(_) => (weights[slot], 0.0),
                    })
                    .collect();
                summed(&terms)
            };
            let sums: Vec<f32> = (0..tokens * hidden).map(sum).collect();
            let of = |bytes: &[u8]| FloatTensor {
                bytes: bytes.to_vec(),
                ..FloatTensor::round(output, 1, sums.len(), &sums)
            };
            let (found, expected) = (
                of(memory.contents(buffers.output).unwrap()),
                of(&encode(&sums, output)),
            );
            for at in 0..sums.len() {
                let [found, expected] = [found.get(at), expected.get(at)];
                assert!(
                    found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(),
                    "{found} instead of {expected} at {at} of {shape:?} in {output}, weights in {weight_format}"
                );
            }
        }
    }
}
