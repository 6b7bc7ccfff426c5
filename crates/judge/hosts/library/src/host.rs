//! The host of one function.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use gauntlet_host_native::{
    Addresses, Argument, Bound, Call, CpuPlace, CudaPlace, Host, Planned, STREAM, bad_request, broken,
    refused,
};
use gauntlet_parameters::Parameters;
use gauntlet_task::{OwnParameters, Scope};
use gauntlet_worker::protocol::{self, CallActivity, CaseRequest, Description, Failure, Resources, Sample};
use gauntlet_worker::{Turns, probe};

use crate::function::Function;
use crate::signature::advice;
use crate::source::{CompileError, compile, is_source};
use crate::table::{FunctionTable, LibraryError, Returns, Target};

/// What an option gives in place of the table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LibraryOptions {
    /// The arguments, in order.
    pub arguments: Option<Vec<Argument>>,
    /// Where pointers point.
    pub device: Option<Target>,
    /// What the function returns.
    pub returns: Option<Returns>,
    /// Which GPU, from 0.
    pub ordinal: usize,
    /// Values of the parameters of a function whose source is named.
    pub parameters: Parameters,
}

/// Calls a function of a shared library, or of a source that it compiles to one.
pub struct LibraryHost {
    path: PathBuf,
    name: String,
    table: FunctionTable,
    own: OwnParameters,
    given: Parameters,
    /// None before a source was compiled, which may be the kernel's fault.
    function: Option<Function>,
    place: Place,
    built: Option<Built>,
}

enum Place {
    Cpu(CpuPlace),
    Cuda(Box<CudaPlace>),
}

/// The case that is called next.
struct Built {
    case: CaseRequest,
    bound: Vec<Bound>,
}

impl LibraryHost {
    /// Loads the function; that of a source is compiled when a case is built. Options take the place of what the table
    /// beside the file says.
    ///
    /// # Errors
    /// If the file or its table is wrong, or the function is for CUDA and there is no GPU.
    pub fn open(path: &Path, function: &str, options: &LibraryOptions) -> Result<Self, LibraryError> {
        // The dynamic linker searches its own folders for a name without a folder.
        let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut table = FunctionTable::beside(path, function)?;
        if let Some(arguments) = &options.arguments {
            table.arguments = Some(arguments.clone());
        }
        table.device = options.device.unwrap_or(table.device);
        table.returns = options.returns.unwrap_or(table.returns);
        let own = table.own_parameters(path, function)?;
        own.table()
            .check(&options.parameters)
            .map_err(|error| LibraryError::Table {
                path: path.with_extension("toml"),
                message: error.message,
            })?;
        let place = match table.device {
            Target::Cpu => Place::Cpu(CpuPlace::default()),
            Target::Cuda => {
                let place = CudaPlace::new(options.ordinal).map_err(|error| LibraryError::NoGpu {
                    path: path.to_owned(),
                    function: function.to_owned(),
                    message: error.to_string(),
                })?;
                Place::Cuda(Box::new(place))
            }
        };
        Ok(Self {
            path: path.to_owned(),
            name: function.to_owned(),
            function: match is_source(path) {
                true => None,
                false => Some(Function::load(path, function, table.returns)?),
            },
            given: options.parameters.clone(),
            own,
            table,
            place,
            built: None,
        })
    }

    /// A failure that is the kernel's own.
    fn told(&self, message: impl fmt::Display) -> Failure {
        refused(format!("{}:{}: {message}", self.path.display(), self.name))
    }

    /// Compiles a source, once.
    fn compile(&mut self) -> Result<(), Failure> {
        if self.function.is_some() {
            return Ok(());
        }
        let parameters = self.own.table().complete(&self.given);
        let library = compile(&self.path, &self.table, &parameters).map_err(|error| match error {
            CompileError::NoCompiler(reason) => broken(reason),
            CompileError::Refused(reason) => refused(reason),
        })?;
        let loaded = Function::load(&library, &self.name, self.table.returns);
        self.function = Some(loaded.map_err(|error| self.told(error))?);
        Ok(())
    }

    fn bind(&self, case: &CaseRequest) -> Result<Vec<Bound>, Failure> {
        let told = |message: String| self.told(message);
        let scope = Scope::of(&case.sizes, &case.inputs, &case.outputs);
        let scope = self.own.scope(scope, &self.given).map_err(told)?;
        let broken = self.own.broken_restriction(&scope);
        if let Some(broken) = broken.map_err(|error| told(error.to_string()))? {
            return Err(told(format!(
                "`{broken}` does not hold; choose other values of the parameters"
            )));
        }
        let on_gpu = self.table.device == Target::Cuda;
        let arguments = match &self.table.arguments {
            Some(arguments) => arguments.clone(),
            None => Argument::default_list(&scope, on_gpu).map_err(|error| {
                let stream = on_gpu.then_some(STREAM);
                told(format!(
                    "{error}; {}",
                    advice(&self.path, &self.name, &scope, stream)
                ))
            })?,
        };
        if arguments.len() > Function::MOST {
            let (count, most) = (arguments.len(), Function::MOST);
            return Err(told(format!(
                "{count} arguments, and at most {most} can be passed; pass fewer, or a worker of your own"
            )));
        }
        let mut bound = Vec::with_capacity(arguments.len());
        for argument in &arguments {
            let one = argument.bind(&scope).map_err(|error| told(error.to_string()))?;
            match one {
                Bound::Stream if !on_gpu => {
                    return Err(told(format!(
                        "argument `{argument}`: there is no stream on the CPU; leave it out, or set device = \"cuda\""
                    )));
                }
                Bound::Value(passed) if passed.is_float => {
                    return Err(told(format!(
                        "argument `{argument}`: only pointers and whole numbers can be passed to a shared library; let the \
                         function hold the constant"
                    )));
                }
                one => bound.push(one),
            }
        }
        Ok(bound)
    }
}

impl LibraryHost {
    /// The case that was built, the call that computes it, and where.
    fn called(&mut self) -> Result<(&CaseRequest, FunctionCall<'_>, &mut Place), Failure> {
        let (Some(Built { case, bound }), Some(function)) = (&self.built, &self.function) else {
            return Err(bad_request("nothing has been built; call build first"));
        };
        let stream = match &self.place {
            Place::Cpu(_) => 0,
            Place::Cuda(place) => place.stream().raw().expose_provenance() as u64,
        };
        let call = FunctionCall {
            function,
            name: &self.name,
            bound,
            stream,
            arguments: Vec::with_capacity(bound.len()),
        };
        Ok((case, call, &mut self.place))
    }
}

impl Host for LibraryHost {
    fn describe(&self) -> Description {
        let mut details = BTreeMap::from([(
            "function".to_owned(),
            format!("{}:{}", self.path.display(), self.name),
        )]);
        let device = match &self.place {
            Place::Cpu(_) => "host".to_owned(),
            Place::Cuda(place) => {
                let device = place.context().device();
                details.extend(device.properties());
                device.name.clone()
            }
        };
        Description {
            protocol: protocol::VERSION,
            worker: format!("gauntlet library {}", env!("CARGO_PKG_VERSION")),
            device,
            details,
            // The function shares its process with this host, and could replace its code.
            memory: Some(probe()),
            device_times: matches!(self.place, Place::Cuda(_)),
            heat: true,
            activity: matches!(self.place, Place::Cuda(_)),
            chooses_results: true,
            row_major: true,
        }
    }

    /// The function's own parameters were given when it was opened; those of the task's built-in kernels, which every worker
    /// is told, mean nothing to it.
    fn build(&mut self, case: &CaseRequest, _parameters: &Parameters) -> Result<Resources, Failure> {
        self.built = None;
        let bound = self.bind(case)?;
        self.compile()?;
        self.built = Some(Built {
            case: case.clone(),
            bound,
        });
        Ok(Resources::default())
    }

    fn compute(&mut self, planned: &Planned<'_>, results: &mut Vec<u8>) -> Result<Vec<Sample>, Failure> {
        let (case, mut call, place) = self.called()?;
        match place {
            Place::Cpu(place) => place.compute(planned, &case.outputs, &mut call, results),
            Place::Cuda(place) => place.compute(planned, &case.outputs, &mut call, results),
        }
    }

    fn trace(&mut self, planned: &Planned<'_>, results: &mut Vec<u8>) -> Result<Vec<CallActivity>, Failure> {
        let (case, mut call, place) = self.called()?;
        match place {
            Place::Cpu(_) => Err(refused(
                "there is no device to trace: the function computes on the host",
            )),
            Place::Cuda(place) => place.trace(planned, &case.outputs, &mut call, results),
        }
    }

    fn step(&mut self, planned: &Planned<'_>, turns: &mut Turns) -> Result<(), Failure> {
        let (case, mut call, place) = self.called()?;
        match place {
            Place::Cpu(place) => place.step(planned, case, &mut call, turns),
            Place::Cuda(place) => place.step(planned, case, &mut call, turns),
        }
    }
}

/// A call of the function.
struct FunctionCall<'a> {
    function: &'a Function,
    name: &'a str,
    bound: &'a [Bound],
    stream: u64,
    arguments: Vec<u64>,
}

impl Call for FunctionCall<'_> {
    fn prepare(&mut self, addresses: &Addresses) -> Result<(), Failure> {
        self.arguments.clear();
        self.arguments.extend(self.bound.iter().map(|bound| match bound {
            Bound::Input(index) => addresses.inputs[*index],
            Bound::Output(index) => addresses.outputs[*index],
            Bound::Stream => self.stream,
            Bound::Value(passed) => u64::from_le_bytes(passed.bytes),
        }));
        Ok(())
    }

    fn call(&mut self) -> Result<(), Failure> {
        // SAFETY: there are at most `Function::MOST` arguments, whole numbers and pointers to tensors of the case. That
        // the function takes these arguments is what the user's table says; if it is wrong, this process, which exists
        // to run the function and is confined, fails, and the coordinator says so.
        let status = unsafe { self.function.call(&self.arguments) };
        match status {
            0 => Ok(()),
            // The kernel itself says that it failed, so it is the kernel that is at fault.
            status => Err(bad_request(format!(
                "`{}` returned {status}, and 0 means success; if it returns nothing, set returns = \"void\"",
                self.name
            ))),
        }
    }
}
