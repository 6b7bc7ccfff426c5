//! Issues operations of the tensor core: checks what an instruction says and queues what it asks for.

use std::ops::Range;

use crate::fault::Problem;
use crate::instruction::{Address, Operand};
use crate::launch::Machine;
use crate::matrix::Descriptor;
use crate::memory::{local, ranks};
use crate::tensor_core::descriptor::Description;
use crate::tensor_core::instruction::{CopyShape, Group, Multiply, TensorOperation};
use crate::tensor_core::memory::{LANES, overlap, place};
use crate::tensor_core::product::{Places, scale_columns};
use crate::tensor_core::queue::{Issued, Source, Work};
use crate::thread::Who;

impl Machine<'_> {
    /// Executes an instruction of one thread.
    pub fn tensor_operation(
        &mut self,
        who: Who,
        at: usize,
        operation: &TensorOperation,
    ) -> Result<(), Problem> {
        let (work, writes) = match operation {
            TensorOperation::FenceBefore => {
                self.blocks[who.block].threads[who.thread].fences.before = self.now();
                return Ok(());
            }
            TensorOperation::FenceAfter => {
                self.blocks[who.block].threads[who.thread].fences.after = self.now();
                return Ok(());
            }
            TensorOperation::Multiply(group, multiply) => self.product(who, *group, multiply)?,
            TensorOperation::Copy {
                group,
                shape,
                to,
                from,
            } => self.copy_to_tensor(who, *group, *shape, (*to, *from))?,
            TensorOperation::Commit {
                group,
                barrier,
                multicast,
            } => {
                self.pair(who.block, *group)?;
                (self.commit(who, *barrier, *multicast)?, Vec::new())
            }
        };
        for (block, columns) in &writes {
            self.blocks[*block].tensor.issue(columns);
        }
        self.issue(who, at, work, writes);
        Ok(())
    }

    /// The blocks that an instruction concerns, that with the even rank first.
    pub fn pair(&self, block: usize, group: Group) -> Result<Vec<usize>, Problem> {
        if group == Group::One {
            return Ok(vec![block]);
        }
        let rank = self.blocks[block].rank;
        let of_rank = |rank| {
            self.block_of_rank(block, rank).map_err(|problem| {
                format!("{problem}: .cta_group::2 needs a pair of blocks, whose ranks differ in the last bit")
            })
        };
        Ok(vec![of_rank(rank & !1)?, of_rank(rank | 1)?])
    }

    fn product(&self, who: Who, group: Group, multiply: &Multiply) -> Result<WorkAndWrites, Problem> {
        let blocks = self.pair(who.block, group)?;
        let description = Description::new(self.value(who, multiply.description) as u32, group)?;
        let [left, right] = multiply.operands.map(|one| self.value(who, one));
        let named = |name: &str, bits| {
            Descriptor::of_tensor_core(bits)
                .map_err(|problem| format!("descriptor of {name} {bits:#018x}: {problem}"))
        };
        let (left, right) = (named("A", left)?, named("B", right)?);
        let sums = self.columns(who, multiply.sums, description.columns)?;
        let scales = [
            self.columns(who, multiply.scales[0], scale_columns(LANES))?,
            self.columns(who, multiply.scales[1], scale_columns(description.columns))?,
        ];
        for scales in &scales {
            // Reported of devices for the scales of B; the ISA does not say it.
            if scales.start % 2 == 1 {
                return Err(format!(
                    "scales begin at column {} of tensor memory: they have to begin at an even one",
                    scales.start
                ));
            }
            if overlap(scales, &sums) {
                return Err("the sums lie in columns of tensor memory that hold scales".to_owned());
            }
        }
        for block in &blocks {
            let memory = &self.blocks[*block].tensor;
            for columns in scales.iter().chain([&sums]) {
                memory.check(columns)?;
                self.check_order(who, *block, columns)?;
            }
        }
        // Each block of a pair holds the rows of A that are its own, and half of the columns of B.
        let columns = description.columns / blocks.len();
        let sources = |descriptor, rows| {
            let of_block = |block: &usize| Source {
                block: *block,
                descriptor,
                rows,
                bytes: crate::matrix::DEPTH_BYTES,
            };
            blocks.iter().map(of_block).collect::<Vec<_>>()
        };
        let sources = [sources(left, LANES), sources(right, columns)].concat();
        let places = Places {
            sums: sums.start,
            scales: scales.map(|scales| scales.start),
            adds: self.value(who, multiply.add) != 0,
            negates: description.negates,
        };
        let operands = self.gather(&sources)?;
        let writes = blocks.iter().map(|block| (*block, sums.clone())).collect();
        let work = Work::Multiply {
            blocks,
            places,
            sources,
            operands,
        };
        Ok((work, writes))
    }

    fn copy_to_tensor(
        &self,
        who: Who,
        group: Group,
        shape: CopyShape,
        (to, from): (Address, Operand),
    ) -> Result<WorkAndWrites, Problem> {
        let blocks = self.pair(who.block, group)?;
        let bits = self.value(who, from);
        let descriptor = Descriptor::of_tensor_core(bits)
            .map_err(|problem| format!("descriptor {bits:#018x}: {problem}"))?;
        let columns = self.columns(who, to, shape.columns)?;
        for block in &blocks {
            self.blocks[*block].tensor.check(&columns)?;
            self.check_order(who, *block, &columns)?;
        }
        let of_block = |block: &usize| Source {
            block: *block,
            descriptor,
            rows: shape.rows,
            bytes: 4 * shape.columns,
        };
        let sources: Vec<_> = blocks.iter().map(of_block).collect();
        let operands = self.gather(&sources)?;
        let writes = blocks.iter().map(|block| (*block, columns.clone())).collect();
        let work = Work::Copy {
            to: columns,
            sources,
            operands,
        };
        Ok((work, writes))
    }

    fn commit(&mut self, who: Who, barrier: Address, multicast: Option<Operand>) -> Result<Work, Problem> {
        let at = self.blocks[who.block].next(who.thread) - 1;
        let asked = self.watch.as_mut().map(|watch| Box::new(watch.ask(who, at)));
        let Some(mask) = multicast else {
            return Ok(Work::Commit(vec![self.cluster_address(who, barrier)?], asked));
        };
        let (address, _) = local(self.address(who, barrier) as u32);
        let barriers: Result<Vec<_>, _> = ranks(self.value(who, mask))
            .map(|rank| Ok((self.block_of_rank(who.block, rank)?, address)))
            .collect();
        barriers.map(|barriers| Work::Commit(barriers, asked))
    }

    /// The columns from an address on, which has to be that of the first lane.
    fn columns(&self, who: Who, address: Address, count: usize) -> Result<Range<usize>, Problem> {
        let address = self.address(who, address);
        match place(address) {
            (0, first) => Ok(first..first + count),
            (lane, _) => Err(format!(
                "address {:#010x} of tensor memory begins at lane {lane}: here it has to begin at lane 0",
                address as u32
            )),
        }
    }

    /// Checks that no warp still loads or stores columns that an operation uses, and that fences order those that have.
    fn check_order(&self, who: Who, block: usize, columns: &Range<usize>) -> Result<(), Problem> {
        let memory = &self.blocks[block].tensor;
        memory.check_settled(columns)?;
        let fenced = self.blocks[who.block].threads[who.thread].fences.after;
        for (warp, time) in memory.last_accesses(columns) {
            if (block, warp) == (who.block, who.thread / crate::block::WARP) {
                continue;
            }
            let lanes = self.lanes(block, warp);
            if lanes.iter().any(|lane| lane.fences.before < time) {
                return Err(format!(
                    "warp {warp} has accessed column {} or later ones of tensor memory and executed no fence since \
                     (tcgen05.fence::before_thread_sync)",
                    columns.start
                ));
            }
            if fenced <= time {
                return Err(format!(
                    "warp {warp} has accessed column {} or later ones of tensor memory, and this thread has executed no fence since \
                     (tcgen05.fence::after_thread_sync)",
                    columns.start
                ));
            }
        }
        Ok(())
    }

    /// Queues work of a thread. What other threads have issued comes first if fences order it so.
    fn issue(&mut self, who: Who, at: usize, work: Work, writes: Vec<(usize, Range<usize>)>) {
        let fenced = self.blocks[who.block].threads[who.thread].fences.after;
        let after = self.queues.before(who, fenced, |other| {
            self.blocks[other.block].threads[other.thread].fences.before
        });
        let issued = Issued {
            due: self.delay(),
            time: self.now(),
            at,
            after,
            work,
            writes,
        };
        self.queues.push(who, issued);
        self.happened();
    }
}

/// Work, and the columns of tensor memory that it writes in each block.
type WorkAndWrites = (Work, Vec<(usize, Range<usize>)>);
