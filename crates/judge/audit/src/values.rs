//! What is special about the values that a task draws.

use gauntlet_task::{Case, TaskSizes};
use gauntlet_tensors::{Tensor, TensorSpec};

use crate::case::SEEDS;
use crate::made::values;
use crate::operands::{Draw, drawn};

/// Draws by which a small set of inputs shows itself.
const REPEATS: u64 = 12;

/// Elements below which inputs may be alike by chance.
const MANY: usize = 64;

/// How many different sets of inputs a number of seeds draws, and that number; none if each seed draws its own. None as well if all
/// seeds draw the same, which the task itself remarks.
pub(crate) fn drawn_twice(case: &Case) -> Result<Option<[usize; 2]>, String> {
    let sizes: &dyn TaskSizes = &*case.sizes;
    let inputs = sizes.inputs();
    if inputs.iter().map(TensorSpec::elements).sum::<usize>() < MANY {
        return Ok(None);
    }
    let mut different: Vec<Vec<Tensor>> = Vec::new();
    for seed in 0..REPEATS {
        let drawn = drawn(sizes, case.inputs, SEEDS + seed)?;
        if !different.contains(&drawn) {
            different.push(drawn);
        }
    }
    let count = different.len();
    Ok((count > 1 && count < REPEATS as usize).then_some([count, REPEATS as usize]))
}

/// What is special about the values of inputs, so that many a wrong kernel is right for them.
pub(crate) fn values_of_inputs(draws: &[Draw]) -> Vec<String> {
    let mut notes = Vec::new();
    for (index, first) in draws[0].tensors.iter().enumerate() {
        if !first.spec.data_type.has_nan() || first.len() < MANY {
            continue;
        }
        let of_draw = |draw: &Draw| values(&draw.tensors[index]);
        let all = |property: &dyn Fn(&[f64]) -> bool| draws.iter().all(|draw| property(&of_draw(draw)));
        let zeros = |values: &[f64]| values.iter().filter(|value| **value == 0.0).count();
        let name = &first.spec.name;
        if all(&|values| values.iter().all(|value| *value == values[0])) {
            notes.push(format!(
                "all elements of `{name}` are alike: a kernel that takes one for another passes; draw each by itself"
            ));
        } else if all(&|values| values.is_sorted()) {
            notes.push(format!(
                "`{name}` is sorted in every draw: a kernel that relies on it passes; draw its elements in any order"
            ));
        } else if all(&|values| 10 * zeros(values) >= 9 * values.len()) {
            notes.push(format!(
                "`{name}` is zero in nine of ten elements or more: few values are tried; draw more that are not"
            ));
        }
    }
    notes
}
