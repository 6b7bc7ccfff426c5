//! A block's tensor memory: 128 lanes of 512 columns of 32 bits.

use std::ops::Range;

use crate::fault::Problem;
use crate::memory::UNWRITTEN;

pub(crate) const LANES: usize = 128;
pub(crate) const COLUMNS: usize = 512;
/// The unit of allocation, in columns.
pub(crate) const UNIT: usize = 32;
/// Lanes that one warp reaches: those of the quarter with its number modulo four.
pub(crate) const QUARTER: usize = 32;

/// What every bit pattern of an unwritten cell is.
const UNWRITTEN_CELL: u32 = u32::from_le_bytes([UNWRITTEN; 4]);

/// The first lane and the first column of an address.
pub(super) fn place(address: u64) -> (usize, usize) {
    (address as usize >> 16 & 0xFFFF, address as usize & 0xFFFF)
}

/// What is known of a column.
#[derive(Debug, Clone, Copy, Default)]
struct Column {
    /// Issued operations that write it and whose commit has not arrived.
    issued: u32,
    /// When the last of their commits arrived.
    written: u64,
    /// Loads and stores that a warp has not waited for.
    accesses: u32,
    /// The last warp of each quarter that has loaded or stored it, and when it had waited for that.
    accessed: [Option<(usize, u64)>; LANES / QUARTER],
}

/// A load or store that its warp has not waited for.
#[derive(Debug)]
pub(crate) struct Access {
    pub warp: usize,
    pub columns: Range<usize>,
    pub kind: AccessKind,
}

#[derive(Debug)]
pub(crate) enum AccessKind {
    /// Its results go to these registers.
    Load(Vec<crate::instruction::Register>),
    /// For each lane, what it stores.
    Store(Vec<Vec<u32>>),
}

/// What a block has asked for together with the other block of its pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    Asked(Wish),
    /// It was done when the other block asked for it too; an allocation begins at this column.
    Done(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The number of columns.
    Allocate(usize),
    Free(Range<usize>),
}

#[derive(Debug, Default)]
pub(crate) struct TensorMemory {
    /// Lane by lane; empty while nothing is allocated.
    cells: Vec<u32>,
    columns: Vec<Column>,
    allocations: Vec<Range<usize>>,
    /// Columns of the last allocation.
    last: Option<usize>,
    pub relinquished: bool,
    pub request: Option<Request>,
    pub accesses: Vec<Access>,
}

impl TensorMemory {
    /// Checks that the block may allocate `columns` columns.
    pub fn check_request(&self, columns: usize) -> Result<(), Problem> {
        if !columns.is_power_of_two() || !(UNIT..=COLUMNS).contains(&columns) {
            return Err(format!(
                "{columns} columns, where powers of two from {UNIT} to {COLUMNS} are possible"
            ));
        }
        if self.relinquished {
            return Err(
                "allocates after a thread of its block has given up the right to (tcgen05.relinquish_alloc_permit)".to_owned(),
            );
        }
        match self.last {
            Some(last) if columns > last => Err(format!(
                "{columns} columns after {last}: a block's allocations may not grow"
            )),
            _ => Ok(()),
        }
    }

    pub fn is_free(&self, columns: &Range<usize>) -> bool {
        !self.allocations.iter().any(|other| overlap(other, columns))
    }

    pub fn allocate(&mut self, columns: Range<usize>) {
        if self.cells.is_empty() {
            self.cells = vec![UNWRITTEN_CELL; LANES * COLUMNS];
            self.columns = vec![Column::default(); COLUMNS];
        }
        for lane in 0..LANES {
            self.cells_mut(lane, columns.clone()).fill(UNWRITTEN_CELL);
        }
        self.columns[columns.clone()].fill(Column::default());
        self.last = Some(columns.len());
        self.allocations.push(columns);
    }

    /// Checks that these columns were allocated together and that nothing uses them.
    pub fn check_release(&self, columns: &Range<usize>) -> Result<(), Problem> {
        if !self.allocations.contains(columns) {
            return Err(format!(
                "no {} columns of tensor memory are allocated at column {}; {}",
                columns.len(),
                columns.start,
                self.allocated()
            ));
        }
        let used = |one: &Column| one.issued > 0 || one.accesses > 0;
        match columns.clone().find(|column| used(&self.columns[*column])) {
            Some(column) => Err(format!(
                "frees column {column} of tensor memory, and an operation that uses it has not been committed and waited for"
            )),
            None => Ok(()),
        }
    }

    pub fn release(&mut self, columns: &Range<usize>) {
        self.allocations.retain(|other| other != columns);
        if self.allocations.is_empty() {
            self.cells = Vec::new();
        }
    }

    /// What is allocated, in words.
    pub fn allocated(&self) -> String {
        let ranges: Vec<String> = self
            .allocations
            .iter()
            .map(|one| format!("{} to {}", one.start, one.end - 1))
            .collect();
        match ranges.is_empty() {
            true => "nothing is allocated".to_owned(),
            false => format!("allocated are {}", ranges.join(", ")),
        }
    }

    /// Checks that the block has given back what it has allocated.
    pub fn check_end(&self) -> Result<(), Problem> {
        match self.allocations.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "its block ends with tensor memory that it has not freed (tcgen05.dealloc): of the columns {}",
                self.allocated()
            )),
        }
    }

    /// Checks that columns lie in one allocation.
    pub fn check(&self, columns: &Range<usize>) -> Result<(), Problem> {
        let holds = |one: &Range<usize>| one.start <= columns.start && columns.end <= one.end;
        match self.allocations.iter().any(holds) {
            true => Ok(()),
            false => Err(format!(
                "columns {} to {} of tensor memory are not allocated; {}",
                columns.start,
                columns.end - 1,
                self.allocated()
            )),
        }
    }

    pub fn cell(&self, lane: usize, column: usize) -> u32 {
        self.cells[lane * COLUMNS + column]
    }

    pub fn cells_mut(&mut self, lane: usize, columns: Range<usize>) -> &mut [u32] {
        &mut self.cells[lane * COLUMNS..][columns]
    }

    /// Notes that an issued operation will write columns.
    pub fn issue(&mut self, columns: &Range<usize>) {
        self.columns[columns.clone()]
            .iter_mut()
            .for_each(|column| column.issued += 1);
    }

    /// Notes that the commit of an operation that has written columns has arrived.
    pub fn commit(&mut self, columns: &Range<usize>, now: u64) {
        for column in &mut self.columns[columns.clone()] {
            column.issued = column.issued.saturating_sub(1);
            column.written = now;
        }
    }

    /// Checks that a warp may access columns whose lanes have last executed `tcgen05.fence::after_thread_sync` at this time.
    pub fn check_access(&self, columns: &Range<usize>, fenced: u64) -> Result<(), Problem> {
        for column in columns.clone() {
            let Column { issued, written, .. } = self.columns[column];
            if issued > 0 {
                return Err(format!(
                    "column {column} of tensor memory is accessed before a commit has arrived for what the tensor core writes there \
                     (tcgen05.commit, and a wait for its barrier)"
                ));
            }
            if written > 0 && fenced <= written {
                return Err(format!(
                    "column {column} of tensor memory is accessed without a fence since the commit for what the tensor core has written \
                     there (tcgen05.fence::after_thread_sync)"
                ));
            }
        }
        Ok(())
    }

    /// Checks that no warp is still loading or storing columns.
    pub fn check_settled(&self, columns: &Range<usize>) -> Result<(), Problem> {
        let accessed = columns.clone().find(|column| self.columns[*column].accesses > 0);
        match accessed {
            Some(column) => Err(format!(
                "a warp loads or stores column {column} of tensor memory and has not waited for it (tcgen05.wait)"
            )),
            None => Ok(()),
        }
    }

    /// The last accesses to columns that were waited for: warp and time, each once.
    pub fn last_accesses(&self, columns: &Range<usize>) -> Vec<(usize, u64)> {
        let mut accesses: Vec<_> = self.columns[columns.clone()]
            .iter()
            .flat_map(|column| column.accessed.into_iter().flatten())
            .collect();
        accesses.sort_unstable();
        accesses.dedup();
        accesses
    }

    pub fn begin_access(&mut self, access: Access) {
        self.columns[access.columns.clone()]
            .iter_mut()
            .for_each(|column| column.accesses += 1);
        self.accesses.push(access);
    }

    /// Takes the warp's loads, or its stores, which it has waited for now.
    pub fn end_accesses(&mut self, warp: usize, loads: bool, now: u64) -> Vec<Access> {
        let ended = self
            .accesses
            .extract_if(.., |access| {
                access.warp == warp && matches!(access.kind, AccessKind::Load(_)) == loads
            })
            .collect::<Vec<_>>();
        for access in &ended {
            for column in &mut self.columns[access.columns.clone()] {
                column.accesses -= 1;
                column.accessed[warp % 4] = Some((warp, now));
            }
        }
        ended
    }
}

pub(super) fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}
