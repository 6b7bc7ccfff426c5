//! Operations that were issued and not carried out yet.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use crate::fault::{Fault, Problem};
use crate::launch::Machine;
use crate::matrix::Descriptor;
use crate::tensor_core::memory::{LANES, QUARTER};
use crate::tensor_core::product::{Columns, Places, multiply};
use crate::thread::Who;
use crate::watch::Asked;

/// Rows of a matrix in a block's shared memory.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub block: usize,
    pub descriptor: Descriptor,
    pub rows: usize,
    /// Bytes of a row.
    pub bytes: usize,
}

/// What the tensor core does. Operands are the bytes of the sources when the operation was issued: they must be the same when
/// it is carried out.
#[derive(Debug)]
pub(super) enum Work {
    Multiply {
        /// The blocks whose tensor memory gets the sums.
        blocks: Vec<usize>,
        places: Places,
        /// The rows of the first operand in each block, then the columns of the second.
        sources: Vec<Source>,
        operands: Vec<Vec<u8>>,
    },
    Copy {
        to: Range<usize>,
        sources: Vec<Source>,
        operands: Vec<Vec<u8>>,
    },
    /// Arrives at these barriers, given by block and address, behind what the thread knew.
    Commit(Vec<(usize, u32)>, Option<Box<Asked>>),
}

#[derive(Debug)]
pub(super) struct Issued {
    /// The time from which it may be carried out.
    pub due: u64,
    /// When it was issued, and the instruction.
    pub time: u64,
    pub at: usize,
    /// Queues of other threads, and how many of their operations come first.
    pub after: Vec<(usize, u64)>,
    pub work: Work,
    /// The columns of tensor memory that it writes, with their block.
    pub writes: Vec<(usize, Range<usize>)>,
}

/// The operations of one thread.
#[derive(Debug)]
struct Queue {
    who: Who,
    issued: VecDeque<Issued>,
    /// Operations carried out.
    done: u64,
    /// What was written since the last commit.
    uncommitted: Vec<(usize, Range<usize>)>,
    /// Queues of other threads behind which operations since the last commit were carried out: when these end, those have.
    behind: Vec<usize>,
}

/// The queues of all threads that have issued an operation.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    queues: Vec<Queue>,
    by_thread: HashMap<(usize, usize), usize>,
    /// Those that are not empty.
    active: Vec<usize>,
}

impl Queues {
    /// The number of operations that may be next.
    pub fn active(&self) -> usize {
        self.active.len()
    }

    pub(super) fn push(&mut self, who: Who, issued: Issued) {
        let index = *self.by_thread.entry((who.block, who.thread)).or_insert_with(|| {
            self.queues.push(Queue {
                who,
                issued: VecDeque::new(),
                done: 0,
                uncommitted: Vec::new(),
                behind: Vec::new(),
            });
            self.queues.len() - 1
        });
        if self.queues[index].issued.is_empty() {
            self.active.push(index);
        }
        self.queues[index].issued.push_back(issued);
    }

    /// How many operations of each other thread come before what a thread issues now: those from before the thread's last
    /// `after_thread_sync` that were followed by a `before_thread_sync` of their own thread.
    pub(super) fn before(&self, who: Who, fenced: u64, before: impl Fn(Who) -> u64) -> Vec<(usize, u64)> {
        let of_others = self.active.iter().filter(|index| {
            let other = self.queues[**index].who;
            (other.block, other.thread) != (who.block, who.thread)
        });
        of_others
            .filter_map(|index| {
                let queue = &self.queues[*index];
                let latest = fenced.min(before(queue.who) + 1);
                let first = queue.issued.partition_point(|issued| issued.time < latest);
                (first > 0).then_some((*index, queue.done + first as u64))
            })
            .collect()
    }

    /// Whether the next operation of an active queue may be carried out; at once if everything else waits.
    pub fn is_due(&self, active: usize, now: u64, all_wait: bool) -> bool {
        let next = &self.queues[self.active[active]].issued[0];
        let first = |(queue, count): &(usize, u64)| self.queues[*queue].done >= *count;
        (next.due <= now || all_wait) && next.after.iter().all(first)
    }

    /// What a commit of a thread covers.
    fn take_uncommitted(&mut self, queue: usize) -> Vec<(usize, Range<usize>)> {
        let behind = std::mem::take(&mut self.queues[queue].behind);
        let covered = behind.into_iter().chain([queue]);
        covered
            .flat_map(|queue| std::mem::take(&mut self.queues[queue].uncommitted))
            .collect()
    }

    /// Whether operations of a launch are left, whose blocks `is_of_launch` tells.
    pub fn any(&self, is_of_launch: impl Fn(usize) -> bool) -> bool {
        self.active
            .iter()
            .any(|index| is_of_launch(self.queues[*index].who.block))
    }
}

impl Machine<'_> {
    /// Carries out the next operation of an active queue.
    pub fn carry_out(&mut self, active: usize) -> Result<(), Fault> {
        let index = self.queues.active[active];
        let queue = &mut self.queues.queues[index];
        let who = queue.who;
        let Some(issued) = queue.issued.pop_front() else {
            return Ok(());
        };
        queue.done += 1;
        if queue.issued.is_empty() {
            self.queues.active.swap_remove(active);
        }
        self.happened();
        let done = self.work(index, &issued.work);
        let queue = &mut self.queues.queues[index];
        queue.uncommitted.extend(issued.writes);
        queue.behind.extend(issued.after.iter().map(|(other, _)| *other));
        done.map_err(|problem| {
            let problem = format!("when the tensor core carried it out: {problem}");
            self.fault(who.block, who.thread, issued.at, problem)
        })
    }

    fn work(&mut self, queue: usize, work: &Work) -> Result<(), Problem> {
        match work {
            Work::Multiply {
                blocks,
                places,
                sources,
                operands,
            } => {
                self.check_unchanged(sources, operands)?;
                let (rows, columns) = operands.split_at(blocks.len());
                let columns = Columns::decode(&columns.concat());
                for (block, rows) in blocks.iter().zip(rows) {
                    multiply(&mut self.blocks[*block].tensor, *places, rows, &columns)?;
                }
            }
            Work::Copy {
                to,
                sources,
                operands,
            } => {
                self.check_unchanged(sources, operands)?;
                for (source, bytes) in sources.iter().zip(operands) {
                    let memory = &mut self.blocks[source.block].tensor;
                    // Fewer rows than lanes: each quarter of the lanes gets all of them.
                    for lane in 0..LANES {
                        let row = lane % source.rows.max(QUARTER);
                        let words = bytes[row * source.bytes..][..source.bytes].chunks_exact(4);
                        for (cell, word) in memory.cells_mut(lane, to.clone()).iter_mut().zip(words) {
                            *cell = crate::memory::number(word) as u32;
                        }
                    }
                }
            }
            Work::Commit(barriers, asked) => {
                let now = self.now();
                for (block, columns) in self.queues.take_uncommitted(queue) {
                    self.blocks[block].tensor.commit(&columns, now);
                }
                for (block, address) in barriers {
                    if let (Some(watch), Some(asked)) = (&mut self.watch, asked) {
                        watch.arrive_later(asked, *block, *address);
                    }
                    self.arrive(*block, *address, 0, 1)?;
                }
            }
        }
        Ok(())
    }

    /// The bytes of matrices in shared memory, as the tensor core reads them.
    pub(super) fn gather(&self, sources: &[Source]) -> Result<Vec<Vec<u8>>, Problem> {
        let bytes = |source: &Source| {
            let shared = &self.blocks[source.block].shared;
            source.descriptor.rows(shared, 0..source.rows, source.bytes)
        };
        sources.iter().map(bytes).collect()
    }

    fn check_unchanged(&self, sources: &[Source], operands: &[Vec<u8>]) -> Result<(), Problem> {
        match self.gather(sources) {
            Ok(now) if now == operands => Ok(()),
            Ok(_) => {
                Err("its operand in shared memory was changed before the tensor core had read it".to_owned())
            }
            Err(problem) => Err(format!(
                "its operand in shared memory was changed before the tensor core had read it: {problem}"
            )),
        }
    }
}
