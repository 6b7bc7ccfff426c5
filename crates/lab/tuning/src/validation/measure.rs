//! Measures the grid in several fresh worker processes, each with its own order of every shape's schedules.

use std::path::Path;

use super::Shape;
use gauntlet_problems::Schedule;
use gauntlet_stats::median;
use gauntlet_task::{Case, InputKind, Sizes};
use gauntlet_worker::protocol::Sample;
use gauntlet_worker::{WorkerProcess, most_calls};
use rand::seq::SliceRandom;

use gauntlet_judge::JudgeError;
use gauntlet_judge::Observer;
use gauntlet_judge::Operands;
use gauntlet_judge::Workshop;

/// Target duration of a slot, filled with calls, as in a comparison of two candidates.
const SLOT: f64 = 20e-3;

/// Minimum and maximum number of calls in a slot.
const CALLS: [usize; 2] = [3, 400];

/// The amount of measurement.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Worker processes.
    pub processes: usize,
    /// Slots for each point in each process.
    pub visits: usize,
    /// Bytes of operands that calls rotate over, so that no call finds its operands in a cache.
    pub operand_bytes: u64,
}

/// The times of one point, in seconds.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The index of its shape in the grid.
    pub shape: usize,
    /// Its schedule.
    pub schedule: Schedule,
    /// The median call of each process.
    pub calls: Vec<f64>,
    /// The fastest of all calls.
    pub fastest: f64,
}

/// Measures every point of the grid in every process.
///
/// # Errors
/// If a worker fails, or refuses a schedule that the rules for the device accept.
pub fn measure(
    workshop: &Workshop,
    shapes: &[Shape],
    plan: Plan,
    observer: &dyn Observer,
) -> Result<Vec<Measured>, JudgeError> {
    let operands = shapes
        .iter()
        .map(|shape| operands(workshop, shape))
        .collect::<Result<Vec<_>, _>>()?;
    let mut points: Vec<Measured> = shapes
        .iter()
        .enumerate()
        .flat_map(|(index, shape)| {
            shape.schedules.iter().map(move |schedule| Measured {
                shape: index,
                schedule: schedule.clone(),
                calls: Vec::new(),
                fastest: f64::INFINITY,
            })
        })
        .collect();
    let random = &mut rand::rng();
    for process in 0..plan.processes {
        let (mut worker, _) = workshop.start_default().map_err(JudgeError::Executor)?;
        let mut order: Vec<usize> = (0..shapes.len()).collect();
        order.shuffle(random);
        for (place, shape) in order.into_iter().enumerate() {
            observer.progress(&format!(
                "process {} of {}, shape {} of {}: {}",
                process + 1,
                plan.processes,
                place + 1,
                shapes.len(),
                shapes[shape].name
            ));
            let mut session = Session {
                worker: &mut worker,
                shape: &shapes[shape],
                to_load: Some((operands[shape].path(), copies(&shapes[shape], plan.operand_bytes))),
            };
            let mut own: Vec<&mut Measured> =
                points.iter_mut().filter(|point| point.shape == shape).collect();
            let mut slots: Vec<Vec<Slot>> = vec![Vec::new(); own.len()];
            for _ in 0..plan.visits {
                let mut turns: Vec<usize> = (0..own.len()).collect();
                turns.shuffle(random);
                for turn in turns {
                    slots[turn].push(session.visit(&own[turn].schedule)?);
                }
            }
            own.iter_mut()
                .zip(slots)
                .for_each(|(point, slots)| point.add(&slots));
        }
    }
    Ok(points)
}

fn operands(workshop: &Workshop, shape: &Shape) -> Result<Operands, JudgeError> {
    let case = Case {
        name: shape.name.to_owned(),
        sizes: sizes(shape)?,
        inputs: InputKind::Competition,
        data: None,
        speed_of_light: None,
    };
    Ok(Operands::write(workshop, &case, InputKind::Competition, rand::random())?.1)
}

/// The shape as the sizes of its task, which are sent to workers.
fn sizes(shape: &Shape) -> Result<Sizes, JudgeError> {
    let record = serde_json::to_value(&shape.operation).unwrap_or_default();
    gauntlet_families::open(&record).map_err(JudgeError::Inputs)
}

fn copies(shape: &Shape, bytes: u64) -> usize {
    bytes.div_ceil(shape.operation.bytes().max(1)).clamp(2, 1 << 16) as usize
}

/// One visit to one point.
#[derive(Debug, Clone)]
struct Slot {
    call: f64,
    fastest: f64,
}

/// A worker on one shape.
struct Session<'s> {
    worker: &'s mut WorkerProcess,
    shape: &'s Shape,
    /// Operands that do not exist yet, and the number of copies; they are kept from one build to the next.
    to_load: Option<(&'s Path, usize)>,
}

impl Session<'_> {
    fn visit(&mut self, schedule: &Schedule) -> Result<Slot, JudgeError> {
        self.worker.build(&sizes(self.shape)?, &schedule.parameters())?;
        if let Some((operands, copies)) = self.to_load.take() {
            self.worker.load(&[operands], copies)?;
            self.worker.prepare()?;
        }
        let mut first = 0;
        let mut next = |calls: usize| -> Vec<usize> {
            let copies = (first..first + calls).collect();
            first += calls;
            copies
        };
        let (warm, _) = self.worker.time(&next(CALLS[0]), false)?;
        let once = median(&warm.iter().map(|sample| sample.call).collect::<Vec<_>>());
        let count = ((SLOT / once).ceil() as usize)
            .clamp(CALLS[0], CALLS[1])
            .min(most_calls(&sizes(self.shape)?));
        let (samples, _) = self.worker.time(&next(count), true)?;
        // The time on the device, which is what the model predicts.
        let time = |sample: &Sample| sample.kernel.unwrap_or(sample.call);
        let calls: Vec<f64> = samples.iter().map(time).collect();
        Ok(Slot {
            call: median(&calls),
            fastest: calls.into_iter().fold(f64::INFINITY, f64::min),
        })
    }
}

impl Measured {
    /// The measurements of a process over all its visits.
    fn add(&mut self, slots: &[Slot]) {
        self.calls
            .push(median(&slots.iter().map(|slot| slot.call).collect::<Vec<_>>()));
        self.fastest = slots.iter().map(|slot| slot.fastest).fold(self.fastest, f64::min);
    }
}
