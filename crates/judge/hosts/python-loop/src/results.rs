//! What a kernel returned: the exact types, and where the elements lie.

use crate::memory::Layout;
use crate::python::{Failed, Object};

/// How to look at a tensor of a library. All are functions of C that were taken before the kernel was imported, so that
/// a kernel cannot replace them.
pub struct Library {
    /// The exact type of a tensor.
    class: Object,
    dtype: Object,
    shape: Object,
    strides: Object,
    /// Gives the address, or numpy's `__array_interface__`.
    pointer: Object,
    /// The device, for a library that has several.
    device: Option<Object>,
    /// Questions that must be answered by False: whether the elements in memory are not the tensor's values.
    pending: Vec<Object>,
    /// Gives the same tensor in row-major order.
    contiguous: Option<Object>,
    /// Gives a tensor with its elements converted to a type.
    converted: Object,
    /// Makes a tensor of a scalar.
    of_scalar: Option<Object>,
    /// Whether strides count elements and not bytes.
    strides_in_elements: bool,
}

/// Where a returned tensor lies.
pub struct Found {
    /// Its place and form.
    pub layout: Layout,
    /// Whether its memory must not be written to.
    pub is_read_only: bool,
    /// Whether its elements have the output's own type, and not another that is accepted too.
    is_own_kind: bool,
}

/// None for Python's None.
fn optional(object: Object) -> Option<Object> {
    (!object.is_none()).then_some(object)
}

impl Library {
    /// From a tuple in the order of the fields.
    pub fn new(described: &Object) -> Result<Self, Failed> {
        Ok(Self {
            class: described.item(0)?,
            dtype: described.item(1)?,
            shape: described.item(2)?,
            strides: described.item(3)?,
            pointer: described.item(4)?,
            device: optional(described.item(5)?),
            pending: described.item(6)?.items()?,
            contiguous: optional(described.item(7)?),
            converted: described.item(8)?,
            of_scalar: optional(described.item(9)?),
            strides_in_elements: described.item(10)?.number()? != 0,
        })
    }

    /// The tensor as results are copied from it: on a device in row-major order, and everywhere with the output's own type of
    /// elements, which the tensor may lack if another is accepted too.
    pub fn to_copy(&self, tensor: &Object, found: &Found, output: &Output) -> Result<Object, Failed> {
        let tensor = match &self.contiguous {
            Some(contiguous) if output.on_device && !found.layout.is_row_major() => {
                contiguous.call(vec![tensor.again()?])?
            }
            _ => tensor.again()?,
        };
        match found.is_own_kind {
            true => Ok(tensor),
            false => self.converted.call(vec![tensor, output.kinds[0].dtype.again()?]),
        }
    }

    /// A returned value as a tensor: itself, or a tensor of the scalar that it is.
    pub fn tensor(&self, value: &Object, output: &Output) -> Result<Object, Failed> {
        let class = value.class()?;
        match &self.of_scalar {
            Some(of_scalar) if output.scalars.iter().any(|scalar| scalar.is(&class)) => {
                of_scalar.call(vec![value.again()?])
            }
            _ => value.again(),
        }
    }

    /// Where a tensor lies, if its type, shape and device are those of an output, and its element type is accepted.
    pub fn layout(&self, tensor: &Object, output: &Output) -> Result<Option<Found>, Failed> {
        if !tensor.class()?.is(&self.class) {
            return Ok(None);
        }
        let ask = |question: &Object| question.call(vec![tensor.again()?]);
        let dtype = ask(&self.dtype)?;
        let Some(kind) = output.kinds.iter().position(|kind| dtype.equals(&kind.dtype)) else {
            return Ok(None);
        };
        let element = output.kinds[kind].element;
        if let (Some(device), Some(expected)) = (&self.device, &output.device)
            && !ask(device)?.equals(expected)
        {
            return Ok(None);
        }
        for question in &self.pending {
            // Python's False is the integer 0.
            if ask(question)?.number()? != 0 {
                return Ok(None);
            }
        }
        let numbers = |object: Object| -> Result<Vec<i64>, Failed> {
            object.items()?.iter().map(Object::number).collect()
        };
        let shape: Vec<usize> = numbers(ask(&self.shape)?)?
            .into_iter()
            .map(|size| size as usize)
            .collect();
        if shape != output.shape {
            return Ok(None);
        }
        let unit = if self.strides_in_elements { element } else { 1 };
        let strides = numbers(ask(&self.strides)?)?
            .into_iter()
            .map(|stride| stride as isize * unit as isize)
            .collect();
        let pointer = ask(&self.pointer)?;
        let (address, is_read_only) = match pointer.named(c"data") {
            Some(data) if pointer.is_dict() => (data.item(0)?.address()?, data.item(1)?.number()? != 0),
            _ => (pointer.address()?, false),
        };
        Ok(Some(Found {
            layout: Layout {
                address,
                shape,
                strides,
                element,
            },
            is_read_only,
            is_own_kind: kind == 0,
        }))
    }
}

/// A type of elements.
struct Kind {
    dtype: Object,
    /// Bytes of an element.
    element: usize,
}

impl Kind {
    /// From a tuple in the order of the fields.
    fn new(described: &Object) -> Result<Self, Failed> {
        Ok(Self {
            dtype: described.item(0)?,
            element: described.item(1)?.number()? as usize,
        })
    }
}

/// An output of the task, as its library sees it.
pub struct Output {
    /// Its own type of elements, then others that are accepted and converted.
    kinds: Vec<Kind>,
    shape: Vec<usize>,
    device: Option<Object>,
    /// Whether its elements lie on a GPU.
    pub on_device: bool,
    /// Types of scalars that stand for a tensor without dimensions.
    scalars: Vec<Object>,
}

impl Output {
    /// From a tuple in the order of the fields.
    pub fn new(described: &Object) -> Result<Self, Failed> {
        let kinds = described.item(0)?.items()?;
        let shape = described.item(1)?.items()?;
        Ok(Self {
            kinds: kinds.iter().map(Kind::new).collect::<Result<_, _>>()?,
            shape: shape
                .iter()
                .map(|size| Ok(size.number()? as usize))
                .collect::<Result<_, Failed>>()?,
            device: optional(described.item(2)?),
            on_device: described.item(3)?.number()? != 0,
            scalars: described.item(4)?.items()?,
        })
    }

    /// Bytes of one element of its own type.
    fn element(&self) -> usize {
        self.kinds[0].element
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.element()
    }

    /// Where an output lies that the worker allocated, in row-major order.
    pub fn at(&self, address: u64) -> Layout {
        let mut strides = vec![self.element() as isize; self.shape.len()];
        for dimension in (1..self.shape.len()).rev() {
            strides[dimension - 1] = strides[dimension] * self.shape[dimension] as isize;
        }
        Layout {
            address,
            shape: self.shape.clone(),
            strides,
            element: self.element(),
        }
    }
}

/// Where outputs stand in the returned value.
pub enum Tree {
    /// The output with this number.
    Output(usize),
    /// Something that is not compared.
    Ignored,
    /// A tuple or a list.
    Sequence(Vec<Self>),
    /// A dict.
    Dict(Vec<(Object, Self)>),
}

impl Tree {
    /// From a number (an output), None, or a tuple of a word's number (0: sequence, 1: dict) and a tuple of branches,
    /// for a dict of pairs of key and branch.
    pub fn new(described: &Object) -> Result<Self, Failed> {
        if described.is_none() {
            return Ok(Self::Ignored);
        }
        if !described.is_tuple() {
            return Ok(Self::Output(described.number()? as usize));
        }
        let branches = described.item(1)?.items()?;
        if described.item(0)?.number()? == 0 {
            let branches = branches.iter().map(Self::new).collect::<Result<_, _>>()?;
            return Ok(Self::Sequence(branches));
        }
        let pair = |pair: &Object| Ok((pair.item(0)?, Self::new(&pair.item(1)?)?));
        let branches = branches.iter().map(pair).collect::<Result<_, Failed>>()?;
        Ok(Self::Dict(branches))
    }

    /// Puts the tensors of a value into the places of their outputs; false if the value has another form.
    pub fn harvest(&self, value: &Object, found: &mut [Option<Object>]) -> Result<bool, Failed> {
        match self {
            Self::Ignored => Ok(true),
            Self::Output(index) => match found.get_mut(*index) {
                Some(place) => {
                    *place = Some(value.again()?);
                    Ok(true)
                }
                None => Ok(false),
            },
            Self::Sequence(branches) => {
                if !(value.is_tuple() || value.is_list()) || value.len()? != branches.len() {
                    return Ok(false);
                }
                for (index, branch) in branches.iter().enumerate() {
                    if !branch.harvest(&value.item(index)?, found)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Dict(branches) => {
                if !value.is_dict() || value.len()? != branches.len() {
                    return Ok(false);
                }
                for (key, branch) in branches {
                    match value.value(key) {
                        Some(below) if branch.harvest(&below, found)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
        }
    }
}
