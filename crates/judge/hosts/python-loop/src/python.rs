//! The few functions of Python's stable C API that the loop needs, found in the running interpreter. No header and no
//! library of Python is needed to compile this crate.

use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

/// An object of Python, opaque.
#[repr(C)]
pub struct Raw {
    _opaque: [u8; 0],
}

/// A pointer to an object, possibly null: null means that an exception is set.
pub type Pointer = *mut Raw;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The handle that stands for all libraries of the process, in the order of loading (dlsym(3)).
#[cfg(target_os = "macos")]
const EVERYWHERE: isize = -2;
#[cfg(not(target_os = "macos"))]
const EVERYWHERE: isize = 0;

/// Looks a symbol up in the process.
fn symbol(name: &str) -> Option<NonNull<c_void>> {
    let name = CString::new(name).ok()?;
    // SAFETY: the handle is one that dlsym(3) defines, and the name ends with a null byte.
    NonNull::new(unsafe { dlsym(EVERYWHERE as *mut c_void, name.as_ptr()) })
}

macro_rules! interface {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)* ; $($data:ident),* $(,)?) => {
        /// Functions and data of the interpreter.
        #[expect(non_snake_case, reason = "the names are Python's")]
        pub struct Interface {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            $($data: NonNull<c_void>,)*
        }

        impl Interface {
            fn find() -> Option<Self> {
                Some(Self {
                    // SAFETY: each type is the one that Python's documentation of the stable ABI gives for the name.
                    $($name: unsafe { std::mem::transmute::<NonNull<c_void>, unsafe extern "C" fn($($argument),*) $(-> $result)?>(symbol(stringify!($name))?) },)*
                    $($data: symbol(stringify!($data))?,)*
                })
            }
        }
    };
}

interface! {
    Py_IncRef: fn(Pointer);
    Py_DecRef: fn(Pointer);
    PyObject_Call: fn(Pointer, Pointer, Pointer) -> Pointer;
    PyObject_Type: fn(Pointer) -> Pointer;
    PyObject_RichCompareBool: fn(Pointer, Pointer, c_int) -> c_int;
    PyErr_SetString: fn(Pointer, *const c_char);
    PyErr_SetObject: fn(Pointer, Pointer);
    PyErr_Clear: fn();
    PyType_IsSubtype: fn(Pointer, Pointer) -> c_int;
    PyTuple_New: fn(isize) -> Pointer;
    PyTuple_SetItem: fn(Pointer, isize, Pointer) -> c_int;
    PyTuple_GetItem: fn(Pointer, isize) -> Pointer;
    PyTuple_Size: fn(Pointer) -> isize;
    PyList_GetItem: fn(Pointer, isize) -> Pointer;
    PyList_Size: fn(Pointer) -> isize;
    PyDict_GetItem: fn(Pointer, Pointer) -> Pointer;
    PyDict_GetItemString: fn(Pointer, *const c_char) -> Pointer;
    PyDict_Size: fn(Pointer) -> isize;
    PyLong_AsLongLong: fn(Pointer) -> c_longlong;
    PyLong_AsUnsignedLongLong: fn(Pointer) -> u64;
    PyLong_FromLongLong: fn(c_longlong) -> Pointer;
    PyFloat_FromDouble: fn(f64) -> Pointer;
    PyUnicode_FromStringAndSize: fn(*const c_char, isize) -> Pointer;
    PyErr_Occurred: fn() -> Pointer;
    PyBytes_AsStringAndSize: fn(Pointer, *mut *mut c_char, *mut isize) -> c_int;
    ;
    PyTuple_Type, PyList_Type, PyDict_Type, PyExc_RuntimeError, _Py_NoneStruct,
}

fn interface() -> Option<&'static Interface> {
    static FOUND: OnceLock<Option<Interface>> = OnceLock::new();
    FOUND.get_or_init(Interface::find).as_ref()
}

// SAFETY: the pointers are to functions and data of the interpreter, which live as long as the process.
unsafe impl Send for Interface {}
// SAFETY: as above; nothing is changed.
unsafe impl Sync for Interface {}

/// Why something failed: an exception that is set already, or a message that becomes a RuntimeError.
#[derive(Debug)]
pub enum Failed {
    /// An exception is set.
    Raised,
    /// The message.
    Because(String),
}

impl From<String> for Failed {
    fn from(message: String) -> Self {
        Self::Because(message)
    }
}

/// The interpreter, on a thread that holds its lock.
#[derive(Clone, Copy)]
pub struct Python(&'static Interface);

impl Python {
    /// The interpreter of this process.
    ///
    /// # Safety
    /// The caller holds the interpreter's lock as long as the value lives, as functions do that are called through
    /// `ctypes.PyDLL`.
    pub unsafe fn here() -> Option<Self> {
        interface().map(Self)
    }

    /// Takes over a reference that the interpreter has given away; an exception is set if it is null.
    fn owned(self, pointer: Pointer) -> Result<Object, Failed> {
        match NonNull::new(pointer) {
            Some(pointer) => Ok(Object {
                python: self,
                pointer,
            }),
            None => Err(Failed::Raised),
        }
    }

    /// A new reference to an object that the interpreter has lent.
    ///
    /// # Safety
    /// The pointer is null or points to a live object.
    pub unsafe fn lent(self, pointer: Pointer) -> Result<Object, Failed> {
        if !pointer.is_null() {
            // SAFETY: the object is alive, and the interpreter's lock is held.
            unsafe { (self.0.Py_IncRef)(pointer) };
        }
        self.owned(pointer)
    }

    /// A float.
    pub fn float(self, value: f64) -> Result<Object, Failed> {
        // SAFETY: the interpreter's lock is held.
        self.owned(unsafe { (self.0.PyFloat_FromDouble)(value) })
    }

    /// An integer.
    pub fn integer(self, value: i64) -> Result<Object, Failed> {
        // SAFETY: the interpreter's lock is held.
        self.owned(unsafe { (self.0.PyLong_FromLongLong)(value) })
    }

    /// A string.
    pub fn text(self, text: &str) -> Result<Object, Failed> {
        // SAFETY: the interpreter's lock is held; pointer and length are those of a Rust string, which is valid UTF-8.
        self.owned(unsafe { (self.0.PyUnicode_FromStringAndSize)(text.as_ptr().cast(), text.len() as isize) })
    }

    /// None.
    pub fn none(self) -> Result<Object, Failed> {
        // SAFETY: None lives as long as the interpreter.
        unsafe { self.lent(self.0._Py_NoneStruct.as_ptr().cast()) }
    }

    /// A tuple of these objects.
    pub fn tuple(self, items: Vec<Object>) -> Result<Object, Failed> {
        // SAFETY: the interpreter's lock is held.
        let tuple = self.owned(unsafe { (self.0.PyTuple_New)(items.len() as isize) })?;
        for (index, item) in items.into_iter().enumerate() {
            // SAFETY: the tuple is new and has this place; the function takes over the item's reference.
            unsafe { (self.0.PyTuple_SetItem)(tuple.pointer.as_ptr(), index as isize, item.given_away()) };
        }
        Ok(tuple)
    }

    /// Sets an exception of a class, with an object as its argument.
    pub fn raise(self, class: &Object, argument: &Object) -> Failed {
        // SAFETY: both objects are alive.
        unsafe { (self.0.PyErr_SetObject)(class.pointer.as_ptr(), argument.pointer.as_ptr()) };
        Failed::Raised
    }

    /// The outcome as a function of Python returns it: the object, or null with an exception set.
    pub fn answer(self, outcome: Result<Object, Failed>) -> Pointer {
        match outcome {
            Ok(object) => object.given_away(),
            Err(Failed::Raised) => std::ptr::null_mut(),
            Err(Failed::Because(message)) => {
                let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
                // SAFETY: the symbol is a variable that holds a pointer to the exception's class.
                let class = unsafe { *self.0.PyExc_RuntimeError.as_ptr().cast::<Pointer>() };
                // SAFETY: the class lives as long as the interpreter, and the message ends with a null byte.
                unsafe { (self.0.PyErr_SetString)(class, message.as_ptr()) };
                std::ptr::null_mut()
            }
        }
    }
}

/// A reference to an object.
pub struct Object {
    python: Python,
    pointer: NonNull<Raw>,
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: this is the owner of the reference, and the interpreter's lock is held.
        unsafe { (self.python.0.Py_DecRef)(self.pointer.as_ptr()) };
    }
}

impl Object {
    fn given_away(self) -> Pointer {
        let pointer = self.pointer.as_ptr();
        std::mem::forget(self);
        pointer
    }

    /// Another reference to the same object.
    pub fn again(&self) -> Result<Self, Failed> {
        // SAFETY: the object is alive.
        unsafe { self.python.lent(self.pointer.as_ptr()) }
    }

    /// Whether both are the same object.
    pub fn is(&self, other: &Self) -> bool {
        self.pointer == other.pointer
    }

    /// Whether it is None.
    pub fn is_none(&self) -> bool {
        self.pointer.cast() == self.python.0._Py_NoneStruct
    }

    /// Its exact type.
    pub fn class(&self) -> Result<Self, Failed> {
        // SAFETY: the object is alive.
        let class = unsafe { (self.python.0.PyObject_Type)(self.pointer.as_ptr()) };
        self.python.owned(class)
    }

    fn is_exactly(&self, class: NonNull<c_void>) -> bool {
        self.class().is_ok_and(|own| own.pointer.cast() == class)
    }

    /// Whether it is a tuple or of a subclass, such as a named tuple or what torch's functions return. Length and items are
    /// read from the tuple itself, whatever the subclass says.
    pub fn is_tuple(&self) -> bool {
        let tuple = self.python.0.PyTuple_Type.as_ptr().cast();
        // SAFETY: both are types, and alive.
        let is_subtype =
            |class: Self| unsafe { (self.python.0.PyType_IsSubtype)(class.pointer.as_ptr(), tuple) };
        self.class().is_ok_and(|class| is_subtype(class) != 0)
    }

    /// Whether it is a list and not of a subclass.
    pub fn is_list(&self) -> bool {
        self.is_exactly(self.python.0.PyList_Type)
    }

    /// Whether it is a dict and not of a subclass.
    pub fn is_dict(&self) -> bool {
        self.is_exactly(self.python.0.PyDict_Type)
    }

    /// Whether it equals another; false if the comparison raises.
    pub fn equals(&self, other: &Self) -> bool {
        const EQUAL: c_int = 2;
        // SAFETY: both objects are alive.
        let equal = unsafe {
            (self.python.0.PyObject_RichCompareBool)(self.pointer.as_ptr(), other.pointer.as_ptr(), EQUAL)
        };
        if equal < 0 {
            // SAFETY: the interpreter's lock is held.
            unsafe { (self.python.0.PyErr_Clear)() };
        }
        equal == 1
    }

    /// Calls it with positional arguments.
    pub fn call(&self, arguments: Vec<Self>) -> Result<Self, Failed> {
        let arguments = self.python.tuple(arguments)?;
        self.apply(&arguments, None)
    }

    /// Calls it with a tuple, and a dict of keywords.
    pub fn apply(&self, arguments: &Self, keywords: Option<&Self>) -> Result<Self, Failed> {
        let keywords = keywords.map_or(std::ptr::null_mut(), |keywords| keywords.pointer.as_ptr());
        // SAFETY: all objects are alive.
        let result = unsafe {
            (self.python.0.PyObject_Call)(self.pointer.as_ptr(), arguments.pointer.as_ptr(), keywords)
        };
        self.python.owned(result)
    }

    /// The number of items of a tuple (or of a subclass, such as torch.Size), of a list, or of a dict.
    pub fn len(&self) -> Result<usize, Failed> {
        let interface = self.python.0;
        let length = if self.is_list() {
            interface.PyList_Size
        } else if self.is_dict() {
            interface.PyDict_Size
        } else {
            interface.PyTuple_Size
        };
        // SAFETY: the object is alive; the functions check its type.
        let length = unsafe { length(self.pointer.as_ptr()) };
        usize::try_from(length).map_err(|_| Failed::Raised)
    }

    /// An item of a tuple or a list.
    pub fn item(&self, index: usize) -> Result<Self, Failed> {
        let get = if self.is_list() {
            self.python.0.PyList_GetItem
        } else {
            self.python.0.PyTuple_GetItem
        };
        // SAFETY: the object is alive; the function checks its type and the index, and lends the item.
        unsafe { self.python.lent(get(self.pointer.as_ptr(), index as isize)) }
    }

    /// All items of a tuple or a list.
    pub fn items(&self) -> Result<Vec<Self>, Failed> {
        (0..self.len()?).map(|index| self.item(index)).collect()
    }

    /// The value of a dict's key; none if it has no such key.
    pub fn value(&self, key: &Self) -> Option<Self> {
        // SAFETY: both objects are alive; the function lends the value and sets no exception.
        unsafe {
            self.python.lent((self.python.0.PyDict_GetItem)(
                self.pointer.as_ptr(),
                key.pointer.as_ptr(),
            ))
        }
        .ok()
    }

    /// The same for a key that is a string.
    pub fn named(&self, key: &CStr) -> Option<Self> {
        // SAFETY: as above, and the key ends with a null byte.
        unsafe {
            self.python.lent((self.python.0.PyDict_GetItemString)(
                self.pointer.as_ptr(),
                key.as_ptr(),
            ))
        }
        .ok()
    }

    /// An integer's value.
    pub fn number(&self) -> Result<i64, Failed> {
        // SAFETY: the object is alive; the function checks its type.
        let value = unsafe { (self.python.0.PyLong_AsLongLong)(self.pointer.as_ptr()) };
        if value == -1 && self.has_raised() {
            return Err(Failed::Raised);
        }
        Ok(value)
    }

    /// The value of an integer that is an address.
    pub fn address(&self) -> Result<u64, Failed> {
        // SAFETY: the object is alive; the function checks its type.
        let value = unsafe { (self.python.0.PyLong_AsUnsignedLongLong)(self.pointer.as_ptr()) };
        if value == u64::MAX && self.has_raised() {
            return Err(Failed::Raised);
        }
        Ok(value)
    }

    fn has_raised(&self) -> bool {
        // SAFETY: the interpreter's lock is held.
        !unsafe { (self.python.0.PyErr_Occurred)() }.is_null()
    }

    /// A copy of the contents of a bytes object.
    pub fn bytes(&self) -> Result<Vec<u8>, Failed> {
        let (mut start, mut length) = (std::ptr::null_mut(), 0);
        // SAFETY: the object is alive; the function checks its type and fills both variables.
        let status = unsafe {
            (self.python.0.PyBytes_AsStringAndSize)(self.pointer.as_ptr(), &raw mut start, &raw mut length)
        };
        if status != 0 {
            return Err(Failed::Raised);
        }
        // SAFETY: the bytes lie there as long as the object lives, which is longer than this copy takes.
        Ok(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length as usize) }.to_vec())
    }
}
