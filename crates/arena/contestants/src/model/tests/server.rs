//! A server on loopback: one answer of a script for each request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use serde_json::Value;

/// What a server does with a request.
pub(super) enum Act {
    /// Sends these pieces one by one, and closes the connection.
    Send(Vec<Vec<u8>>),
    /// Sends this, and then nothing more while the test lasts.
    Hang(Vec<u8>),
}

/// A request that a server got.
pub(super) struct Got {
    /// The first line and the headers.
    pub head: String,
    pub body: Value,
}

pub(super) struct Server {
    pub address: String,
    playing: JoinHandle<Vec<Got>>,
}

impl Server {
    /// Answers as many requests as the script has acts.
    pub fn playing(script: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let playing = thread::spawn(move || {
            let mut hanging = Vec::new();
            let play = |act| {
                let (mut connection, _) = listener.accept().unwrap();
                connection.set_nodelay(true).unwrap();
                let got = read(&connection);
                match act {
                    Act::Send(pieces) => {
                        for piece in pieces {
                            // Whoever has heard enough closes the connection.
                            if connection.write_all(&piece).is_err() {
                                break;
                            }
                        }
                    }
                    Act::Hang(piece) => {
                        // Whoever has waited enough has closed it.
                        let _told = connection.write_all(&piece);
                        hanging.push(connection);
                    }
                }
                got
            };
            let got = script.into_iter().map(play).collect();
            // A connection that hangs is closed by the other side.
            for mut connection in hanging {
                let _closed = connection.read(&mut [0]);
            }
            got
        });
        Self { address, playing }
    }

    /// The requests, all of which must have come.
    pub fn got(self) -> Vec<Got> {
        self.playing.join().unwrap()
    }
}

fn read(connection: &TcpStream) -> Got {
    let mut reader = BufReader::new(connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0);
    }
    let head = head.to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    Got {
        head,
        body: serde_json::from_slice(&body).unwrap(),
    }
}

/// The beginning of a stream.
pub(super) fn head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n".to_vec()
}

/// A stream of these events' data.
pub(super) fn stream(events: &[String]) -> Act {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    Act::Send(vec![head(), body.into_bytes()])
}

/// The same in chunks that do not end where events do, over a connection that promises to stay open.
pub(super) fn chunked(events: &[String]) -> Act {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut pieces = vec![head.to_vec()];
    for bytes in body.as_bytes().chunks(7) {
        pieces.push([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat());
    }
    pieces.push(b"0\r\n\r\n".to_vec());
    Act::Send(pieces)
}

/// An answer that is no stream.
pub(super) fn status(status: &str, headers: &str, body: &str) -> Act {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\n{headers}content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    Act::Send(vec![text.into_bytes()])
}
