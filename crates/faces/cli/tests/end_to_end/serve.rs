//! `gauntlet serve`: a token, a judgement of the softmax example, its verdict, and another one given up.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::common::{Place, has_numpy, names, repository};

/// A server, which ends with the test.
struct Server {
    process: Child,
    address: String,
    token: String,
}

impl Server {
    fn start(place: &Place, options: &[&str]) -> Self {
        let token = place
            .run(&["serve", "token", "add", "alice", "--scope", "submit"])
            .expect(0)
            .out;
        let words = [&["serve", "--listen", "127.0.0.1:0"], options].concat();
        let mut process = place
            .command(&words)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.as_mut().unwrap());
        output.read_line(&mut line).unwrap();
        Self {
            process,
            address: line
                .trim()
                .strip_prefix("listening at http://")
                .unwrap()
                .to_owned(),
            token: token.trim().to_owned(),
        }
    }

    /// Status and body of an answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        self.ask_as("application/json", method, path, body)
    }

    /// The same of what a browser sends by the form for notes.
    fn send(&self, form: &str) -> (u16, String) {
        self.ask_as("application/x-www-form-urlencoded", "POST", "/pages/notes", form)
    }

    fn ask_as(&self, kind: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (address, token, length) = (&self.address, &self.token, body.len());
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
        let request = format!(
            "{head}Content-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn json(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let (status, text) = self.ask(method, path, &body);
        (status, serde_json::from_str(&text).unwrap())
    }

    /// Waits until nothing more will be known of a ticket.
    fn verdict(&self, id: &str) -> Value {
        loop {
            let (status, shown) = self.json("GET", &format!("/judgements/{id}?wait=45"), &Value::Null);
            assert_eq!(status, 200, "{shown}");
            let is_open = |state: &Value| ["queued", "running"].contains(&state.as_str().unwrap_or_default());
            if !is_open(&shown["state"]) && !is_open(&shown["confirmation"]["state"]) {
                return shown;
            }
        }
    }

    /// Tells it to end, and returns its exit code.
    fn end(mut self) -> Option<i32> {
        let number = i32::try_from(self.process.id()).unwrap();
        kill(Pid::from_raw(number), Signal::SIGTERM).unwrap();
        self.process.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _waited = self.process.wait();
    }
}

#[test]
fn a_kernel_is_judged_for_a_client_and_another_ticket_is_given_up() {
    if !has_numpy() {
        return;
    }
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let read = |name: &str| std::fs::read_to_string(repository("examples/softmax").join(name)).unwrap();
    let sources = json!({ "task.py": read("task.py"), "kernels.py": read("kernels.py") });
    let asked = |kernel: &str| {
        let judgement = json!({ "command": "check", "task": "task.py", "kernels": [kernel] });
        json!({ "judgement": judgement, "sources": sources, "folder": "softmax" })
    };
    let (status, ticket) = server.json("POST", "/judgements", &asked("kernels.py:slow"));
    assert_eq!(status, 202, "{ticket}");
    let found = server.verdict(ticket["id"].as_str().unwrap());
    assert_eq!(
        (&found["state"], &found["result"]["verdict"]),
        (&json!("decided"), &json!("right")),
        "{found}"
    );

    let (status, page) = server.ask("GET", "/pages/tasks.html", "");
    let task = page.split("tasks/").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(status, 200);
    let (status, page) = server.ask("GET", &format!("/pages/tasks/{task}"), "");
    assert!(status == 200 && page.contains("verdicts/"), "{task} {page}");

    notes_are_kept_and_two_verdicts_put_side_by_side(&server, &page);
    let followed = format!("/pages/tickets/{}.html", ticket["id"].as_str().unwrap());
    let (status, page) = server.ask("GET", &followed, "");
    assert!(
        status == 200 && page.contains("decided") && !page.contains("live.js"),
        "{page}"
    );

    let compare = json!({
        "judgement": {
            "command": "compare", "task": "task.py", "kernels": ["kernels.py:slow", "kernels.py:fast"], "budget": "600s"
        },
        "sources": sources,
    });
    let (_, ticket) = server.json("POST", "/judgements", &compare);
    let path = format!("/judgements/{}", ticket["id"].as_str().unwrap());
    let (status, given_up) = server.json("DELETE", &path, &Value::Null);
    assert_eq!(
        (status, &given_up["state"]),
        (200, &json!("cancelled")),
        "{given_up}"
    );
    let (_, now) = server.ask("GET", "/pages/now.html", "");
    assert!(now.contains("cancelled") && now.contains("live.js"), "{now}");
    let (_, events) = server.ask("GET", &format!("{path}/events"), "");
    assert!(events.contains("event: over"), "{events}");
    assert_eq!(server.end(), Some(0));
    assert!(
        std::fs::exists(place.path("ledger.sqlite")).unwrap(),
        "the job left its record"
    );
}

/// `page` links to a verdict.
#[track_caller]
fn notes_are_kept_and_two_verdicts_put_side_by_side(server: &Server, page: &str) {
    let run = page
        .split("verdicts/")
        .nth(1)
        .unwrap()
        .split(".html")
        .next()
        .unwrap();
    let verdict = format!("/pages/verdicts/{run}.html");
    let (_, page) = server.ask("GET", &verdict, "");
    let proof = page.split(r#"name="proof" value=""#).nth(1).unwrap();
    let proof = proof.split('"').next().unwrap();
    let form = format!("run={run}&act=annotate&text=right+as+it+stands&proof={proof}");
    let (status, said) = server.send(&form);
    assert_eq!(status, 303, "{said}");
    let (_, page) = server.ask("GET", &verdict, "");
    assert!(
        page.contains("right as it stands") && page.contains("alice"),
        "{page}"
    );
    let (status, page) = server.ask("GET", &format!("/pages/beside.html?left={run}&right={run}"), "");
    assert!(status == 200 && page.contains("Two verdicts"), "{page}");
    for (asked, expected) in [("?since=2020-01-01", 200), ("", 200), ("?since=yesterday", 404)] {
        let (status, page) = server.ask("GET", &format!("/pages/regressed.html{asked}"), "");
        assert_eq!(status, expected, "{asked} {page}");
    }
}

#[test]
fn a_server_is_told_to_end_while_a_client_listens_and_heeds_tokens_at_once() {
    let place = Place::new();
    let server = Server::start(&place, &["--no-work"]);
    let judgement = json!({ "command": "compare", "task": "rms-norm", "kernels": ["builtin", "stages=2"] });
    let (status, ticket) = server.json("POST", "/judgements", &json!({ "judgement": judgement }));
    assert_eq!(status, 202, "{ticket}");
    let path = format!("/judgements/{}/events", ticket["id"].as_str().unwrap());
    let mut listener = TcpStream::connect(&server.address).unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        server.address, server.token
    );
    listener.write_all(head.as_bytes()).unwrap();
    let mut heard = [0; 12];
    listener.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"HTTP/1.1 200");

    place.run(&["serve", "token", "remove", "alice"]).expect(0);
    assert_eq!(server.ask("GET", "/queue", "").0, 401);
    let listed = place.run(&["serve", "token", "list"]).expect(0);
    assert!(!listed.out.contains("alice"), "{}", listed.out);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn an_address_that_is_taken_is_named() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = place.run(&["serve", "--listen", &address]).expect(2);
    names(&ran, &[&address, "--listen"]);
    let ran = place.run(&["serve", "token", "remove", "nobody"]).expect(2);
    names(&ran, &["there is no token `nobody`"]);
}
