//! Server-sent events: blocks of lines, of which those that begin with `data:` count here.

use std::io::{self, BufRead, BufReader, Read, Take};

/// The most bytes of a stream. An answer of the most tokens takes a few MiB.
pub(crate) const MAX_STREAM: u64 = 32 << 20;

/// The events of a stream.
pub(crate) struct Events<R> {
    stream: BufReader<Take<R>>,
}

impl<R: Read> Events<R> {
    pub fn new(stream: R) -> Self {
        Self {
            stream: BufReader::new(stream.take(MAX_STREAM)),
        }
    }

    /// Whether the stream ended only because it is longer than anybody reads.
    pub fn is_flood(&self) -> bool {
        self.stream.get_ref().limit() == 0
    }

    /// The data of the next event; none at the end of the stream. An event that is cut off is left out.
    ///
    /// # Errors
    /// If the stream cannot be read, or, as [`io::ErrorKind::InvalidData`], is no UTF-8.
    pub fn next(&mut self) -> io::Result<Option<String>> {
        let mut data = String::new();
        let mut line = Vec::new();
        loop {
            line.clear();
            self.stream.read_until(b'\n', &mut line)?;
            if line.pop() != Some(b'\n') {
                return Ok(None);
            }
            // Decoded as a whole: the pieces that arrive may cut characters.
            let line = std::str::from_utf8(&line)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let line = line.trim_end_matches('\r');
            if line.is_empty() && !data.is_empty() {
                return Ok(Some(data));
            }
            if let Some(value) = line.strip_prefix("data:") {
                if !data.is_empty() {
                    data.push('\n');
                }
                data.push_str(value.strip_prefix(' ').unwrap_or(value));
            }
        }
    }
}
