//! Instructions that a warp executes as a whole.

use crate::block::{Block, InFlight, WARP};
use crate::fault::Problem;
use crate::instruction::{
    Address, Element, GroupProduct, Left, Operand, Register, Shuffle, Vote, WarpOperation,
};
use crate::matrix::{DEPTH_BYTES, Descriptor, added, decoded, left, place_of_sum, right};
use crate::memory::aligned;
use crate::module::Kernel;

/// Bytes of a row of an 8×8 matrix.
const MATRIX_ROW: usize = 16;

/// One warp of a block.
pub(crate) struct Warp<'b> {
    pub block: &'b mut Block,
    /// Its number.
    pub index: usize,
    /// The instruction that it executes.
    pub at: usize,
    pub kernel: &'b Kernel,
    /// The lanes that execute it, as a mask.
    pub lanes: u32,
}

impl Warp<'_> {
    pub fn execute(&mut self, operation: &WarpOperation) -> Result<(), Problem> {
        match operation {
            WarpOperation::Synchronise | WarpOperation::SynchroniseLanes { .. } => Ok(()),
            WarpOperation::Elect { lane, one, .. } => {
                let elected = self.lanes.trailing_zeros() as usize;
                for index in self.taking_part() {
                    self.set(index, *lane, elected as u64);
                    self.set(index, *one, u64::from(index == elected));
                }
                Ok(())
            }
            WarpOperation::Vote { kind, to, from, .. } => {
                self.vote(*kind, *to, *from);
                Ok(())
            }
            WarpOperation::Reduce {
                function, to, from, ..
            } => {
                let values = self.taking_part().map(|lane| self.value(lane, *from));
                let combined = values.reduce(|left, right| function([left, right, 0, 0]));
                let lanes: Vec<usize> = self.taking_part().collect();
                lanes
                    .into_iter()
                    .for_each(|lane| self.set(lane, *to, combined.unwrap_or_default()));
                Ok(())
            }
            WarpOperation::Match {
                all, to, same, from, ..
            } => {
                let values = self.values(*from);
                let lanes: Vec<usize> = self.taking_part().collect();
                for lane in &lanes {
                    let equal = lanes.iter().filter(|other| values[**other] == values[*lane]);
                    let equal = equal.fold(0_u32, |mask, other| mask | 1 << other);
                    let found = if *all && equal != self.lanes { 0 } else { equal };
                    self.set(*lane, *to, found.into());
                    if let Some(same) = same {
                        self.set(*lane, *same, u64::from(equal == self.lanes));
                    }
                }
                Ok(())
            }
            WarpOperation::Shuffle {
                kind,
                to,
                is_in_range,
                from,
                lane,
                clamp,
                ..
            } => self.shuffle(*kind, (*to, *is_in_range), *from, [*lane, *clamp]),
            WarpOperation::LoadMatrices { to, from, transposed } => {
                self.load_matrices(to, *from, *transposed)
            }
            WarpOperation::StoreMatrices { to, from, transposed } => {
                self.store_matrices(*to, from, *transposed)
            }
            WarpOperation::Multiply {
                element,
                sums,
                left,
                right,
                before,
            } => {
                self.multiply(*element, sums, [left, right, before]);
                Ok(())
            }
            WarpOperation::MultiplyGroup(product) => self.multiply_group(product),
            WarpOperation::CommitProducts => {
                let products = &mut self.block.products[self.index];
                let open = std::mem::take(&mut products.open);
                products.closed.push(open);
                Ok(())
            }
            WarpOperation::WaitForProducts { left } => self.wait_for_products(*left as usize),
            WarpOperation::Tensor(_) | WarpOperation::PublishMap { .. } => {
                Err("tensor memory and tensor maps are not the warp's own".to_owned())
            }
        }
    }

    fn value(&self, lane: usize, operand: Operand) -> u64 {
        self.block.value(self.index * WARP + lane, operand)
    }

    fn set(&mut self, lane: usize, register: Register, bits: u64) {
        let mut registers = self.block.registers.of_mut(self.index * WARP + lane);
        registers.set(register, bits);
    }

    /// The operand's value in each lane, read before any lane writes.
    fn values(&self, operand: Operand) -> [u64; WARP] {
        std::array::from_fn(|lane| self.value(lane, operand))
    }

    fn words<const COUNT: usize>(&self, operands: &[Operand]) -> [[u32; COUNT]; WARP] {
        let word = |lane: usize, index: usize| {
            operands
                .get(index)
                .map_or(0, |operand| self.value(lane, *operand) as u32)
        };
        std::array::from_fn(|lane| std::array::from_fn(|index| word(lane, index)))
    }

    /// The numbers of the lanes that execute the instruction.
    fn taking_part(&self) -> impl Iterator<Item = usize> + use<> {
        let lanes = self.lanes;
        (0..WARP).filter(move |lane| lanes >> lane & 1 == 1)
    }

    fn vote(&mut self, kind: Vote, to: Register, from: Operand) {
        let set = self.taking_part().filter(|lane| self.value(*lane, from) != 0);
        let ballot = set.fold(0_u32, |ballot, lane| ballot | 1 << lane);
        let result = match kind {
            Vote::Any => u32::from(ballot != 0),
            Vote::All => u32::from(ballot == self.lanes),
            Vote::Uniform => u32::from(ballot == 0 || ballot == self.lanes),
            Vote::Ballot => ballot,
        };
        for lane in self.taking_part() {
            self.set(lane, to, result.into());
        }
    }

    /// As the PTX ISA defines `shfl.sync`: lanes are exchanged within segments, and a lane whose source is out of range
    /// keeps its own value.
    fn shuffle(
        &mut self,
        kind: Shuffle,
        (to, in_range): (Register, Option<Register>),
        from: Operand,
        [lane, clamp]: [Operand; 2],
    ) -> Result<(), Problem> {
        let (values, lanes, clamps) = (self.values(from), self.values(lane), self.values(clamp));
        for index in self.taking_part() {
            let (own, by) = (index as i64, (lanes[index] & 31) as i64);
            let (segment, clamp) = ((clamps[index] >> 8 & 31) as i64, (clamps[index] & 31) as i64);
            let most = own & segment | clamp & !segment;
            let (source, is_in_range) = match kind {
                Shuffle::Up => (own - by, own - by >= most),
                Shuffle::Down => (own + by, own + by <= most),
                Shuffle::Butterfly => (own ^ by, own ^ by <= most),
                Shuffle::Index => {
                    let source = own & segment | by & !segment;
                    (source, source <= most)
                }
            };
            let source = if is_in_range { source as usize } else { index };
            if self.lanes >> source & 1 == 0 {
                return Err(format!(
                    "lane {index} takes the value of lane {source}, which does not take part or has ended"
                ));
            }
            self.set(index, to, values[source]);
            if let Some(register) = in_range {
                self.set(index, register, is_in_range.into());
            }
        }
        Ok(())
    }

    /// The address of row `row` of matrix `matrix`, which one of the lanes provides.
    fn matrix_row(&self, address: Address, matrix: usize, row: usize) -> Result<u32, Problem> {
        let at = self
            .value(matrix * 8 + row, address.base)
            .wrapping_add(address.offset);
        aligned(at, MATRIX_ROW)?;
        self.block.own_address(at)
    }

    fn load_matrices(&mut self, to: &[Register], from: Address, transposed: bool) -> Result<(), Problem> {
        for (matrix, to) in to.iter().enumerate() {
            let mut rows = [[0; MATRIX_ROW]; 8];
            for (row, bytes) in rows.iter_mut().enumerate() {
                let place = self.matrix_row(from, matrix, row)?;
                bytes.copy_from_slice(self.block.shared.read(place, MATRIX_ROW)?);
            }
            for lane in 0..WARP {
                let half = |index: usize| {
                    let (row, column) = element_of_lane(lane, index, transposed);
                    u64::from(u16::from_le_bytes([
                        rows[row][2 * column],
                        rows[row][2 * column + 1],
                    ]))
                };
                self.set(lane, *to, half(0) | half(1) << 16);
            }
        }
        Ok(())
    }

    fn store_matrices(&mut self, to: Address, from: &[Operand], transposed: bool) -> Result<(), Problem> {
        for (matrix, from) in from.iter().enumerate() {
            for (lane, word) in self.values(*from).into_iter().enumerate() {
                for (index, half) in [word as u16, (word >> 16) as u16].into_iter().enumerate() {
                    let (row, column) = element_of_lane(lane, index, transposed);
                    let place = self.matrix_row(to, matrix, row)? + 2 * column as u32;
                    let thread = (self.index * WARP + lane) as u32;
                    self.block.shared.write(thread, place, &half.to_le_bytes())?;
                }
            }
        }
        Ok(())
    }

    fn multiply(&mut self, element: Element, sums: &[Register], [first, second, before]: [&[Operand]; 3]) {
        let rows = left(element, &self.words::<4>(first));
        let columns = right(element, &self.words::<2>(second));
        let before: Vec<_> = before.iter().map(|before| self.values(*before)).collect();
        let old = |lane: usize, index: usize| f32::from_bits(before[index][lane] as u32);
        self.add(sums, &rows, &columns, element.depth(), old);
    }

    /// Adds the product of sixteen rows and the columns to the previous sums.
    fn add(
        &mut self,
        sums: &[Register],
        rows: &[f32],
        columns: &[f32],
        depth: usize,
        old: impl Fn(usize, usize) -> f32,
    ) {
        for lane in 0..WARP {
            for (index, to) in sums.iter().enumerate() {
                let (row, column) = place_of_sum(lane, index);
                let sum = added(
                    old(lane, index),
                    &rows[row * depth..][..depth],
                    &columns[column * depth..][..depth],
                );
                self.set(lane, *to, u64::from(sum.to_bits()));
            }
        }
    }

    /// Computes the warp's sixteen of the warp group's 64 rows. The sums are available immediately, which a program
    /// must not rely on. The compiler is responsible for the registers until the wait; changes to shared memory are
    /// checked when the warp waits.
    fn multiply_group(&mut self, product: &GroupProduct) -> Result<(), Problem> {
        let descriptors: Vec<u64> = match &product.left {
            Left::Fragments(_) => vec![self.value(0, product.right)],
            Left::Descriptor(first) => vec![self.value(0, product.right), self.value(0, *first)],
        };
        let operands = self.operands(product, &descriptors)?;
        let (columns, rows) = operands.split_at(product.columns * DEPTH_BYTES);
        let columns = decoded(product.element, columns);
        let rows = match &product.left {
            Left::Fragments(words) => left(product.element, &self.words::<4>(words)),
            Left::Descriptor(_) => decoded(product.element, rows),
        };
        let adds = self.value(0, product.add) != 0;
        let before: Vec<_> = product
            .sums
            .iter()
            .map(|sum| self.values(Operand::Register(*sum)))
            .collect();
        let old = |lane: usize, index: usize| {
            if adds {
                f32::from_bits(before[index][lane] as u32)
            } else {
                0.0
            }
        };
        self.add(&product.sums, &rows, &columns, product.element.depth(), old);
        let flight = InFlight {
            product: product.clone(),
            descriptors,
            operands,
            issued: self.at,
        };
        self.block.products[self.index].open.push(flight);
        Ok(())
    }

    /// The bytes that a product reads from shared memory: all columns of the second operand, then the warp's rows of
    /// the first.
    fn operands(&self, product: &GroupProduct, descriptors: &[u64]) -> Result<Vec<u8>, Problem> {
        let shared = &self.block.shared;
        let second = Descriptor::new(descriptors[0])?;
        let mut operands = second.gather(
            shared,
            product.element,
            product.right_transposed,
            0..product.columns,
        )?;
        if let Some(first) = descriptors.get(1) {
            let begin = self.index % 4 * 16;
            let rows = Descriptor::new(*first)?.gather(shared, product.element, false, begin..begin + 16);
            operands.extend(rows?);
        }
        Ok(operands)
    }

    fn wait_for_products(&mut self, left: usize) -> Result<(), Problem> {
        let products = &mut self.block.products[self.index];
        let ended = products.closed.len().saturating_sub(left);
        let ended: Vec<_> = products.closed.drain(..ended).flatten().collect();
        for flight in ended {
            let now = self.operands(&flight.product, &flight.descriptors)?;
            if now != flight.operands {
                let spot = self.kernel.spot(flight.issued);
                return Err(format!(
                    "an operand of the product in {spot} was overwritten before anyone had waited for it"
                ));
            }
        }
        Ok(())
    }
}

/// The element of an 8×8 matrix that is half `index` of a lane's word.
fn element_of_lane(lane: usize, index: usize, transposed: bool) -> (usize, usize) {
    let (row, column) = (lane / 4, lane % 4 * 2 + index);
    if transposed { (column, row) } else { (row, column) }
}
