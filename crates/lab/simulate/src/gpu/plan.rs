//! The complete input of a simulated call, to be run with various mechanisms made ideal.

use gauntlet_device::Device;
use gauntlet_problems::{Order, Schedule, Setup};

use super::assumed;
use super::code::Code;
use super::costs::{Costs, Setting};
use super::deal::Deal;
use super::engine::{self, Outcome, Scene};
use super::ideal::Ideal;
use super::machine::Machine;
use super::work::{Bundle, Kind};
use crate::Problem;
use crate::count::Occupancy;
use crate::estimate::MissingFigure;
use crate::host::HostTerm;

/// Bytes of an fp16 value.
const HALF: f64 = 2.0;

/// A call.
pub(super) struct Plan<'a> {
    pub(super) problem: &'a Problem,
    pub(super) schedule: &'a Schedule,
    pub(super) machine: Machine,
    pub(super) code: Code,
    pub(super) bundle: Bundle,
    pub(super) kinds: Vec<Kind>,
    deal: Deal,
    launch: f64,
    ramp: f64,
}

impl<'a> Plan<'a> {
    pub(super) fn of(
        problem: &'a Problem,
        schedule: &'a Schedule,
        device: &Device,
    ) -> Result<Self, MissingFigure> {
        let machine = Machine::of(device, problem)?.scheduled(problem, schedule, device);
        let bundle = Bundle::of(schedule, machine.arch);
        let clusters = (machine.processors / bundle.processors()).max(1);
        let resident = match schedule.order {
            Order::PerTile => {
                Occupancy::of(problem, schedule, device).map_or(1, |occupancy| occupancy.blocks)
            }
            Order::Static | Order::Sorted | Order::Dynamic => 1,
        };
        let kinds = problem
            .model()
            .kinds(schedule, bundle, machine.cache_size, clusters, machine.arch);
        let deal = Deal::of(&kinds, schedule.order, clusters, resident);
        let launch = device.gpu.as_ref().map(|gpu| &gpu.launch);
        let seconds = |figure: Option<&gauntlet_device::Figure<gauntlet_device::Time>>| {
            figure.map_or(0.0, |figure| figure.get())
        };
        let ramp = seconds(launch.and_then(|launch| launch.ramp.as_ref()));
        let interval = seconds(launch.and_then(|launch| match schedule.setup {
            Setup::PerCall => launch.stream.as_ref(),
            Setup::Once => launch.graph.as_ref(),
        }));
        Ok(Self {
            problem,
            schedule,
            machine,
            code: Code::of(&problem.model().program(schedule, device.arch)),
            bundle,
            kinds,
            deal,
            // From one launch to the next of an empty kernel, ramp included.
            launch: (interval - ramp).max(0.0),
            ramp,
        })
    }

    /// Steps of the tiles of a cluster of multiprocessors, if they are shared equally.
    pub(super) fn steps(&self) -> usize {
        let clusters = (self.machine.processors / self.bundle.processors()).max(1);
        let steps = self
            .kinds
            .iter()
            .map(|kind| kind.count.saturating_mul(kind.steps.max(1)));
        steps.fold(0, usize::saturating_add) / clusters
    }

    /// Seconds of the host's work.
    pub(super) fn host(&self, host: HostTerm) -> f64 {
        host.seconds(self.problem, self.schedule)
    }

    /// Seconds to start the kernel, without its ramp.
    pub(super) fn launch(&self) -> f64 {
        self.launch
    }

    /// Seconds before the first block's first instruction: ramp, and operands converted beforehand.
    pub(super) fn before(&self, ideal: Ideal) -> (f64, f64) {
        let ramp = if ideal.ramp {
            0.0
        } else {
            self.ramp * assumed::RAMP_UP
        };
        let prologue = if ideal.conversion {
            0.0
        } else {
            self.prologue(ideal)
        };
        (ramp, prologue)
    }

    /// Seconds of the kernel with the given mechanisms made ideal.
    pub(super) fn kernel(&self, ideal: Ideal) -> f64 {
        let outcome = self.run(ideal, false);
        let (ramp, prologue) = self.before(ideal);
        ramp + prologue + self.seconds(self.end(&outcome, ideal), ideal) + self.after(ideal)
    }

    /// Seconds from the last result to the end of the kernel.
    pub(super) fn after(&self, ideal: Ideal) -> f64 {
        if ideal.ramp {
            0.0
        } else {
            self.ramp * (1.0 - assumed::RAMP_UP)
        }
    }

    /// Simulates the multiprocessors.
    pub(super) fn run(&self, ideal: Ideal, recording: bool) -> Outcome {
        let mut machine = self.machine;
        if ideal.barriers {
            machine.signal = 0.0;
            machine.synchronise = [0.0; 2];
        }
        let costs = self.costs(&machine, ideal);
        let scene = Scene {
            code: &self.code,
            costs: &costs,
            machine: &machine,
            ideal,
            width: self.bundle.processors(),
            pair: self.bundle.pair > 1,
            recording,
        };
        engine::run(scene, &self.deal)
    }

    /// Converts cycles to seconds: without contention nothing lowers the clock.
    pub(super) fn seconds(&self, cycles: f64, ideal: Ideal) -> f64 {
        cycles
            / if ideal.contention {
                self.machine.boost
            } else {
                self.machine.clock
            }
    }

    /// The cost of each operation, by kind of tile.
    pub(super) fn costs(&self, machine: &Machine, ideal: Ideal) -> Vec<Costs> {
        let setting = Setting {
            problem: self.problem,
            schedule: self.schedule,
            machine,
            bundle: self.bundle,
            ideal,
        };
        self.kinds.iter().map(|kind| Costs::of(kind, &setting)).collect()
    }

    /// Cycles of all products, padding included, if they were shared equally.
    pub(super) fn balanced(&self, ideal: Ideal) -> f64 {
        let costs = self.costs(&self.machine, ideal);
        let total: f64 = self
            .kinds
            .iter()
            .zip(costs)
            .map(|(kind, costs)| {
                let blocks = kind.count as f64 * kind.filled * self.bundle.processors() as f64;
                blocks * kind.steps as f64 * (costs.products.iter().sum::<f64>() + costs.scalar)
            })
            .sum();
        total / self.machine.processors as f64
    }

    fn end(&self, outcome: &Outcome, ideal: Ideal) -> f64 {
        if ideal.tail {
            outcome.last_product
        } else {
            outcome.end
        }
    }

    /// Seconds of a preceding kernel that converts operands to fp16 for the matrix unit.
    fn prologue(&self, ideal: Ideal) -> f64 {
        let converted = self
            .problem
            .model()
            .converted_beforehand(self.schedule, self.machine.arch);
        let Some((values, packed)) = converted else {
            return 0.0;
        };
        let cycles = values * (packed + HALF) / self.machine.memory_rate + self.machine.load_latency[0];
        let ramp = if ideal.ramp { 0.0 } else { self.ramp };
        ramp + self.seconds(cycles, ideal)
    }
}
