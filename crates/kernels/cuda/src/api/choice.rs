//! Which schedule a call gets.

mod before_hopper;
mod blackwell;
mod hopper;

use gauntlet_device::Arch;
use gauntlet_problems::{Form, GroupedGemm, Operation, Packing, Schedule};

use crate::plan::{Target, has_one_depth};

/// Most tokens of a group that the narrow kernel computes without reading weights twice.
const NARROW: usize = 16;

/// Which schedule a call gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Choice {
    /// Chosen by the token counts: the narrow kernel if tokens are NVFP4, no group has more than 16 of them and its blocks run in at most
    /// two waves, else the swapped kernel with balanced work. GPUs before Hopper have the unified kernel in its place, and
    /// the narrow one for every group of few tokens, as layers on newer GPUs do. There are few variants, so new token counts
    /// rarely have to wait for the compiler.
    #[default]
    Automatic,
    /// The same for weights that lie in this order, made by [`pack_as`](crate::packing::pack_as);
    /// [`LayerShape::packing`](super::LayerShape::packing) says which is best. A call whose kernel does not read it is refused.
    Repacked(Packing),
    /// This one, always.
    Fixed(Schedule),
}

impl Choice {
    /// The schedule for a problem on a GPU.
    pub(super) fn schedule(&self, gemm: &GroupedGemm, target: Target) -> Schedule {
        match self {
            Self::Automatic => automatic(gemm, target),
            Self::Repacked(packing) => Schedule {
                packing: *packing,
                ..automatic(gemm, target)
            },
            Self::Fixed(schedule) => schedule.clone(),
        }
    }

    /// The schedule for a call of a layer that is planned on the device, which only the swapped kernel computes.
    pub(super) fn routed_schedule(&self, layer: &GroupedGemm) -> Schedule {
        match self {
            Self::Automatic => hopper::swapped(layer.form),
            Self::Repacked(packing) => Schedule {
                packing: *packing,
                ..hopper::swapped(layer.form)
            },
            Self::Fixed(schedule) => schedule.clone(),
        }
    }
}

/// The best order of repacked weights. Tokens of 16 bits always take the swapped kernel on Hopper, which then needs no launch
/// before its own.
pub(super) fn packing(layer: &GroupedGemm, target: Target) -> Packing {
    match target.arch {
        Arch::Sm90a if layer.tokens.is_half() && has_one_depth(layer) => Packing::Steps,
        _ => Packing::Fragments,
    }
}

fn automatic(gemm: &GroupedGemm, target: Target) -> Schedule {
    let target = target.for_problem(&Operation::GroupedGemm(gemm.clone()));
    match target.arch {
        Arch::Sm80 | Arch::Sm89 => before_hopper::automatic(gemm, target),
        Arch::Sm100a => blackwell::automatic(gemm, target),
        _ => hopper::automatic(gemm, target.processors),
    }
}

/// Rows of a tile, which in the dual form has as many of each of two weights.
fn rows(rows: usize, form: Form) -> usize {
    match form {
        Form::Plain => rows,
        Form::Swiglu => rows / 2,
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_device::Device;
    use gauntlet_problems::{OutputFormat, TokenFormat};

    use super::*;
    use crate::plan::{self, Source};

    pub(super) const PROCESSORS: u32 = 132;

    pub(super) fn gemm(tokens: &[usize], [n, k]: [usize; 2], form: Form) -> GroupedGemm {
        GroupedGemm::new(form, tokens.iter().map(|&m| [m, n, k]))
    }

    #[test]
    fn repacked_weights_are_in_steps_where_tokens_need_no_launch() {
        let hopper = Target::hopper(PROCESSORS);
        let before = Target::of(&Device::builtin("a100").unwrap()).unwrap();
        for (tokens, depths, target, packing) in [
            (TokenFormat::Bf16, [4096, 4096], hopper, Packing::Steps),
            (TokenFormat::F16, [4096, 4096], hopper, Packing::Steps),
            (TokenFormat::Bf16, [4096, 2048], hopper, Packing::Fragments),
            (TokenFormat::Nvfp4, [4096, 4096], hopper, Packing::Fragments),
            (TokenFormat::Bf16, [4096, 4096], before, Packing::Fragments),
        ] {
            let mut layer = GroupedGemm {
                tokens,
                ..gemm(&[1, 20], [4096, 4096], Form::Plain)
            };
            layer.groups[1].k = depths[1];
            assert_eq!(super::packing(&layer, target), packing);
            for other in [Packing::Steps, Packing::Fragments] {
                let schedule = Choice::Repacked(other).schedule(&layer, target);
                assert_eq!(schedule.packing, other);
                let plan = plan::plan(&Operation::GroupedGemm(layer.clone()), &schedule, target);
                // Fragments are read by every kernel, steps where they are best.
                match plan {
                    Ok(plan) if plan.variant().source == Source::Swapped => {
                        assert_eq!(plan.preparation().is_none(), other == Packing::Steps);
                    }
                    Ok(_) => assert_eq!(other, Packing::Fragments),
                    Err(error) => {
                        assert_eq!((other, packing), (Packing::Steps, Packing::Fragments));
                        assert!(error.to_string().starts_with("packing = steps: "), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn gpus_before_hopper_and_after_it_have_a_kernel_for_every_call() {
        for name in ["a100", "l4", "b200"] {
            // As layers are planned.
            let target = Target::of(&Device::builtin(name).unwrap())
                .unwrap()
                .for_common_kernels();
            for form in [Form::Plain, Form::Swiglu] {
                for (format, output) in [
                    (TokenFormat::Nvfp4, OutputFormat::F16),
                    (TokenFormat::Bf16, OutputFormat::Bf16),
                ] {
                    for (tokens, source) in [
                        ([0, 1], Source::Narrow),
                        ([3, 16], Source::Narrow),
                        ([1, 17], Source::Unified),
                        ([64, 8], Source::Unified),
                        ([0, 5000], Source::Unified),
                    ] {
                        let gemm = GroupedGemm {
                            tokens: format,
                            output,
                            ..gemm(&tokens, [4096, 7168], form)
                        };
                        for choice in [Choice::Automatic, Choice::Repacked(Packing::Fragments)] {
                            let schedule = choice.schedule(&gemm, target);
                            let plan = plan::plan(&Operation::GroupedGemm(gemm.clone()), &schedule, target);
                            let plan = plan.unwrap_or_else(|error| panic!("{name}, {schedule}: {error}"));
                            assert_eq!(plan.variant().source, source, "{name}, {tokens:?}");
                            assert!(plan.variants().iter().all(|variant| !variant.overlaps()));
                        }
                    }
                }
            }
        }
    }
}
