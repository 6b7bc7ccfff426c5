//! Results that are nothing but the elements of an input in the order of a view.

use gauntlet_tensors::Tensor;

/// Dimensions up to which every order of the axes is tried.
const MOST_AXES: usize = 5;

/// Which view of an input a result is, as the end of a sentence about it; none if it is no view.
pub fn view_of(result: &Tensor, input: &Tensor) -> Option<String> {
    let alike = result.spec.data_type == input.spec.data_type && result.len() == input.len();
    // Of one value everywhere, nothing can be said.
    if !alike || is_uniform(result) {
        return None;
    }
    if result.bytes == input.bytes {
        return Some("with the same elements in the same order".to_owned());
    }
    let axes = input.spec.shape.len();
    if axes > MOST_AXES {
        return None;
    }
    let mut orders = permutations(axes).into_iter();
    let found = orders.any(|order| {
        let shape: Vec<_> = order.iter().map(|axis| input.spec.shape[*axis]).collect();
        shape == result.spec.shape && is_in_order(result, input, &order)
    });
    found.then(|| "with its axes in another order".to_owned())
}

fn is_uniform(tensor: &Tensor) -> bool {
    let element = tensor.spec.data_type.bytes();
    tensor
        .bytes
        .chunks(element)
        .all(|own| own == &tensor.bytes[..element])
}

/// Whether a tensor holds the same at every place of an axis.
pub(crate) fn is_repeated(tensor: &Tensor, axis: usize) -> bool {
    let inner: usize = tensor.spec.shape[axis + 1..].iter().product();
    let place = inner * tensor.spec.data_type.bytes();
    let blocks = tensor.bytes.chunks(place * tensor.spec.shape[axis]);
    blocks
        .into_iter()
        .all(|block| block[place..] == block[..block.len() - place])
}

/// All orders of this many axes.
fn permutations(axes: usize) -> Vec<Vec<usize>> {
    if axes == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for shorter in permutations(axes - 1) {
        for place in 0..axes {
            let mut order = shorter.clone();
            order.insert(place, axes - 1);
            all.push(order);
        }
    }
    all
}

/// Whether the elements of a result are those of the input with its axes in this order.
fn is_in_order(result: &Tensor, input: &Tensor, order: &[usize]) -> bool {
    let element = input.spec.data_type.bytes();
    let shape = &input.spec.shape;
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    let mut place = vec![0; order.len()];
    let mut at = 0;
    for own in result.bytes.chunks(element) {
        if own != &input.bytes[at * element..][..element] {
            return false;
        }
        for (index, axis) in order.iter().enumerate().rev() {
            place[index] += 1;
            at += strides[*axis];
            if place[index] < shape[*axis] {
                break;
            }
            at -= place[index] * strides[*axis];
            place[index] = 0;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use gauntlet_tensors::{DataType, TensorSpec};

    use super::*;

    fn tensor(shape: &[usize], values: impl IntoIterator<Item = usize>) -> Tensor {
        let values = values.into_iter().map(|value| value as f64);
        Tensor::of(TensorSpec::new("x", DataType::F32, shape), values)
    }

    #[test]
    fn a_view_is_told_by_its_elements() {
        let input = tensor(&[2, 3, 4], 0..24);
        let turned = (0..24).map(|index| {
            let (k, i, j) = (index / 6, index / 3 % 2, index % 3);
            i * 12 + j * 4 + k
        });
        let turned = tensor(&[4, 2, 3], turned);
        assert_eq!(
            view_of(&turned, &input).unwrap(),
            "with its axes in another order"
        );
        let mut other = turned;
        other.set(7, 99.0);
        assert_eq!(view_of(&other, &input), None);
        assert!(
            view_of(&tensor(&[24], 0..24), &input)
                .unwrap()
                .contains("same order")
        );
        assert_eq!(view_of(&tensor(&[2], [1, 1]), &tensor(&[2], [1, 1])), None);
    }

    #[test]
    fn the_axes_along_which_a_tensor_repeats_are_told() {
        let repeats = |values| [0, 1, 2].map(|axis| is_repeated(&tensor(&[2, 3, 2], values), axis));
        assert_eq!(
            repeats([0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]),
            [true, false, false]
        );
        assert_eq!(
            repeats([0, 1, 0, 1, 0, 1, 4, 5, 4, 5, 4, 5]),
            [false, true, false]
        );
        assert_eq!(
            repeats([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
            [false, false, true]
        );
    }

    #[test]
    fn every_order_of_axes_is_tried_once() {
        let mut orders = permutations(4);
        orders.sort();
        orders.dedup();
        assert_eq!(orders.len(), 24);
    }
}
