//! The parameters of a C function, as its library or a file beside it tells them, and the table to write.

use std::borrow::Cow;
use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use gauntlet_task::Scope;
use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, DwarfSections, EndianSlice, RunTimeEndian, SectionId,
    Unit,
};
use gimli::{DW_AT_linkage_name, DW_AT_name, DW_AT_type, DW_TAG_formal_parameter, DW_TAG_subprogram};
use object::{Object, ObjectSection};

/// The longest library whose debug information is read, and the longest source.
const MAX_BYTES: [u64; 2] = [1 << 30, 1 << 22];

/// Endings of files that may declare a function.
const DECLARING: [&str; 8] = ["h", "hh", "hpp", "c", "cc", "cpp", "cxx", "cu"];

/// The parameters of a function in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signature {
    parameters: Vec<String>,
    returns_int: bool,
    /// The file that declares it; none if the debug information does.
    file: Option<PathBuf>,
}

impl Signature {
    /// What the debug information says, or the first file beside the library that declares the function.
    fn find(library: &Path, function: &str) -> Option<Self> {
        debugged(library, function).or_else(|| declared_beside(library, function))
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file.as_deref().and_then(Path::file_name) {
            Some(file) => write!(formatter, "by {}", file.to_string_lossy())?,
            None => formatter.write_str("by the debug information")?,
        }
        write!(formatter, " its parameters are {}", self.parameters.join(", "))
    }
}

/// What to write to the table beside a library, so that a function gets its arguments in its own order.
pub(crate) fn advice(library: &Path, function: &str, scope: &Scope, stream: Option<&str>) -> String {
    let tensors = scope
        .inputs()
        .iter()
        .chain(scope.outputs())
        .map(|spec| spec.name.replace('-', "_"));
    let sizes = scope.sizes().iter().cloned();
    let known: Vec<String> = tensors.chain(sizes).chain(stream.map(str::to_owned)).collect();
    let table = library.with_extension("toml");
    let write = |arguments: &[String], returns_int: bool| {
        let list: Vec<String> = arguments.iter().map(|name| format!("\"{name}\"")).collect();
        let list = format!("arguments = [{}]", list.join(", "));
        let returns = if returns_int { ", returns = \"int\"" } else { "" };
        match table.exists() {
            true => format!(
                "give the entry [{function}] of {} this line: {list}",
                table.display()
            ),
            false => format!("write to {}: {function} = {{ {list}{returns} }}", table.display()),
        }
    };
    match Signature::find(library, function) {
        Some(signature) if signature.parameters.iter().all(|name| known.contains(name)) => {
            format!(
                "{signature}, so {}",
                write(&signature.parameters, signature.returns_int)
            )
        }
        Some(signature) => {
            let named = signature.parameters.iter();
            let named = named.map(|name| {
                if known.contains(name) {
                    name.clone()
                } else {
                    "?".to_owned()
                }
            });
            let list = write(&named.collect::<Vec<_>>(), signature.returns_int);
            format!(
                "{signature}; put what each ? is, one of {}, and {list}",
                known.join(", ")
            )
        }
        None => format!(
            "neither debug information (cc -g) nor a header beside it tells the order; with these names in the order of the function's \
             own parameters, {}",
            write(&known, false)
        ),
    }
}

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// A function in the debug information of a library.
fn debugged(library: &Path, function: &str) -> Option<Signature> {
    let bytes = contents(library, MAX_BYTES[0])?;
    let object = object::File::parse(&*bytes).ok()?;
    let endian = if object.is_little_endian() {
        RunTimeEndian::Little
    } else {
        RunTimeEndian::Big
    };
    let section = |id: SectionId| {
        let data = object
            .section_by_name(id.name())
            .and_then(|section| section.uncompressed_data().ok());
        Ok::<_, gimli::Error>(data.unwrap_or(Cow::Borrowed(&[])))
    };
    let sections = DwarfSections::load(section).ok()?;
    let dwarf = sections.borrow(|data| EndianSlice::new(data, endian));
    let mut units = dwarf.units();
    while let Some(header) = units.next().ok()? {
        let unit = dwarf.unit(header).ok()?;
        if let Some(found) = in_unit(&dwarf, &unit, function).ok().flatten() {
            return Some(found);
        }
    }
    None
}

fn in_unit(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    function: &str,
) -> gimli::Result<Option<Signature>> {
    let mut entries = unit.entries();
    let mut found: Option<(isize, Signature)> = None;
    while let Some(entry) = entries.next_dfs()? {
        match &mut found {
            Some((depth, signature))
                if entry.depth() == *depth + 1 && entry.tag() == DW_TAG_formal_parameter =>
            {
                match text(dwarf, unit, entry.attr_value(DW_AT_name)) {
                    Some(name) => signature.parameters.push(name),
                    None => return Ok(None),
                }
            }
            // What lies deeper in the function.
            Some((depth, _)) if entry.depth() > *depth => {}
            Some((_, signature)) => return Ok(Some(signature.clone())),
            None if entry.tag() == DW_TAG_subprogram && is_named(dwarf, unit, entry, function) => {
                let signature = Signature {
                    parameters: Vec::new(),
                    returns_int: returns_int(dwarf, unit, entry),
                    file: None,
                };
                found = Some((entry.depth(), signature));
            }
            None => {}
        }
    }
    Ok(found.map(|(_, signature)| signature))
}

fn is_named(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    entry: &DebuggingInformationEntry<Slice<'_>>,
    function: &str,
) -> bool {
    // A C++ function is exported by its linkage name, if it has one.
    let name = entry
        .attr_value(DW_AT_linkage_name)
        .or_else(|| entry.attr_value(DW_AT_name));
    text(dwarf, unit, name).is_some_and(|name| name == function)
}

fn returns_int(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    entry: &DebuggingInformationEntry<Slice<'_>>,
) -> bool {
    let Some(AttributeValue::UnitRef(offset)) = entry.attr_value(DW_AT_type) else {
        return false;
    };
    let name = unit
        .entry(offset)
        .ok()
        .and_then(|entry| text(dwarf, unit, entry.attr_value(DW_AT_name)));
    name.is_some_and(|name| name == "int")
}

fn text(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    value: Option<AttributeValue<Slice<'_>>>,
) -> Option<String> {
    let text = dwarf.attr_string(unit, value?).ok()?;
    Some(text.to_string_lossy().into_owned())
}

/// A function in the files of the library's folder, in the order of their names.
fn declared_beside(library: &Path, function: &str) -> Option<Signature> {
    let entries = fs::read_dir(library.parent()?).ok()?.flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| {
        let ending = file.extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| DECLARING.contains(&ending))
    });
    files.sort();
    files.into_iter().find_map(|file| {
        let text = contents(&file, MAX_BYTES[1])?;
        let (parameters, returns_int) = declared(&String::from_utf8_lossy(&text), function)?;
        Some(Signature {
            parameters,
            returns_int,
            file: Some(file),
        })
    })
}

/// The bytes of a regular file, if it has at most `most` of them.
fn contents(path: &Path, most: u64) -> Option<Vec<u8>> {
    let found = fs::metadata(path).ok()?;
    if !found.is_file() || found.len() > most {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Words of types, behind which a parameter has no name.
const TYPES: [&str; 8] = [
    "void", "char", "short", "int", "long", "float", "double", "unsigned",
];

/// The parameters of a function's first declaration or definition in C, and whether it returns an `int`.
fn declared(source: &str, function: &str) -> Option<(Vec<String>, bool)> {
    let code = without_comments(source);
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    for (at, _) in code.match_indices(function) {
        let (before, behind) = (&code[..at], &code[at + function.len()..]);
        if before.ends_with(is_word) || behind.starts_with(is_word) {
            continue;
        }
        let Some(inner) = behind
            .trim_start()
            .strip_prefix('(')
            .and_then(|rest| rest.split(')').next())
        else {
            continue;
        };
        // A type comes before a declaration; what comes before a call is something else.
        let before = before.trim_end();
        let word = before
            .rsplit(|letter| !is_word(letter))
            .next()
            .unwrap_or_default();
        if (word.is_empty() && !before.ends_with('*')) || ["return", "else", "do", "define"].contains(&word) {
            continue;
        }
        let named = |parameter: &str| {
            let name = parameter.split('[').next()?.trim_end();
            let name = name.rsplit(|letter| !is_word(letter)).next()?;
            let has_type = parameter.trim().len() > name.len();
            (has_type && !name.is_empty() && !TYPES.contains(&name) && !name.ends_with("_t"))
                .then(|| name.to_owned())
        };
        let parameters = match inner.trim() {
            "" | "void" => Some(Vec::new()),
            inner => inner.split(',').map(named).collect(),
        };
        if let Some(parameters) = parameters {
            return Some((parameters, word == "int"));
        }
    }
    None
}

fn without_comments(source: &str) -> String {
    let (mut code, mut rest) = (String::new(), source);
    while let Some(at) = rest.find("/*").into_iter().chain(rest.find("//")).min() {
        code.push_str(&rest[..at]);
        code.push(' ');
        let end = if rest[at..].starts_with("/*") { "*/" } else { "\n" };
        rest = rest[at + 2..].split_once(end).map_or("", |(_, behind)| behind);
    }
    code.push_str(rest);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Option<(String, bool)> {
        declared(source, "soft").map(|(parameters, returns_int)| (parameters.join(" "), returns_int))
    }

    #[test]
    fn a_declaration_tells_the_names_in_their_order() {
        for (source, expected) in [
            (
                "void soft(const float *x, float *y, int64_t rows, int64_t cols);",
                "x y rows cols",
            ),
            (
                "extern \"C\" void soft(float* y,\n  const float x[], // the input\n  long n /* rows */) {",
                "y x n",
            ),
            ("float *soft(float *restrict a);", "a"),
            (
                "void other(int a); int f(void) { return soft(1, 2); } void soft (int b)",
                "b",
            ),
            ("void my_soft(int a); void softmax(int a); void soft(int c);", "c"),
            (
                "void soft(const float *, int);\nvoid soft(const float *x, int n) {}",
                "x n",
            ),
        ] {
            assert_eq!(found(source), Some((expected.to_owned(), false)), "{source}");
        }
        assert_eq!(found("int soft(void);"), Some((String::new(), true)));
    }

    #[test]
    fn what_declares_nothing_tells_nothing() {
        for source in [
            "",
            "soft",
            "soft(",
            "void soft(const float *, float *, int64_t);",
            "y = soft(x, n);",
            "// void soft(int a);",
            "/* void soft(int a);",
            "#define soft(a) a",
        ] {
            assert_eq!(found(source), None, "{source}");
        }
    }
}
