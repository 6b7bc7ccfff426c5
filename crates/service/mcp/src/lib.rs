//! The judge for agents: tools of the [Model Context Protocol](https://modelcontextprotocol.io), over standard input and output or HTTP.
//!
//! A tool answers in less than a minute with at most 1.5 kB of Markdown; what takes longer becomes a ticket of a
//! [`Queue`], whose jobs are processes of their own. A client that gives up, or goes, loses nothing: the ticket stays, and
//! so does its job. This process never runs or imports a candidate or a task; wrong names are found by a process that reads
//! both, before anything is queued.

mod answer;
mod arguments;
mod child;
mod places;
mod submission;
mod tools;
mod words;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use gauntlet_farm::{Farm, Here};
use gauntlet_queue::{Queue, QueueError};
use gauntlet_worker::Program;
use rmcp::ServiceExt;
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::runtime::Builder;

pub use crate::submission::submission;
pub use crate::tools::{ClientName, Tools};

/// What is served, and to whom. Tasks and kernels are files of the current folder.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The folder of tickets and results.
    pub queue: PathBuf,
    /// Rounds that agents may pitch into.
    pub rounds: Vec<PathBuf>,
    /// Whether this server runs tickets; else `gauntlet queue work` does.
    pub works: bool,
    /// The client to whom tries are counted, in place of the name that it gives itself.
    pub client: Option<String>,
    /// The program whose commands judge.
    pub program: Program,
    /// The version of the program.
    pub version: String,
    /// The ledger of rounds.
    pub ledger: PathBuf,
}

/// The tools as a service of HTTP, see [`over_http`].
pub type HttpTools = StreamableHttpService<Tools, NeverSessionManager>;

/// The tools as a service of HTTP. It keeps no sessions: nothing is left of a client that goes. Who is asked, who asks and how much is
/// sent is for the caller to check, who adds a [`ClientName`] to the request.
pub fn over_http(queue: Arc<Queue>, setup: Setup) -> HttpTools {
    let tools = Tools::new(queue, setup);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .disable_allowed_hosts();
    StreamableHttpService::new(move || Ok(tools.clone()), Arc::default(), config)
}

/// Serves one client on standard input and output until it goes, and runs the tickets of the queue meanwhile if it is to.
///
/// # Errors
/// If the queue cannot be used.
pub fn serve(setup: Setup) -> Result<(), QueueError> {
    let queue = Arc::new(Queue::open(&setup.queue)?);
    let files = |source: io::Error| QueueError::Files {
        path: setup.queue.clone(),
        source,
    };
    if setup.works {
        let here = Here::new(setup.program.clone(), setup.ledger.clone());
        let farm = Farm::new(queue.clone(), here, 1);
        // It ends with the process, and what it has started goes on.
        std::thread::Builder::new()
            .name("farm".to_owned())
            .spawn(move || farm.run_forever(|_| ()))
            .map_err(files)?;
    }
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(files)?;
    runtime.block_on(async {
        // A client that goes before or after the beginning is not this server's fault.
        if let Ok(service) = Tools::new(queue, setup).serve(stdio()).await {
            let _gone = service.waiting().await;
        }
    });
    runtime.shutdown_background();
    Ok(())
}
