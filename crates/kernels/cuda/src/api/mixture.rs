//! The steps of a mixture of experts before and after its products, on memory and streams that belong to the caller.

use std::rc::Rc;

use gauntlet_problems::OutputFormat;

use super::layer::{check_address, check_aligned};
use super::{ArrangeBuffers, CombineBuffers, Library, MixtureShape, Queue, ServeError};
use crate::engine::Loaded;
use crate::plan::{Launch, Pass, PlanError, Source, Target, mixture};
use gauntlet_cuda::driver::RelaxedCapture;

/// The kernels before and after the products of a mixture of experts, ready on a device. The library keeps them, so a graph that
/// holds their launches needs no more than the library.
pub struct Mixture {
    shape: MixtureShape,
    arrange: Rc<Loaded>,
    count: Rc<Loaded>,
    combine: Rc<Loaded>,
    /// The number of the GPU.
    ordinal: usize,
}

impl Library {
    /// A mixture of experts of these sizes, with sums of this format: its kernels are loaded now, unless they are already. A stream
    /// may be captured meanwhile.
    ///
    /// # Errors
    /// If a size is beyond what the kernels take, the GPU is no Hopper, or a kernel does not compile.
    pub fn mixture(&self, shape: MixtureShape, output: OutputFormat) -> Result<Mixture, ServeError> {
        shape.check()?;
        let target = Target::of_gpu(self.device())?;
        if !Source::Arrange.runs_on(target.arch) {
            return Err(ServeError::Plan(PlanError::Architecture {
                arch: target.arch,
                kernel: Source::Arrange.entry(),
            }));
        }
        let _relaxed = RelaxedCapture::new(self.context())?;
        let [arrange, count, combine] = [mixture::arrange(), mixture::count(), mixture::combine(output)];
        self.load_variants([&arrange, &count, &combine])?;
        Ok(Mixture {
            shape,
            arrange: self.kernel(&arrange)?,
            count: self.kernel(&count)?,
            combine: self.kernel(&combine)?,
            ordinal: self.device().ordinal,
        })
    }
}

impl Queue {
    /// Puts a launch on the stream, or two if there are many tokens, that sorts the tokens of a mixture of experts by their experts,
    /// those of one expert in their order, and copies them in this order. Nothing waits for the device; the call may be captured.
    ///
    /// The id -1, and those of experts that are elsewhere, get no row; other ids that stand for no expert are marked among the rows,
    /// so that [`combine`](Self::combine) makes their tokens NaN.
    ///
    /// # Errors
    /// If an address is null or not aligned, the mixture is for another GPU, or the driver reports an error.
    ///
    /// # Safety
    /// The buffers must be device memory of the mixture's sizes, and live until the stream's work is done or as long as a graph
    /// holds the call; the library too.
    pub unsafe fn arrange(&self, mixture: &Mixture, buffers: &ArrangeBuffers) -> Result<(), ServeError> {
        check_arranged(&mixture.shape, buffers)?;
        // SAFETY: the caller promises size and lifetime of the memory; the parameters are made for these kernels.
        unsafe { self.launch_mixture(mixture, &mixture.arrange, mixture.shape.arrangement(buffers)) }
    }

    /// Puts a launch on the stream that adds up the results of each token's experts, multiplied by their weights: in f32 by four
    /// sums, of every fourth expert, which are then added from the first to the last. Experts without a row count as 0.
    ///
    /// # Errors
    /// As [`arrange`](Self::arrange).
    ///
    /// # Safety
    /// As [`arrange`](Self::arrange); the rows are those that it wrote.
    pub unsafe fn combine(&self, mixture: &Mixture, buffers: &CombineBuffers) -> Result<(), ServeError> {
        let Some(launch) = mixture.shape.combination(buffers) else {
            return Ok(());
        };
        check_combined(&mixture.shape, buffers)?;
        // SAFETY: as in `arrange`.
        unsafe { self.launch_mixture(mixture, &mixture.combine, [launch]) }
    }

    /// # Safety
    /// The launches are the mixture's, and the memory that their parameters point to has the sizes that its kernels assume.
    unsafe fn launch_mixture(
        &self,
        mixture: &Mixture,
        main: &Loaded,
        launches: impl IntoIterator<Item = Launch>,
    ) -> Result<(), ServeError> {
        self.check_device(mixture.ordinal)?;
        self.stream().context().make_current()?;
        for launch in launches {
            let kernel = match launch.pass {
                Pass::Preparation => &mixture.count,
                Pass::Main | Pass::Merging | Pass::Rest => main,
            };
            // SAFETY: the caller makes the same promise.
            unsafe { kernel.launch(&launch, self.stream()) }?;
        }
        Ok(())
    }
}

fn check_arranged(shape: &MixtureShape, buffers: &ArrangeBuffers) -> Result<(), ServeError> {
    check_aligned(|| "ends".to_owned(), buffers.ends, 4)?;
    if shape.slots() == 0 {
        return Ok(());
    }
    check_aligned(|| "ids".to_owned(), buffers.ids, buffers.ids_width.bytes() as u64)?;
    if let Some(map) = buffers.expert_map.filter(|map| map.len > 0) {
        check_aligned(|| "expert map".to_owned(), map.places, map.width.bytes() as u64)?;
    }
    for (name, address) in [("experts of rows", buffers.row_experts), ("rows", buffers.rows)] {
        check_aligned(|| name.to_owned(), address, 4)?;
    }
    if shape.count_bytes() > 0 {
        check_aligned(|| "counts".to_owned(), buffers.counts, 4)?;
    }
    check_address(|| "tokens".to_owned(), buffers.hidden)?;
    check_address(|| "tokens by rows".to_owned(), buffers.gathered)
}

fn check_combined(shape: &MixtureShape, buffers: &CombineBuffers) -> Result<(), ServeError> {
    if shape.slots() > 0 {
        check_address(|| "results".to_owned(), buffers.results)?;
        check_aligned(|| "rows".to_owned(), buffers.rows, 4)?;
        let bytes = match buffers.weight_format {
            OutputFormat::F16 | OutputFormat::Bf16 => 2,
            OutputFormat::F32 => 4,
        };
        check_aligned(|| "weights".to_owned(), buffers.weights, bytes)?;
    }
    check_address(|| "output".to_owned(), buffers.output)
}

#[cfg(test)]
mod tests {
    use super::super::{ExpertMap, IndexWidth};
    use super::*;

    const SHAPE: MixtureShape = MixtureShape {
        tokens: 8,
        experts_a_token: 4,
        experts: 32,
        hidden: 64,
    };

    #[test]
    fn addresses_are_checked_by_name() {
        let buffers = ArrangeBuffers {
            ids: 8,
            ids_width: IndexWidth::Bits64,
            expert_map: None,
            hidden: 16,
            ends: 4,
            row_experts: 4,
            rows: 4,
            gathered: 16,
            counts: 0,
        };
        assert_eq!(check_arranged(&SHAPE, &buffers), Ok(()));
        let refused = |change: &dyn Fn(&mut ArrangeBuffers)| {
            let mut buffers = buffers;
            change(&mut buffers);
            check_arranged(&SHAPE, &buffers).unwrap_err().to_string()
        };
        assert!(
            refused(&|buffers| buffers.ids = 4).starts_with("ids: the address 0x4 is not a multiple of 8")
        );
        assert!(refused(&|buffers| buffers.hidden = 8).starts_with("tokens: the address 0x8"));
        assert!(refused(&|buffers| buffers.rows = 0).starts_with("rows: the address is null"));
        let map = ExpertMap {
            places: 0,
            width: IndexWidth::Bits32,
            len: 4,
        };
        assert!(
            refused(&|buffers| buffers.expert_map = Some(map)).starts_with("expert map: the address is null")
        );
        // An empty map has no address in PyTorch, and without tokens nothing but the ends is there.
        let empty = Some(ExpertMap { len: 0, ..map });
        let empty = ArrangeBuffers {
            expert_map: empty,
            ..buffers
        };
        assert_eq!(check_arranged(&SHAPE, &empty), Ok(()));
        let none = MixtureShape { tokens: 0, ..SHAPE };
        assert_eq!(
            check_arranged(&none, &ArrangeBuffers { hidden: 0, ..buffers }),
            Ok(())
        );
    }

    #[test]
    fn weights_are_aligned_for_their_format() {
        let mut buffers = CombineBuffers {
            results: 16,
            rows: 4,
            weights: 2,
            weight_format: OutputFormat::Bf16,
            output: 16,
        };
        assert_eq!(check_combined(&SHAPE, &buffers), Ok(()));
        buffers.weight_format = OutputFormat::F32;
        let refusal = check_combined(&SHAPE, &buffers).unwrap_err().to_string();
        assert!(refusal.starts_with("weights: the address 0x2"), "{refusal}");
    }
}
