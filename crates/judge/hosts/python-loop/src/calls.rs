//! The task that is bound, its inputs, and the results of the last request.

mod call;
mod clocking;
mod heating;
mod kept;
mod returned;
mod traced;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::Instant;

use gauntlet_calls::{Tracer, Turns};

use crate::device::Device;
use crate::driver::{Driver, Handle};
use crate::memory::{Block, Layout};
use crate::python::{Failed, Object, Python};
use crate::results::{Library, Output, Tree};
use crate::staging::Staging;
use call::Call;
use clocking::Clocking;
use heating::Heat;
use kept::Kept;
use returned::Returned;

/// Addresses of tensors on a GPU are multiples of this, as those that cudaMalloc gives.
const ALIGNMENT: usize = 256;

/// The pool has room for this many times the tensors beside them, so that addresses change from call to call, and with them the
/// pages of memory, by which a kernel's times differ (`results/h200/places/2026-11-29.json`).
const SLACK: usize = 15;

/// The room has at most this many bytes, but a quarter of those of the tensors in any case.
const MAX_SLACK: usize = 1 << 30;

/// The room has at least this many bytes.
const MIN_SLACK: usize = 1 << 20;

/// The task, and what belongs to it.
pub struct Host {
    library: Library,
    outputs: Vec<Output>,
    /// The forms of a returned value, in the order in which they are tried.
    results: Vec<Tree>,
    /// Raised with the number of the call and its result if the result does not fit.
    unfit: Object,
    /// The beginning of a file of results.
    header: Vec<u8>,
    device: Option<Device>,
    /// The inputs of each file, in memory that the kernel never sees.
    pristine: Vec<Vec<Block>>,
    /// Where tensors on the device are placed before a call.
    pool: Option<Block>,
    kept: Kept,
    /// Outputs on the host that are written in place and still hold this byte everywhere.
    filled: HashMap<u64, u8>,
    /// Whether the kernel was seen to write to its inputs on the host in a request that keeps few results: they are put right
    /// after each call then.
    writes_inputs: bool,
    /// The way of tensors between a GPU and a coordinator that holds the worker.
    staging: Staging,
    /// Present while the device's activity is traced.
    tracer: Option<Tracer>,
}

/// What is told of a call: its seconds, those around it since it `begun`, those that the host took before it waited, and what the device did.
fn told(
    python: Python,
    seconds: f64,
    begun: &Instant,
    host: f64,
    activity: Object,
) -> Result<Object, Failed> {
    let between = begun.elapsed().as_secs_f64() - seconds;
    let figures = [seconds, between, host].map(|figure| python.float(figure));
    let mut told: Vec<Object> = figures.into_iter().collect::<Result<_, _>>()?;
    told.push(activity);
    python.tuple(told)
}

fn gone(error: std::io::Error) -> Failed {
    Failed::Because(format!("the coordinator does not answer: {error}"))
}

impl Host {
    /// From a tuple of library, outputs, forms of a returned value, the class `Unfit`, the header of a file of results, and whether a GPU
    /// is used.
    pub fn new(_python: Python, task: &Object) -> Result<Self, Failed> {
        let (outputs, forms) = (task.item(1)?.items()?, task.item(2)?.items()?);
        let device = match task.item(5)?.number()? {
            0 => None,
            _ => Some(Device::new(Driver::open()?)?),
        };
        Ok(Self {
            library: Library::new(&task.item(0)?)?,
            outputs: outputs.iter().map(Output::new).collect::<Result<_, _>>()?,
            results: forms.iter().map(Tree::new).collect::<Result<_, _>>()?,
            unfit: task.item(3)?,
            header: task.item(4)?.bytes()?,
            device,
            pristine: Vec::new(),
            pool: None,
            kept: Kept::default(),
            filled: HashMap::new(),
            writes_inputs: false,
            staging: Staging::default(),
            tracer: None,
        })
    }

    fn driver(&self, on_device: bool) -> Option<&Rc<Driver>> {
        let device = self.device.as_ref().filter(|_| on_device);
        device.map(|device| &device.driver)
    }

    /// Takes for each file a tuple of tensors, each a tuple of address, bytes, and whether it lies on the device. Returns
    /// the address and the bytes of the pool.
    pub fn load(&mut self, python: Python, files: &Object) -> Result<Object, Failed> {
        self.pristine.clear();
        self.filled.clear();
        self.writes_inputs = false;
        self.staging = Staging::default();
        self.pool = None;
        for file in files.items()? {
            let mut blocks = Vec::new();
            for tensor in file.items()? {
                let (address, bytes) = (tensor.item(0)?.address()?, tensor.item(1)?.number()? as usize);
                let mut block = Block::new(self.driver(tensor.item(2)?.number()? != 0), bytes)?;
                // SAFETY: the worker gives the address and the length of a live tensor.
                unsafe { block.take(0, address, bytes) }?;
                blocks.push(block);
            }
            self.pristine.push(blocks);
        }
        let on_device = |block: &&Block| matches!(block, Block::Device(_));
        let most = self
            .pristine
            .iter()
            .map(|blocks| {
                blocks
                    .iter()
                    .filter(on_device)
                    .map(Block::bytes)
                    .collect::<Vec<_>>()
            })
            .chain([self
                .outputs
                .iter()
                .filter(|output| output.on_device)
                .map(Output::bytes)
                .collect()])
            .map(|sizes| sizes.iter().map(|size| size + ALIGNMENT).sum::<usize>())
            .collect::<Vec<_>>();
        let Some(driver) = self.driver(true) else {
            return python.tuple(vec![python.integer(0)?, python.integer(0)?]);
        };
        let (outputs, inputs) = (most.last().copied(), most.iter().rev().skip(1).max().copied());
        let needed = outputs.unwrap_or(0) + inputs.unwrap_or(0);
        let least = (needed / 4).max(MIN_SLACK);
        let slack = needed.saturating_mul(SLACK).min(MAX_SLACK).max(least);
        let pool =
            Block::new(Some(driver), needed + slack).or_else(|_| Block::new(Some(driver), needed + least))?;
        let Block::Device(place) = &pool else {
            return Err(Failed::Because("the pool is not on the device".to_owned()));
        };
        let answer = vec![
            python.integer(place.address as i64)?,
            python.integer(place.bytes as i64)?,
        ];
        self.pool = Some(pool);
        python.tuple(answer)
    }

    /// Takes for each input whether its values differ between calls. Makes room on the host for these inputs where they lie
    /// on the device, and for the outputs that do; all files have inputs of the same lengths. Returns for each input the
    /// address where the coordinator writes it, or 0.
    pub fn hold(&mut self, python: Python, changing: &Object) -> Result<Object, Failed> {
        self.staging = Staging::default();
        let Some(driver) = self.driver(true).cloned() else {
            return Err(Failed::Because("the task has no device".to_owned()));
        };
        let changing: Vec<bool> = changing
            .items()?
            .iter()
            .map(|changes| Ok(changes.number()? != 0))
            .collect::<Result<_, Failed>>()?;
        let inputs = self.pristine.first().map(Vec::as_slice).unwrap_or_default();
        let on_device = |output: &Output| output.on_device.then(|| output.bytes());
        let outputs = self.outputs.iter().map(on_device);
        self.staging = Staging::new(&driver, inputs.iter().zip(changing), outputs)?;
        let addresses = self.staging.addresses();
        let addresses = addresses.map(|address| python.integer(address.unwrap_or(0) as i64));
        python.tuple(addresses.collect::<Result<_, _>>()?)
    }

    /// Takes a tuple of the kernel, its calls, the byte that fills outputs, the stream, whether the second-level cache is
    /// cleared before each call, None or the protocol's two descriptors, if the coordinator steps through the calls, and the
    /// load before each of these, if there is one: nanoseconds, a call on other operands, and whether it comes late; then
    /// whether calls on a GPU are clocked as a whole, and for how many nanoseconds the device is held back before one that is not; at
    /// last None or the numbers of the calls whose results are kept. What protects only results is left out around the others. A call
    /// is a tuple of arguments, keywords or None, the number of its file, addresses of its inputs, addresses of the outputs
    /// that it writes in place, and the line that says where its inputs lie. Returns the times of the calls.
    pub fn run(&mut self, python: Python, request: &Object) -> Result<Object, Failed> {
        let kernel = request.item(0)?;
        let calls = request.item(1)?.items()?;
        let calls: Vec<Call> = calls.iter().map(Call::new).collect::<Result<_, _>>()?;
        let poison = request.item(2)?.number()? as u8;
        let stream = request.item(3)?.address()? as Handle;
        let cold = request.item(4)?.number()? != 0;
        let pipes = request.item(5)?;
        let mut turns = None;
        if !pipes.is_none() {
            let pipe = |index| Ok::<_, Failed>(pipes.item(index)?.number()? as i32);
            // SAFETY: the worker keeps both open until the process ends.
            turns = Some(unsafe { Turns::on(pipe(0)?, pipe(1)?) });
        }
        let clocking = Clocking {
            stream,
            whole: request.item(7)?.number()? != 0,
            hold: request.item(8)?.number()? as u64,
        };
        let heats = request.item(6)?.items()?;
        let heats: Vec<Heat> = heats.iter().map(Heat::new).collect::<Result<_, _>>()?;
        let chosen = request.item(9)?;
        let chosen: Option<Vec<usize>> = match chosen.is_none() {
            true => None,
            false => Some(
                chosen
                    .items()?
                    .iter()
                    .map(|number| Ok(number.number()? as usize))
                    .collect::<Result<_, Failed>>()?,
            ),
        };
        let is_kept = |number: usize| chosen.as_ref().is_none_or(|chosen| chosen.contains(&number));
        self.keep(match turns {
            Some(_) => Vec::new(),
            None => (0..calls.len()).filter(|number| is_kept(*number)).collect(),
        })?;
        for (number, call) in calls.iter().enumerate() {
            if is_kept(number) {
                self.fill_outputs(call, poison, false)?;
            }
        }
        let mut times = Vec::new();
        for (number, call) in calls.iter().enumerate() {
            let begun = Instant::now();
            let heat = heats.get(number);
            let (early, late) = (
                heat.filter(|heat| !heat.is_late),
                heat.filter(|heat| heat.is_late),
            );
            if let Some((turns, heat)) = turns.as_mut().zip(early) {
                self.heat(turns, &kernel, heat, poison, stream)?;
            }
            self.place(call)?;
            if is_kept(number) {
                self.fill_outputs(call, poison, false)?;
                self.poison_for(call, poison)?;
            }
            if let Some(turns) = &mut turns {
                turns.ready(&call.ready).map_err(gone)?;
            }
            let mut revealed = Instant::now();
            self.staging.send()?;
            if let Some((turns, heat)) = turns.as_mut().zip(late) {
                self.heat(turns, &kernel, heat, poison, stream)?;
                let key = turns.key().map_err(gone)?;
                revealed = Instant::now();
                // The tensors of the load lay in the same pool.
                self.place(call)?;
                self.poison_for(call, poison)?;
                self.staging.open(key)?;
            }
            // SAFETY: the worker gives addresses in the pool, each with room for its input.
            unsafe { self.staging.reveal(&call.inputs) }?;
            self.settle(cold)?;
            if let (Some(turns), Some(_)) = (&mut turns, &self.device) {
                turns.placed(revealed.elapsed().as_secs_f64()).map_err(gone)?;
            }
            let (result, [seconds, host], activity) = self.called(python, &kernel, call, &clocking)?;
            if let (Some(turns), Some(_)) = (&mut turns, &self.device) {
                turns.over(seconds, host).map_err(gone)?;
            }
            let returned = self.returned_of(python, number, call, &result)?;
            if !is_kept(number) {
                drop((returned, result));
                for address in &call.in_place {
                    self.filled.remove(address);
                }
                if self.writes_inputs {
                    self.restore(call);
                }
                times.push(told(python, seconds, &begun, host, activity)?);
                continue;
            }
            match &mut turns {
                Some(turns) => {
                    let layouts = self.layouts(call, returned.as_deref());
                    // SAFETY: the tensors are alive, and those on the device have been brought into row-major order.
                    let places = unsafe { self.staging.bring_down(&layouts) }?;
                    turns.done(seconds, &places).map_err(gone)?;
                }
                None => self.take(number, call, returned.as_deref())?,
            }
            self.spoil_all(returned.as_deref(), poison)?;
            drop((returned, result));
            self.fill_outputs(call, poison, false)?;
            self.restore(call);
            times.push(told(python, seconds, &begun, host, activity)?);
        }
        if chosen.is_some() {
            // A request of one call comes first, so that a kernel that writes to its inputs is known before any call counts.
            let mut seen = HashSet::new();
            for call in calls.iter().filter(|call| seen.insert(&call.inputs)) {
                self.writes_inputs |= self.restore(call);
            }
        }
        python.tuple(times)
    }

    /// Copies the inputs of a call to their addresses on the device.
    fn place(&self, call: &Call) -> Result<(), Failed> {
        for (block, address) in self.inputs(call)? {
            if matches!(block, Block::Device(_)) {
                // SAFETY: the worker gives an address in the pool, or of a live tensor, with room for the block.
                unsafe { block.give(address) }?;
            }
        }
        Ok(())
    }

    /// Writes inputs on the host that the kernel has changed back to what they were; whether there were any.
    fn restore(&self, call: &Call) -> bool {
        let mut changed = false;
        for (block, address) in self.inputs(call).into_iter().flatten() {
            // SAFETY: the worker gives the address of a live tensor as long as the block.
            changed |= unsafe { block.restore(address) };
        }
        changed
    }

    fn inputs<'a>(&'a self, call: &'a Call) -> Result<impl Iterator<Item = (&'a Block, u64)>, Failed> {
        let blocks = self.pristine.get(call.file);
        let blocks = blocks.ok_or_else(|| Failed::Because("the inputs are not loaded".to_owned()))?;
        Ok(blocks.iter().zip(call.inputs.iter().copied()))
    }

    /// Fills the outputs that are written in place. Those on the host are filled for their next use as soon as their
    /// result is taken, so that the fill does not bring them into a cache just before the call.
    fn fill_outputs(&mut self, call: &Call, byte: u8, on_device: bool) -> Result<(), Failed> {
        for (output, address) in self.outputs.iter().zip(&call.in_place) {
            match &self.device {
                Some(device) if output.on_device && on_device => {
                    device.fill(*address, byte, output.bytes())?
                }
                // SAFETY: the worker gives the address of a live array as long as the output.
                _ if !output.on_device && !on_device && self.filled.insert(*address, byte) != Some(byte) => unsafe {
                    std::ptr::write_bytes(*address as *mut u8, byte, output.bytes());
                },
                _ => {}
            }
        }
        Ok(())
    }

    /// Fills the outputs on the device that a call writes in place. Those on the host are filled already.
    fn poison_for(&mut self, call: &Call, poison: u8) -> Result<(), Failed> {
        self.fill_outputs(call, poison, true)?;
        for address in &call.in_place {
            self.filled.remove(address);
        }
        Ok(())
    }

    /// Lets the device finish everything before a call, with nothing in its cache if that is asked for.
    fn settle(&self, cold: bool) -> Result<(), Failed> {
        let Some(device) = &self.device else {
            return Ok(());
        };
        if cold {
            device.clear_cache()?;
        }
        Ok(device.synchronise()?)
    }

    /// Where the outputs of a call lie.
    fn layouts(&self, call: &Call, returned: Option<&[Returned]>) -> Vec<Layout> {
        match returned {
            Some(returned) => returned
                .iter()
                .map(|tensor| tensor.copied.layout.clone())
                .collect(),
            None => {
                let places = self.outputs.iter().zip(&call.in_place);
                places.map(|(output, address)| output.at(*address)).collect()
            }
        }
    }
}
