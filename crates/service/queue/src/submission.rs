//! What a client asks of a queue.

use std::collections::BTreeMap;

use crate::judgement::Judgement;

/// What a client wants to be judged.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Who asks.
    pub client: String,
    /// The client's own name for it: the same key again is the same ticket. Without one, the same judgement of the same sources
    /// is the same ticket only until it is decided.
    pub key: Option<String>,
    /// What is to be judged.
    pub judgement: Judgement,
    /// The contents of files by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The name of the folder that they are from.
    pub folder: Option<String>,
}

impl Submission {
    /// A judgement that needs no files.
    pub fn new(client: &str, judgement: Judgement) -> Self {
        Self {
            client: client.to_owned(),
            key: None,
            judgement,
            files: BTreeMap::new(),
            folder: None,
        }
    }
}
