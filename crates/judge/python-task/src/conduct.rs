//! What a reference does with the memory of its inputs.

use gauntlet_audit::NullKernel;
use gauntlet_task::Remark;
use gauntlet_tensors::TensorSpec;

use crate::protocol::CaseTensors;

/// What the reference does with the memory of its inputs, and which types its check takes; `tells_views` if nothing else does.
pub(crate) fn of_memory(on: &str, tensors: &CaseTensors, tells_views: bool) -> Vec<Remark> {
    let noted = |name, text| Remark {
        name,
        input: None,
        text,
        is_blind: false,
    };
    let changed = tensors.changed.iter().map(|input| {
        noted(
            "changed-input",
            format!(
                "{on}, the reference changes its input `{input}`: a kernel that does the same is refused, and who calls the reference \
                 first hands kernels other values; let it work on a copy"
            ),
        )
    });
    let narrower = tensors.narrower.iter().map(|[output, kind]| {
        noted(
            "narrower-type",
            format!(
                "{on}, the task's own check takes `{output}` in {kind}, which is narrower than the reference's: a kernel may write \
                 less; let the check compare types if that is not meant"
            ),
        )
    });
    let is_lent = |spec: &TensorSpec| tensors.lent.iter().any(|[output, _]| *output == spec.name);
    let lent = tensors
        .lent
        .iter()
        .filter(|_| tells_views)
        .map(|[output, input]| Remark {
            is_blind: tensors.outputs.iter().all(is_lent),
            ..noted(
                NullKernel::View.name(),
                format!(
                    "{on}, {}",
                    NullKernel::View.sentence(&format!("`{output}` lies in the memory of `{input}`"))
                ),
            )
        });
    changed.chain(narrower).chain(lent).collect()
}
