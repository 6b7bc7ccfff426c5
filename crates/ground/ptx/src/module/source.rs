//! Lines of the source from which PTX was compiled (`.loc` and `.file`).

use std::collections::HashMap;

/// The file and the line of each instruction.
#[derive(Debug, Clone, Default)]
pub(super) struct Source {
    /// Where the next instructions come from.
    current: Option<(u32, u32)>,
    lines: Vec<Option<(u32, u32)>>,
    files: HashMap<u32, String>,
}

impl Source {
    /// Takes ` 1 12 30` or ` 1 12 30, function_name …, inlined_at …`, which stand behind `.loc`; line 0 says nothing.
    pub fn stand(&mut self, text: &str) {
        let mut numbers = text
            .split(',')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .map_while(|number| number.parse().ok());
        if let (Some(file), Some(line @ 1..)) = (numbers.next(), numbers.next()) {
            self.current = Some((file, line));
        }
    }

    /// Notes an instruction.
    pub fn note(&mut self) {
        self.lines.push(self.current);
    }

    /// With the names of the files, `.file 1 "x.cu"`, which stand anywhere in the text.
    pub fn with_files(mut self, text: &str) -> Self {
        for line in text.lines().filter_map(|line| line.trim().strip_prefix(".file")) {
            let mut parts = line.split('"');
            let number = parts.next().and_then(|number| number.trim().parse().ok());
            if let (Some(number), Some(path)) = (number, parts.next()) {
                let name = path.rsplit('/').next().unwrap_or(path);
                self.files.insert(number, name.to_owned());
            }
        }
        self
    }

    /// The file and the line of an instruction.
    pub fn of(&self, instruction: usize) -> Option<String> {
        self.named(*self.lines.get(instruction)?)
    }

    /// Those of the next instruction.
    pub fn here(&self) -> Option<String> {
        self.named(self.current)
    }

    fn named(&self, place: Option<(u32, u32)>) -> Option<String> {
        let (file, line) = place?;
        Some(format!("{}:{line}", self.files.get(&file)?))
    }
}

/// The last part of a mangled name: `parts` of `_ZZ6sum_okE5parts`.
pub(super) fn short(name: &str) -> &str {
    let part = |(at, _): (usize, char)| {
        let count = name[at + 1..].chars().take_while(char::is_ascii_digit).count();
        let (length, part) = name[at + 1..].split_at_checked(count)?;
        (length.parse() == Ok(part.len())).then_some(part)
    };
    let mut parts = name
        .char_indices()
        .filter(|(_, letter)| *letter == 'E')
        .filter_map(part);
    match name.starts_with("_Z") {
        true => parts.next_back().unwrap_or(name),
        false => name,
    }
}
