//! A server among hostile clients: whatever they send, it refuses it, stays, and queues nothing.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use gauntlet_http::{Scope, Setup, Tokens, serve};
use gauntlet_worker::Program;

/// A server on a thread of this process.
struct Server {
    address: SocketAddr,
    token: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let queue = folder.join("queue");
        let token = Tokens::in_folder(&queue).add("alice", Scope::Submit).unwrap();
        let setup = Setup {
            listen: "127.0.0.1:0".parse().unwrap(),
            hosts: Vec::new(),
            queue,
            workplace: None,
            serves_agents: true,
            program: Program::new("/bin/false"),
            version: "test".to_owned(),
            ledger: folder.join("ledger.sqlite"),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let (say, hear) = mpsc::channel();
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let is_stopped = || stopped.load(Ordering::Relaxed);
            serve(setup, |address| say.send(address).unwrap(), is_stopped).unwrap();
        });
        Self {
            address: hear.recv().unwrap(),
            token,
            stop,
            thread: Some(thread),
        }
    }

    /// The status of the answer to some bytes; none if the connection was closed without one. The server takes the end of what a client
    /// sends, if `is_last` says to tell it, as a sign that the client has gone.
    fn status(&self, bytes: &[u8], is_last: bool) -> Option<u16> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        // The server may refuse before it has read everything.
        let _sent = stream.write_all(bytes);
        if is_last {
            let _closed = stream.shutdown(Shutdown::Write);
        }
        let mut answer = Vec::new();
        let _heard = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        text.strip_prefix("HTTP/1.1 ")
            .or_else(|| text.strip_prefix("HTTP/1.0 "))
            .map(|rest| rest[..3].parse().unwrap())
    }

    /// A well-formed request of the holder of a token.
    fn ask(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        let head = format!(
            "{head}Authorization: Bearer {}\r\nContent-Length: {length}\r\n",
            self.token
        );
        format!("{head}Connection: close\r\n\r\n{body}").into_bytes()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap()
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.roll(all.len())]
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let count = self.roll(most);
        (0..count)
            .map(|_| u8::try_from(self.roll(256)).unwrap())
            .collect()
    }
}

const PATHS: [&str; 12] = [
    "/judgements",
    "/judgements/../../tokens.json",
    "/judgements/%2e%2e%2f%2e%2e%2ftokens.json/events",
    "/judgements/%00?wait=99999999999999999999",
    "/sources/..%2f..%2ftokens.json",
    "/pages/../../../etc/passwd",
    "/pages/tasks/%2e%2e%2f%2e%2e%2fqueue%2ftokens.json",
    "/pages/verdicts/..%2fx.html",
    "/mcp",
    "//evil.example/queue",
    "/judgements/'%20OR%201=1--",
    "/\u{7f}",
];

const BODIES: [&str; 9] = [
    "",
    "{",
    "[[[[",
    "\u{0}",
    r#"{"judgement": {"command": "check", "task": "/etc/passwd", "kernels": ["../../k.py:f"]}}"#,
    r#"{"judgement": {"command": "shell", "task": "x", "kernels": []}}"#,
    r#"{"judgement": {"command": "tune", "task": "rms-norm", "kernels": [], "pairs": -1}}"#,
    r#"{"judgement": {"command": "check", "task": "t.py", "kernels": ["k.py:f"]}, "sources": {"t.py": "", "k.py": "", "../../x": ""}}"#,
    r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_task", "arguments": {"task": "/etc/passwd"}}}"#,
];

const METHODS: [&str; 8] = [
    "GET", "POST", "PUT", "DELETE", "PATCH", "CONNECT", "TRACE", "NONSENSE",
];

/// A hostile request.
fn request(server: &Server, dice: &mut Dice) -> Vec<u8> {
    let (method, path, body) = (dice.one_of(&METHODS), dice.one_of(&PATHS), dice.one_of(&BODIES));
    let (address, token) = (server.address, &server.token);
    match dice.roll(11) {
        // No request at all.
        0 => dice.bytes(4000),
        // Without a token, or with a wrong one.
        1 => format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes(),
        2 => {
            let wrong = "0".repeat(dice.roll(300));
            format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {wrong}\r\n\r\n")
                .into_bytes()
        }
        // For another server, or from a page of one.
        3 => format!("GET /queue HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer {token}\r\n\r\n")
            .into_bytes(),
        4 => {
            let head = format!("GET /queue HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
            format!("{head}Origin: http://evil.example\r\n\r\n").into_bytes()
        }
        // Larger than allowed: a head, a body that is announced, a body that is not.
        5 => format!(
            "GET /queue HTTP/1.1\r\nHost: {address}\r\nX: {}\r\n\r\n",
            "x".repeat(100_000)
        )
        .into_bytes(),
        6 => {
            let length = 9_u64 << (20 + dice.roll(20));
            let head =
                format!("POST /judgements HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
            format!("{head}Content-Length: {length}\r\n\r\n{{").into_bytes()
        }
        7 => {
            let head =
                format!("POST /judgements HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
            format!("{head}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\nfffffffffffffffff\r\n")
                .into_bytes()
        }
        // With a token, and with nonsense.
        8 => server.ask("POST", dice.one_of(&["/judgements", "/mcp"]), body),
        9 => server.ask("POST", "/judgements", &"[".repeat(dice.roll(200_000))),
        _ => {
            let mut bytes = server.ask(dice.one_of(&["POST", "PUT", "DELETE"]), path, body);
            let at = dice.roll(bytes.len());
            bytes[at] = u8::try_from(dice.roll(256)).unwrap();
            bytes
        }
    }
}

fn among_hostile_requests(count: usize) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    // Clients that send half a request and nothing more.
    let slow: Vec<_> = (0..30)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.write_all(b"POST /judgements HTTP/1.1\r\nHost: ").unwrap();
            stream
        })
        .collect();
    let mut dice = Dice(1);
    let mut refused = 0;
    for number in 0..count {
        let bytes = request(&server, &mut dice);
        let status = server.status(&bytes, true);
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]);
        // Tools of agents answer with what is wrong, in an answer of their own.
        let is_an_answer = status == Some(200) && shown.starts_with("POST /mcp");
        assert!(
            is_an_answer || status.is_none_or(|status| (400..500).contains(&status)),
            "request {number}: {status:?} for {shown}"
        );
        refused += usize::from(status.is_some());
    }
    assert!(refused > count / 2, "only {refused} of {count} were answered");
    assert_eq!(server.status(&server.ask("GET", "/queue", ""), false), Some(200));
    drop(slow);
    let queue = gauntlet_queue::Queue::open(&folder.path().join("queue")).unwrap();
    assert!(queue.counts().unwrap().is_empty(), "something was queued");
    let mut left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["queue"], "something was written beside the queue");
}

#[test]
fn hostile_requests_are_refused_and_leave_nothing() {
    among_hostile_requests(2_000);
}

#[test]
#[ignore = "takes a minute"]
fn many_hostile_requests_are_refused_and_leave_nothing() {
    among_hostile_requests(10_000);
}
