//! The judge as a service over HTTP, for everyone with a token.
//!
//! A judgement becomes a ticket of a [`Queue`], with its sources by content; what is found is asked for, waited for, or told as
//! events. The server never runs or imports a kernel or a task: jobs do, which are processes of their own and outlive it.
//! Everything but the description of the service needs a [`Token`](Tokens) of a [`Scope`]; requests under other names than the
//! server's own, or from pages of other sites, are refused; and what one client may send, hold open or have under way is bounded.

mod events;
mod guard;
mod hosts;
mod judgements;
mod looking;
mod mcp;
mod metrics;
mod openapi;
mod pages;
mod refusal;
mod server;
mod service;
mod sources;
#[cfg(test)]
mod tests;
mod tokens;
mod turns;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use gauntlet_farm::{EngineError, Workplace};
use gauntlet_queue::{Queue, QueueError};
use gauntlet_worker::Program;
use tokio::runtime::Builder;

use crate::service::{Service, router};
pub use crate::tokens::{Scope, Token, TokenError, Tokens};

/// What is served, and where.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Where connections are accepted.
    pub listen: SocketAddr,
    /// Further names of the server, each with its port if it is not that of the protocol.
    pub hosts: Vec<String>,
    /// The folder of tickets, results and tokens.
    pub queue: PathBuf,
    /// Where this server has tickets run; none if `gauntlet queue work` does it.
    pub workplace: Option<Workplace>,
    /// Whether agents are served by the Model Context Protocol: tasks and kernels are files of the current folder.
    pub serves_agents: bool,
    /// The program whose commands judge.
    pub program: Program,
    /// The version of the program.
    pub version: String,
    /// The ledger in which jobs leave their records, and which pages show.
    pub ledger: PathBuf,
}

/// Why there is no service.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The queue cannot be used.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The system gives no random bits.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// No connection can be accepted there.
    #[error("{address} cannot be listened at: {source}; name another address and port by --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What went wrong.
        source: io::Error,
    },
    /// No ticket can be run.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The system gives no thread.
    #[error("the server cannot start: {0}; see what else runs on this machine")]
    Start(io::Error),
}

/// How much the server steps back behind what is measured on the same machine, as `nice` counts it.
const NICENESS: i32 = 10;

/// Serves until `stop` says so, and runs the tickets of the queue meanwhile if it is to. `listening` is told the address.
///
/// # Errors
/// If the queue cannot be used, or no connection can be accepted.
pub fn serve(
    setup: Setup,
    listening: impl FnOnce(SocketAddr),
    stop: impl Fn() -> bool,
) -> Result<(), ServeError> {
    let cannot = |source| ServeError::Listen {
        address: setup.listen,
        source,
    };
    let listener = TcpListener::bind(setup.listen).map_err(cannot)?;
    listener.set_nonblocking(true).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let queue = Arc::new(Queue::open(&setup.queue)?);
    if let Some(workplace) = &setup.workplace {
        let farm = workplace.farm(queue.clone(), setup.program.clone(), setup.ledger.clone())?;
        // It ends with the process, and what it has started goes on.
        std::thread::Builder::new()
            .name("farm".to_owned())
            .spawn(move || farm.run_forever(|event| eprintln!("gauntlet serve: {event}")))
            .map_err(ServeError::Start)?;
    }
    // After the farm has begun, whose jobs keep their priority.
    // SAFETY: the call takes numbers and changes nothing but the priority of this thread, and of those that it starts.
    let _stepped_back = unsafe { nix::libc::setpriority(nix::libc::PRIO_PROCESS, 0, NICENESS) };
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(16)
        .build()
        .map_err(ServeError::Start)?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).map_err(cannot)?;
        let service = Arc::new(Service::new(queue, address, &setup)?);
        listening(address);
        server::run(listener, router(service.clone()), service, stop).await;
        Ok(())
    })
}
