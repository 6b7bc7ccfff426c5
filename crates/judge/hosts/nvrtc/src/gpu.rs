//! The host of one kernel on a GPU.

use gauntlet_cuda::compiler::{Compiler, Origin};
use gauntlet_cuda::driver::{Dimensions, Function, Stream};
use gauntlet_host_native::{Addresses, Call, CudaPlace, Host, Planned, bad_request, driver_failure, refused};
use gauntlet_parameters::Parameters;
use gauntlet_worker::protocol::{self, CallActivity, CaseRequest, Description, Failure, Resources, Sample};
use gauntlet_worker::{Turns, probe};

use crate::compiled::{compiled, planned, resources};
use crate::error::KernelError;
use crate::file::KernelFile;
use crate::launch::LaunchPlan;

/// Runs a kernel on a GPU of any architecture that the compiler knows.
pub struct NvrtcHost {
    file: KernelFile,
    compiler: Compiler,
    architecture: String,
    built: Option<Built>,
    place: CudaPlace,
}

struct Built {
    case: CaseRequest,
    plan: LaunchPlan,
    function: Function,
}

impl NvrtcHost {
    /// The host of a kernel on the GPU with this number, counted from 0.
    ///
    /// # Errors
    /// If there is no compiler, or no such GPU.
    pub fn new(file: KernelFile, ordinal: usize) -> Result<Self, KernelError> {
        let place = CudaPlace::new(ordinal)?;
        let (major, minor) = place.context().device().compute_capability;
        // From 9.0 on, some instructions exist only in the variant of exactly one architecture.
        let suffix = if major >= 9 { "a" } else { "" };
        Ok(Self {
            file,
            compiler: Compiler::new()?,
            architecture: format!("sm_{major}{minor}{suffix}"),
            built: None,
            place,
        })
    }

    fn prepare(&self, case: &CaseRequest, parameters: &Parameters) -> Result<(Built, Resources), Failure> {
        let file = &self.file;
        // Every worker is told the parameters of the task's built-in kernels too; they mean nothing here.
        let parameters = &file.parameters().table().restrict(parameters);
        let plan = planned(file, case, parameters)?;
        let compiled = compiled(file, &self.compiler, &self.architecture, parameters)?;
        let name = file.name();
        if let Origin::NotKept(why) = &compiled.origin {
            eprintln!("{name}: {why}");
        }
        for warning in &compiled.warnings {
            eprintln!("{name}: {warning}");
        }
        let device = self.place.context().device();
        let shared = compiled.resources.static_shared_bytes + plan.shared_bytes;
        if shared > device.block_shared_bytes {
            let most = device.block_shared_bytes;
            return Err(refused(file.in_table(
                "shared",
                &format!("{shared} bytes of shared memory a block, and at most {most} fit; use less"),
            )));
        }
        let function = Function::new(
            self.place.context(),
            &compiled.cubin,
            &compiled.entry,
            &name,
            plan.threads(),
            plan.shared_bytes,
        )
        .map_err(driver_failure)?;
        let sizes = function.parameter_bytes().map_err(driver_failure)?;
        plan.check_parameters(&sizes)
            .map_err(|message| refused(file.in_table("arguments", &message)))?;
        let attributes = function.attributes().map_err(driver_failure)?;
        if attributes.blocks_per_processor == 0 {
            return Err(refused(file.in_table(
                "block",
                &format!(
                    "no block fits a multiprocessor: {} threads of {} registers, {shared} bytes of shared memory; use fewer \
                     threads, or `__launch_bounds__`",
                    plan.threads(),
                    attributes.registers
                ),
            )));
        }
        let mut resources = resources(&compiled, &plan);
        let resident = f64::from(attributes.blocks_per_processor * plan.threads());
        let more = [
            (
                "blocks-per-multiprocessor",
                f64::from(attributes.blocks_per_processor),
            ),
            ("occupancy", resident / f64::from(device.processor_threads.max(1))),
        ];
        resources
            .0
            .extend(more.map(|(name, value)| (name.to_owned(), value)));
        let built = Built {
            case: case.clone(),
            plan,
            function,
        };
        Ok((built, resources))
    }
}

impl NvrtcHost {
    /// The case that was built, the launch that computes it, and where.
    fn called(&mut self) -> Result<(&CaseRequest, KernelCall<'_>, &mut CudaPlace), Failure> {
        let Some(Built { case, plan, function }) = &self.built else {
            return Err(bad_request("nothing has been built; call build first"));
        };
        let place = &mut self.place;
        let call = KernelCall {
            function,
            plan,
            // SAFETY: the stream belongs to the place, which outlives the call.
            stream: unsafe { Stream::borrowed(place.context(), place.stream().raw()) },
            values: Vec::new(),
        };
        Ok((case, call, place))
    }
}

impl Host for NvrtcHost {
    fn describe(&self) -> Description {
        let device = self.place.context().device();
        let mut details = device.properties();
        details.insert("kernel".to_owned(), self.file.name());
        details.insert(
            "compiler".to_owned(),
            format!("NVRTC {}", self.compiler.version()),
        );
        details.insert("architecture".to_owned(), self.architecture.clone());
        Description {
            protocol: protocol::VERSION,
            worker: format!("gauntlet nvrtc {}", env!("CARGO_PKG_VERSION")),
            device: device.name.clone(),
            details,
            // The coordinator's clock sees of a held worker's call nothing but the call, as of a kernel in Python.
            memory: Some(probe()),
            device_times: true,
            heat: true,
            activity: true,
            chooses_results: true,
            row_major: true,
        }
    }

    fn build(&mut self, case: &CaseRequest, parameters: &Parameters) -> Result<Resources, Failure> {
        self.built = None;
        let (built, resources) = self.prepare(case, parameters)?;
        self.built = Some(built);
        Ok(resources)
    }

    fn compute(&mut self, planned: &Planned<'_>, results: &mut Vec<u8>) -> Result<Vec<Sample>, Failure> {
        let (case, mut call, place) = self.called()?;
        place.compute(planned, &case.outputs, &mut call, results)
    }

    fn trace(&mut self, planned: &Planned<'_>, results: &mut Vec<u8>) -> Result<Vec<CallActivity>, Failure> {
        let (case, mut call, place) = self.called()?;
        place.trace(planned, &case.outputs, &mut call, results)
    }

    fn step(&mut self, planned: &Planned<'_>, turns: &mut Turns) -> Result<(), Failure> {
        let (case, mut call, place) = self.called()?;
        place.step(planned, case, &mut call, turns)
    }
}

/// A launch of the kernel.
struct KernelCall<'a> {
    function: &'a Function,
    plan: &'a LaunchPlan,
    stream: Stream,
    values: Vec<[u8; 8]>,
}

impl Call for KernelCall<'_> {
    fn prepare(&mut self, addresses: &Addresses) -> Result<(), Failure> {
        self.values = self.plan.values(addresses);
        Ok(())
    }

    fn call(&mut self) -> Result<(), Failure> {
        let arguments: Vec<&[u8]> = self.values.iter().map(<[u8; 8]>::as_slice).collect();
        let dimensions = Dimensions {
            grid: self.plan.grid,
            block: self.plan.block,
            cluster: self.plan.cluster,
        };
        // SAFETY: number and sizes of the arguments were checked against the kernel's parameters. The tensors have the
        // sizes of the case; a kernel that accesses anything else fails, and this process, which exists to run it, with
        // it.
        unsafe { self.function.launch_with(dimensions, &arguments, &self.stream) }.map_err(driver_failure)
    }
}
