//! An input that the coordinator writes into a held worker's memory.

use std::io;

use gauntlet_calls::seal;
use gauntlet_tensors::Tensor;

use crate::memory::Pieces;
use crate::protocol::Place;

/// An input that is written into a held worker's memory.
#[derive(Debug, Clone)]
pub struct Operand {
    /// Its values.
    pub tensor: Tensor,
    /// Bytes between neighbours in each dimension of what the kernel is given; empty if it is row-major.
    pub strides: Vec<i64>,
}

impl Operand {
    /// Where to write it. Only the task's layout is accepted: a worker that could name another one would have its input
    /// transposed by the coordinator while no clock runs. Kernels of a `row_major` worker are given row-major tensors
    /// whatever the task's layout is.
    pub(crate) fn pieces(&self, place: &Place, row_major: bool) -> io::Result<Pieces> {
        let (address, named) = place
            .split_first()
            .map_or((None, &[][..]), |(first, rest)| (Some(first), rest));
        let there = Pieces::of(place, &self.tensor.spec)?;
        if named == self.strides || row_major && named.is_empty() {
            return Ok(there);
        }
        // The same layout can be named in several ways.
        let wanted: Place = address.into_iter().chain(&self.strides).copied().collect();
        if Pieces::of(&wanted, &self.tensor.spec)? == there {
            return Ok(there);
        }
        let (name, strides) = (&self.tensor.spec.name, &self.strides);
        Err(io::Error::other(format!(
            "the worker gives strides {named:?} for `{name}`, and the task lays it out with {strides:?} (none: row-major)"
        )))
    }

    /// Seals what is written at an address, which is part of this operand at that place.
    pub(crate) fn seal(key: u64, place: &Place) -> impl Fn(u64, &mut [u8]) -> io::Result<()> + Sync {
        let begin = place.first().copied().unwrap_or_default() as u64;
        move |address, bytes| {
            let offset = address
                .checked_sub(begin)
                .ok_or_else(|| io::Error::other("a tensor lies before its address"))?;
            seal::apply(key, begin, offset as usize, bytes);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_tensors::{DataType, TensorSpec};

    use super::*;

    #[test]
    fn operands_are_written_in_the_layout_of_the_task_only() {
        let listed = |pieces: io::Result<Pieces>| Ok::<Vec<_>, io::Error>(pieces?.iter(64).collect());
        let spec = TensorSpec::new("x", DataType::F32, [2, 3]);
        let operand = |strides: &[i64]| Operand {
            tensor: Tensor::filled(spec.clone(), 0),
            strides: strides.to_vec(),
        };
        let of = |strides: &[i64], place: &[i64]| listed(operand(strides).pieces(&place.to_vec(), false));
        assert_eq!(of(&[], &[64]).unwrap(), [(64, 24)]);
        assert!(of(&[], &[64, 4, 8]).is_err(), "column by column");
        assert!(of(&[], &[64, 0, 4]).is_err(), "each row over the one before");
        assert_eq!(of(&[4, 8], &[64, 4, 8]).unwrap().len(), 6);
        assert!(of(&[4, 8], &[64, 4, 0]).is_err());
        assert!(of(&[], &[]).is_err(), "no address");
        assert_eq!(of(&[], &[64, 12, 4]).unwrap(), [(64, 24)], "row-major in words");
        assert!(
            of(&[4, 8], &[64]).is_err(),
            "row-major in place of column by column"
        );
        // What a library is given, whatever the task's own layout is.
        let library = operand(&[4, 8]).pieces(&vec![64], true);
        assert_eq!(listed(library).unwrap(), [(64, 24)]);
        assert!(operand(&[]).pieces(&vec![64, 4, 8], true).is_err());
    }
}
