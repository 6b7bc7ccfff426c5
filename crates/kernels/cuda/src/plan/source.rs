//! The kernels, and the one that a schedule selects.

use gauntlet_device::Arch;
use gauntlet_problems::resources::is_narrow;
use gauntlet_problems::{Roles, Schedule};

use super::PlanError;

/// A source file under `kernels/`; each holds one kernel, named as the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Tokens are the rows of a tile: the staircase.
    Rows,
    /// Weights are the rows of a tile, taken through registers; tokens are the columns.
    Swapped,
    /// Converts the tokens of the swapped kernel, before it.
    Tokens,
    /// Sorts the tokens of a mixture of experts by their experts, and copies them in that order.
    Arrange,
    /// Counts them before it, if there are many.
    Count,
    /// Adds up the results of each token's experts.
    Combine,
    /// Repacks weights for tokens of 16 bits.
    Repack,
    /// At most sixteen tokens a group: bound by reading the weights.
    Narrow,
    /// As the swapped kernel, by warps that all do the same work, without Hopper's instructions.
    Unified,
    /// By Blackwell's matrix unit, which multiplies NVFP4 as it is.
    Native,
    /// Attention by warps that all do the same work: the staircase.
    AttentionUnified,
    /// Attention by one warp that loads and warp groups that multiply.
    AttentionSpecialised,
    /// Merges what blocks of the specialised kernel leave of the parts of a tile's keys, after it.
    AttentionMerge,
    /// Attention with all keys in shared memory together, split over a cluster.
    AttentionResident,
}

impl Source {
    /// Whether its instructions exist on an architecture. Kernels by `mma.sync` and `cp.async` are built for every one from
    /// sm_80 on, the native one for sm_100a alone, and the others for sm_90a alone.
    pub fn runs_on(self, arch: Arch) -> bool {
        match self {
            Self::Tokens | Self::Narrow | Self::Unified | Self::AttentionUnified => {
                matches!(arch, Arch::Sm80 | Arch::Sm89 | Arch::Sm90a | Arch::Sm100a)
            }
            Self::Rows
            | Self::Swapped
            | Self::Arrange
            | Self::Count
            | Self::Combine
            | Self::Repack
            | Self::AttentionSpecialised
            | Self::AttentionMerge
            | Self::AttentionResident => arch == Arch::Sm90a,
            Self::Native => arch == Arch::Sm100a,
        }
    }

    /// The kernel of a GEMM that a schedule selects.
    pub(super) fn selected(schedule: &Schedule, arch: Arch) -> Self {
        match schedule.roles {
            _ if arch == Arch::Sm100a => Self::Native,
            _ if !schedule.swap_ab => Self::Rows,
            _ if is_narrow(schedule) => Self::Narrow,
            Roles::Unified => Self::Unified,
            Roles::Specialised => Self::Swapped,
        }
    }

    /// Checks that the kernel has its instructions on an architecture.
    ///
    /// # Errors
    /// Names the parameter that would select another kernel, or the architecture if no kernel is built for it.
    pub(super) fn check(self, schedule: &Schedule, arch: Arch) -> Result<(), PlanError> {
        if self.runs_on(arch) {
            return Ok(());
        }
        if !Self::Unified.runs_on(arch) {
            return Err(PlanError::Architecture {
                arch,
                kernel: self.entry(),
            });
        }
        let why = format!(
            "the {} kernel needs a Hopper GPU, and this one runs the kernels for {arch}",
            self.entry()
        );
        Err(match self {
            Self::Rows => PlanError::word("swap-ab", schedule.swap_ab, why, "choose true"),
            _ => PlanError::word("roles", schedule.roles, why, "choose unified"),
        })
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_problems::{Form, Operation, Tile};

    use super::*;
    use crate::plan::{Target, fixture, plan};

    #[test]
    fn words_choose_the_kernel() {
        let chosen = |swap_ab, roles, m, n| {
            let schedule = Schedule {
                tile: Tile { m, n, k: 128 },
                swap_ab,
                roles,
                ..Schedule::baseline()
            };
            assert_eq!(Source::selected(&schedule, Arch::Sm100a), Source::Native);
            Source::selected(&schedule, Arch::Sm90a)
        };
        for (roles, wide) in [
            (Roles::Specialised, Source::Swapped),
            (Roles::Unified, Source::Unified),
        ] {
            assert_eq!(chosen(false, roles, 32, 16), Source::Rows);
            assert_eq!(chosen(true, roles, 32, 16), Source::Narrow);
            assert_eq!(chosen(true, roles, 16, 8), Source::Narrow);
            assert_eq!(chosen(true, roles, 64, 16), wide);
            assert_eq!(chosen(true, roles, 32, 24), wide);
        }
    }

    #[test]
    fn what_needs_hopper_is_refused_elsewhere_with_the_word_that_chooses_another_kernel() {
        let message = |schedule: &Schedule, arch| {
            let target = Target {
                arch,
                ..Target::hopper(132)
            };
            let gemm = Operation::GroupedGemm(fixture::gemm(&[[4, 64, 256]], Form::Plain));
            plan(&gemm, schedule, target).unwrap_err().to_string()
        };
        let rows = Schedule::baseline();
        let swapped = Schedule {
            swap_ab: true,
            roles: Roles::Specialised,
            ..Schedule::baseline()
        };
        for arch in [Arch::Sm80, Arch::Sm89] {
            assert_eq!(
                message(&rows, arch),
                format!(
                    "swap-ab = false: the rows kernel needs a Hopper GPU, and this one runs the kernels for {arch}; choose true"
                )
            );
            assert_eq!(
                message(&swapped, arch),
                format!(
                    "roles = specialised: the swapped kernel needs a Hopper GPU, and this one runs the kernels for {arch}; choose unified"
                )
            );
        }
    }
}
