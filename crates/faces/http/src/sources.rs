//! Files that judgements need: by their digest, or within the request.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{self, State};
use axum::http::StatusCode;
use gauntlet_device::Device;
use gauntlet_judge::{KernelForm, KernelText};
use gauntlet_queue::{JudgementKind, Queue, digest};
use nix::sys::statvfs::statvfs;
use schemars::JsonSchema;
use serde::Serialize;

use crate::judgements::Asked;
use crate::refusal::Refusal;
use crate::service::{Service, named};

/// The most files of a judgement.
const MAX_FILES: usize = 256;

/// The most bytes that a judgement's files hold together.
const MAX_BYTES: usize = 64 << 20;

/// The longest path of a file.
const MAX_PATH: usize = 200;

/// What files leave free on the disk, for the ledger and the results.
const KEPT_FREE: u64 = 1 << 30;

/// A file that was stored.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Stored {
    /// The SHA-256 digest of its contents.
    pub digest: String,
}

/// Stores the contents of a file.
pub async fn store(
    State(service): State<Arc<Service>>,
    path: Result<extract::Path<String>, PathRejection>,
    contents: Bytes,
) -> Result<(StatusCode, Json<Stored>), Refusal> {
    let named = named(path)?;
    let stored = service
        .aside(move |service| {
            let digest = digest(&contents);
            if digest != named {
                return Err(Refusal::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    format!("the SHA-256 digest of these contents is {digest}"),
                    format!("PUT them to /sources/{digest}"),
                ));
            }
            let blobs = service.queue.blobs();
            leave_room(blobs.folder())?;
            Ok(Stored {
                digest: blobs.put(&contents)?,
            })
        })
        .await?;
    Ok((StatusCode::CREATED, Json(stored)))
}

/// Refuses files on a disk that is nearly full.
fn leave_room(folder: &Path) -> Result<(), Refusal> {
    let there = folder.parent().unwrap_or(folder);
    let disk = statvfs(there).map_err(|error| Refusal::broken(&error))?;
    if disk.blocks_available() * disk.fragment_size() < KEPT_FREE {
        return Err(Refusal::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "the server's disk is nearly full",
            "tell whoever runs the server",
        ));
    }
    Ok(())
}

/// The contents of a judgement's files by path.
pub fn of(queue: &Queue, asked: &Asked) -> Result<BTreeMap<String, Vec<u8>>, Refusal> {
    let wrong =
        |error: String, remedy: &str| Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error, remedy));
    let mut paths = asked.sources.keys().chain(asked.stored.keys());
    if asked.sources.len() + asked.stored.len() > MAX_FILES {
        return wrong(
            format!("there are more than {MAX_FILES} files"),
            "send those that are needed",
        );
    }
    let is_plain = |path: &String| path.len() <= MAX_PATH && !path.contains(char::is_control);
    if let Some(path) = paths.find(|path| !is_plain(path)) {
        return wrong(
            format!("{path:?} is no path of a file"),
            "give paths of at most 200 letters, without control characters",
        );
    }
    let names = asked.judgement.arguments().map(|_| Names::of(asked))?;
    names.check()?;
    let blobs = queue.blobs();
    leave_room(blobs.folder())?;
    let texts = asked
        .sources
        .iter()
        .map(|(path, text)| (path.clone(), text.clone().into_bytes()));
    let mut files: BTreeMap<_, _> = texts.collect();
    let mut bytes: usize = files.values().map(Vec::len).sum();
    for (path, digest) in &asked.stored {
        let contents = blobs.get(digest, path)?;
        bytes += contents.len();
        if bytes > MAX_BYTES {
            return wrong(
                format!("the files hold more than {} MiB together", MAX_BYTES >> 20),
                "send smaller ones",
            );
        }
        if files.insert(path.clone(), contents).is_some() {
            return wrong(
                format!("{path} is given twice"),
                "give it in `sources` or in `stored`",
            );
        }
    }
    Ok(files)
}

/// What a judgement names. A name that is neither built in nor a file that was sent would be looked for on the server's disk.
struct Names<'a> {
    asked: &'a Asked,
}

impl<'a> Names<'a> {
    fn of(asked: &'a Asked) -> Self {
        Self { asked }
    }

    fn check(&self) -> Result<(), Refusal> {
        let judgement = &self.asked.judgement;
        // It names files of the machine that plays the round.
        if judgement.command == JudgementKind::Errand {
            return Err(Refusal::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "an errand is no judgement of a client's",
                "ask for `check`, `compare`, `judge` or `tune`; `gauntlet run --farm` queues errands itself",
            ));
        }
        let task = &judgement.task;
        let is_built_in = gauntlet_families::suite_names().contains(&task.as_str());
        if !is_built_in && !self.is_sent(Path::new(task)) {
            return Err(Self::missing("task", task));
        }
        for kernel in &judgement.kernels {
            let text: KernelText = kernel.parse().map_err(|error: gauntlet_judge::KernelTextError| {
                Refusal::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    error.to_string(),
                    error.remedy(),
                )
            })?;
            // Words of a command may be programs of the machine.
            let is_command = matches!(text.form(), KernelForm::Command(_));
            let mut files: Vec<PathBuf> = text.files();
            files.retain(|_| !is_command);
            if !files.iter().all(|file| self.is_sent(file)) {
                return Err(Self::missing("kernel", kernel));
            }
        }
        let is_known = |name: &str| name == "host" || Device::builtin_names().any(|known| known == name);
        match &judgement.device {
            Some(device) if !is_known(device) && !self.is_sent(Path::new(device)) => {
                Err(Self::missing("device", device))
            }
            _ => Ok(()),
        }
    }

    /// Whether a path is a file that was sent, or a folder of such.
    fn is_sent(&self, path: &Path) -> bool {
        let mut sent = self.asked.sources.keys().chain(self.asked.stored.keys());
        !path.as_os_str().is_empty() && sent.any(|sent| Path::new(sent).starts_with(path))
    }

    fn missing(what: &str, name: &str) -> Refusal {
        Refusal::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("the {what} `{name}` is not built in, and its file is not among those that were sent"),
            "send the file in `sources` under the path that names it; GET /tasks and /devices list what is built in",
        )
    }
}
