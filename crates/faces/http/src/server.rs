//! Connections: accepted, bounded, and ended.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::select;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use crate::service::Service;

/// The most connections at a time; more wait to be accepted.
const CONNECTIONS: usize = 256;

/// How long the head of a request may take, and how long a connection may be idle.
const HEAD: Duration = Duration::from_secs(10);

/// The most bytes of a request's head.
const MAX_HEAD: usize = 64 << 10;

/// How long a connection lives at most, whatever its client does.
const LIFE: Duration = Duration::from_mins(15);

/// How long answers that are under way may take when the server is told to end.
const FAREWELL: Duration = Duration::from_secs(5);

/// How often to look whether the server is to end.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers until it is told to stop, and finishes what is under way.
pub async fn run(listener: TcpListener, router: Router, service: Arc<Service>, stop: impl Fn() -> bool) {
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let stopped = async {
        while !stop() {
            sleep(PAUSE).await;
        }
    };
    let accepted = async {
        loop {
            let Ok(place) = places.clone().acquire_owned().await else {
                return;
            };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let connection =
                        answer(stream, place, router.clone(), service.clone(), graceful.watcher());
                    tokio::spawn(connection);
                }
                Err(error) => wait_after(&error).await,
            }
        }
    };
    select! {
        () = accepted => {}
        () = stopped => {}
    }
    drop(listener);
    service.stopping.store(true, Ordering::Relaxed);
    let _ended = timeout(FAREWELL, graceful.shutdown()).await;
}

async fn answer(
    stream: TcpStream,
    place: OwnedSemaphorePermit,
    router: Router,
    service: Arc<Service>,
    watcher: Watcher,
) {
    // Small answers go out at once.
    let _set = stream.set_nodelay(true);
    let open = &service.metrics.connections;
    open.fetch_add(1, Ordering::Relaxed);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // What a client breaks off is its own affair.
    let _ended = timeout(LIFE, watcher.watch(connection)).await;
    open.fetch_sub(1, Ordering::Relaxed);
    drop(place);
}

/// Waits after a connection that could not be accepted: without file handles all would fail at once, again and again.
async fn wait_after(error: &io::Error) {
    let is_the_clients = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    );
    if !is_the_clients {
        eprintln!("gauntlet serve: no connection can be accepted: {error}");
        sleep(Duration::from_secs(1)).await;
    }
}
