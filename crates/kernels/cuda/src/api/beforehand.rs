//! Which kernels are worth compiling beforehand: those that calls choose by themselves on Hopper.

use gauntlet_device::Arch;
use gauntlet_problems::{AttentionFormat, Form, OutputFormat, Packing, Scaling, TokenFormat};

use super::{AttentionShape, Choice, LayerShape, Planner, ProductShape, ServeError};
use crate::plan::{Target, Variant, mixture, repacking};

/// Multiprocessors of an H100 or H200 in SXM form.
const PROCESSORS: u32 = 132;

/// The architecture of these kernels.
pub const ARCH: Arch = Arch::Sm90a;

/// Kernels of layers and of attention that calls choose by themselves on an H100 or H200, each once.
///
/// # Errors
/// If a choice cannot be planned, which is an error of this crate.
pub fn kernels() -> Result<Vec<Variant>, ServeError> {
    let mut kernels = Vec::new();
    let mut add = |variant: &Variant| {
        if !kernels.contains(variant) {
            kernels.push(variant.clone());
        }
    };
    for output in [OutputFormat::Bf16, OutputFormat::F16, OutputFormat::F32] {
        add(&mixture::combine(output));
    }
    add(&mixture::arrange());
    add(&mixture::count());
    for tokens in [TokenFormat::Bf16, TokenFormat::F16] {
        add(&repacking::repack(tokens));
    }
    attention(&mut add)?;
    for (tokens, output) in layers() {
        for form in [Form::Plain, Form::Swiglu] {
            products(tokens, output, form, &mut add)?;
        }
    }
    Ok(kernels)
}

/// Tokens with the results that models want of them: their own format, and sums in f32 to which biases are added.
fn layers() -> [(TokenFormat, OutputFormat); 5] {
    [
        (TokenFormat::Bf16, OutputFormat::Bf16),
        (TokenFormat::Bf16, OutputFormat::F32),
        (TokenFormat::F16, OutputFormat::F16),
        (TokenFormat::F16, OutputFormat::F32),
        (TokenFormat::Nvfp4, OutputFormat::Bf16),
    ]
}

fn products(
    tokens: TokenFormat,
    output: OutputFormat,
    form: Form,
    add: &mut impl FnMut(&Variant),
) -> Result<(), ServeError> {
    let target = Target::hopper(PROCESSORS);
    let layer = |groups: usize| LayerShape {
        products: vec![ProductShape { n: 4096, k: 4096 }; groups],
        form,
        output,
        tokens,
    };
    for choice in [
        Choice::Automatic,
        Choice::Repacked(layer(1).packing(target)),
        Choice::Repacked(Packing::Canonical),
    ] {
        let plans = [
            Planner::new(layer(1), choice.clone(), target).plan(&[1])?,
            Planner::new(layer(1), choice.clone(), target).plan(&[16])?,
            Planner::new(layer(1), choice.clone(), target).plan(&[512])?,
            Planner::new(layer(8), choice, target).plan_routed(64)?,
        ];
        for plan in &plans {
            plan.plan().variants().into_iter().for_each(&mut *add);
        }
    }
    Ok(())
}

/// Decoding, few and many queries, with and without a mask.
fn attention(add: &mut impl FnMut(&Variant)) -> Result<(), ServeError> {
    for format in [AttentionFormat::Bf16, AttentionFormat::F16] {
        let output = match format {
            AttentionFormat::Bf16 => OutputFormat::Bf16,
            _ => OutputFormat::F16,
        };
        for (queries, keys) in [(1, 8192), (8, 8192), (512, 512), (4096, 4096)] {
            for (head_size, causal) in [(64, false), (64, true), (128, false), (128, true)] {
                let shape = AttentionShape {
                    batch: 1,
                    heads: 32,
                    kv_heads: 8,
                    queries,
                    keys,
                    head_size,
                    causal,
                    format,
                    scaling: Scaling::PerHead,
                    output,
                };
                let planned = shape.plan(Target::hopper(PROCESSORS))?;
                planned.plan.variants().into_iter().for_each(&mut *add);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Source;

    #[test]
    fn every_kernel_of_a_layer_is_there_once() {
        let kernels = kernels().unwrap();
        for source in [
            Source::Swapped,
            Source::Narrow,
            Source::Tokens,
            Source::Arrange,
            Source::Count,
            Source::Combine,
            Source::Repack,
            Source::AttentionSpecialised,
        ] {
            assert!(kernels.iter().any(|kernel| kernel.source == source), "{source:?}");
        }
        for (index, kernel) in kernels.iter().enumerate() {
            assert!(!kernels[..index].contains(kernel), "{kernel}");
            assert!(kernel.source.runs_on(ARCH));
        }
    }
}
