//! A C function of a loaded library.

use std::ffi::c_int;
use std::path::Path;

use libloading::Library;

use crate::table::{LibraryError, Returns};

/// A function that takes whole numbers and pointers only. In the calling conventions of the systems that are supported
/// (System V on x86-64, AAPCS64 on Linux), each such argument takes one register or one slot of eight bytes on the
/// stack, of which the function reads as many bytes as its parameter has; so all of them can be passed as `u64`.
pub struct Function {
    /// Keeps the code in memory.
    _library: Library,
    address: *const (),
    returns: Returns,
}

macro_rules! calls {
    ($self:ident, $arguments:ident; $($count:literal: $($index:literal)*;)+) => {
        match ($arguments.len(), $self.returns) {
            $(
                ($count, Returns::Void) => {
                    // SAFETY: the caller promises that the function has this many parameters and returns nothing.
                    unsafe {
                        let function: unsafe extern "C" fn($(calls!(@word $index)),*) =
                            std::mem::transmute($self.address);
                        function($($arguments[$index]),*);
                    }
                    0
                }
                ($count, Returns::Int) => {
                    // SAFETY: the caller promises that the function has this many parameters and returns an `int`.
                    unsafe {
                        let function: unsafe extern "C" fn($(calls!(@word $index)),*) -> c_int =
                            std::mem::transmute($self.address);
                        function($($arguments[$index]),*)
                    }
                }
            )+
            _ => unreachable!("the host refuses more than MOST arguments"),
        }
    };
    (@word $index:literal) => { u64 };
}

impl Function {
    /// Most arguments that can be passed.
    pub const MOST: usize = 24;

    /// Loads a library and finds a function in it.
    ///
    /// # Errors
    /// If the library cannot be loaded, or has no such function.
    pub fn load(path: &Path, function: &str, returns: Returns) -> Result<Self, LibraryError> {
        // SAFETY: the library's initialisers run in this process, which exists to run this library and is confined.
        let library = unsafe { Library::new(path) }.map_err(|error| LibraryError::Load {
            path: path.to_owned(),
            message: error.to_string(),
        })?;
        // SAFETY: the symbol is only taken for an address here; `call` states what it must be.
        let symbol = unsafe { library.get::<unsafe extern "C" fn()>(function.as_bytes()) };
        let address = symbol.map(|symbol| *symbol as *const ());
        let address = address.map_err(|_| LibraryError::NoFunction {
            path: path.to_owned(),
            function: function.to_owned(),
        })?;
        Ok(Self {
            _library: library,
            address,
            returns,
        })
    }

    /// Calls it; 0 if it succeeded.
    ///
    /// # Safety
    /// It must have as many parameters as there are arguments, at most [`MOST`](Self::MOST), all of them whole numbers
    /// or pointers to memory of the size that the function assumes, and return what was declared.
    pub unsafe fn call(&self, arguments: &[u64]) -> c_int {
        calls! { self, arguments;
            0: ; 1: 0; 2: 0 1; 3: 0 1 2; 4: 0 1 2 3; 5: 0 1 2 3 4; 6: 0 1 2 3 4 5; 7: 0 1 2 3 4 5 6;
            8: 0 1 2 3 4 5 6 7; 9: 0 1 2 3 4 5 6 7 8; 10: 0 1 2 3 4 5 6 7 8 9; 11: 0 1 2 3 4 5 6 7 8 9 10;
            12: 0 1 2 3 4 5 6 7 8 9 10 11; 13: 0 1 2 3 4 5 6 7 8 9 10 11 12; 14: 0 1 2 3 4 5 6 7 8 9 10 11 12 13;
            15: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14; 16: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15;
            17: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; 18: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17;
            19: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; 20: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19;
            21: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20;
            22: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21;
            23: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22;
            24: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23;
        }
    }
}
