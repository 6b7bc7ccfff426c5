//! Requests and their answers, without a connection.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use gauntlet_queue::{Queue, digest};
use gauntlet_worker::Program;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower::ServiceExt;

use crate::Setup;
use crate::openapi::described;
use crate::service::{Service, router};
use crate::tokens::{Scope, Tokens};

/// A service without a connection, and the tokens of `reader`, `alice`, `bob` and `admin`.
struct Place {
    _folder: TempDir,
    router: Router,
    service: Arc<Service>,
    runtime: Runtime,
    tokens: [String; 4],
}

const READER: usize = 0;
const ALICE: usize = 1;
const BOB: usize = 2;
const ADMIN: usize = 3;

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::in_folder(folder.path());
        let made = [
            ("reader", Scope::Read),
            ("alice", Scope::Submit),
            ("bob", Scope::Submit),
            ("admin", Scope::Admin),
        ]
        .map(|(name, scope)| tokens.add(name, scope).unwrap());
        let queue = Arc::new(Queue::open(folder.path()).unwrap());
        let listen = "127.0.0.1:8485".parse().unwrap();
        let setup = Setup {
            listen,
            hosts: Vec::new(),
            queue: folder.path().to_owned(),
            workplace: None,
            serves_agents: true,
            program: Program::new("/bin/false"),
            version: "test".to_owned(),
            ledger: folder.path().join("ledger.sqlite"),
        };
        let service = Arc::new(Service::new(queue, listen, &setup).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        Self {
            router: router(service.clone()),
            service,
            runtime,
            tokens: made,
            _folder: folder,
        }
    }

    fn answer(&self, request: Request<Body>) -> Response<Body> {
        self.runtime
            .block_on(self.router.clone().oneshot(request))
            .unwrap()
    }

    fn text(&self, response: Response<Body>) -> String {
        let bytes = self
            .runtime
            .block_on(to_bytes(response.into_body(), 1 << 20))
            .unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// Status and JSON of an answer to the holder of a token.
    fn ask(&self, who: usize, method: Method, path: &str, body: impl Into<Body>) -> (u16, Value) {
        let request = self.request(who, method, path).body(body.into()).unwrap();
        let response = self.answer(request);
        let status = response.status().as_u16();
        let value: Value = serde_json::from_str(&self.text(response)).unwrap_or_default();
        if status >= 400 {
            assert!(
                value["error"].is_string() && value["remedy"].is_string(),
                "{status} {path}: {value}"
            );
        }
        (status, value)
    }

    fn request(&self, who: usize, method: Method, path: &str) -> axum::http::request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header("host", "127.0.0.1:8485")
            .header("authorization", format!("Bearer {}", self.tokens[who]))
    }

    fn submit(&self, who: usize, asked: &Value) -> (u16, Value) {
        self.ask(who, Method::POST, "/judgements", asked.to_string())
    }
}

fn built_in() -> Value {
    json!({ "judgement": { "command": "compare", "task": "rms-norm", "kernels": ["builtin", "stages=2"] } })
}

fn check(files: &Value) -> Value {
    let judgement = json!({ "command": "check", "task": "t.py", "kernels": ["k.py:f"] });
    let mut asked = files.clone();
    asked["judgement"] = judgement;
    asked
}

#[test]
fn nothing_is_told_without_a_token_and_nothing_is_queued_by_one_that_reads() {
    let place = Place::new();
    for (method, path) in described().filter(|(_, path)| *path != "/openapi.json") {
        for header in [
            None,
            Some("Bearer gauntlet_00"),
            Some("Basic YTpi"),
            Some("Bearer "),
            Some("x"),
        ] {
            let mut request = Request::builder().method(method.clone()).uri(path);
            request = request.header("host", "127.0.0.1:8485");
            if let Some(header) = header {
                request = request.header("authorization", header);
            }
            let response = place.answer(request.body(Body::empty()).unwrap());
            assert_eq!(response.status(), 401, "{method} {path} {header:?}");
            assert!(response.headers().contains_key("www-authenticate"));
        }
    }
    assert_eq!(place.submit(READER, &built_in()).0, 403);
    assert_eq!(place.ask(READER, Method::GET, "/judgements", "").1, json!([]));
}

#[test]
fn every_address_that_is_described_is_served() {
    let place = Place::new();
    let id = place.submit(ALICE, &built_in()).1["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut count = 0;
    for (method, path) in described() {
        let path = path.replace("{id}", &id).replace("{digest}", "0");
        let request = place
            .request(READER, method.clone(), &path)
            .body(Body::empty())
            .unwrap();
        let status = place.answer(request).status().as_u16();
        let expected = match method {
            // There is no ledger yet.
            Method::GET if path.starts_with("/pages") => 404,
            Method::GET => 200,
            _ => 403,
        };
        assert_eq!(status, expected, "{method} {path}");
        count += 1;
    }
    assert!(count > 10);
    assert_eq!(place.ask(READER, Method::GET, "/nothing", "").0, 404);
    assert_eq!(place.ask(ADMIN, Method::DELETE, "/queue", "").0, 405);
}

#[test]
fn a_judgement_is_queued_once_for_each_key() {
    let place = Place::new();
    let keyed = |who, key: &str, asked: &Value| {
        let request = place
            .request(who, Method::POST, "/judgements")
            .header("idempotency-key", key);
        let response = place.answer(request.body(Body::from(asked.to_string())).unwrap());
        let status = response.status().as_u16();
        let location = response
            .headers()
            .get("location")
            .map(|value| value.to_str().unwrap().to_owned());
        (status, location.unwrap_or_default())
    };
    let (status, first) = keyed(ALICE, "one", &built_in());
    assert!(
        status == 202 && first.starts_with("/judgements/"),
        "{status} {first}"
    );
    assert_eq!(keyed(ALICE, "one", &built_in()).1, first);
    assert_ne!(keyed(ALICE, "two", &built_in()).1, first);
    assert_ne!(
        keyed(BOB, "one", &built_in()).1,
        first,
        "keys are each client's own"
    );
    let other = json!({ "judgement": { "command": "tune", "task": "rms-norm" } });
    assert_eq!(keyed(ALICE, "one", &other).0, 409);
    assert_eq!(keyed(ALICE, "", &built_in()).0, 400);

    let shown = place.ask(READER, Method::GET, &first, "").1;
    assert_eq!(
        (&shown["state"], &shown["client"]),
        (&json!("queued"), &json!("alice"))
    );
    let list = place
        .ask(READER, Method::GET, "/judgements?client=alice&last=1", "")
        .1;
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(place.ask(READER, Method::GET, "/judgements?last=x", "").0, 400);
    assert_eq!(place.ask(READER, Method::GET, "/judgements?lost=1", "").0, 400);
    assert_eq!(
        place.ask(READER, Method::GET, "/queue", "").1["tickets"]["queued"],
        3
    );
}

#[test]
fn files_come_with_a_judgement_or_by_their_digest() {
    let place = Place::new();
    let put = |path: &str, text: &str| place.ask(ALICE, Method::PUT, path, text.to_owned()).0;
    let kernel = digest(b"def f(x): pass");
    assert_eq!(put("/sources/0", "def f(x): pass"), 422);
    let asked = check(&json!({ "sources": { "t.py": "cases = {}" }, "stored": { "k.py": kernel } }));
    let refused = place.submit(ALICE, &asked);
    assert!(
        refused.0 == 422 && refused.1["remedy"].as_str().unwrap().contains(&kernel),
        "{refused:?}"
    );
    assert_eq!(put(&format!("/sources/{kernel}"), "def f(x): pass"), 201);
    assert_eq!(place.submit(ALICE, &asked).0, 202);
    for (files, said) in [
        (
            json!({ "sources": { "t.py": "" } }),
            "kernel `k.py:f` is not built in",
        ),
        (
            json!({ "sources": { "k.py": "" } }),
            "task `t.py` is not built in",
        ),
        (
            json!({ "sources": { "t.py": "", "k.py": "", "../x": "" } }),
            "leads out",
        ),
        (
            json!({ "sources": { "t.py": "", "k.py": "", "/etc/x": "" } }),
            "leads out",
        ),
        (
            json!({ "sources": { "t.py": "", "k.py": "", "a\nb": "" } }),
            "no path",
        ),
        (
            json!({ "sources": { "t.py": "", "k.py": "" }, "folder": ".." }),
            "leads out",
        ),
        (
            json!({ "sources": { "t.py": "", "k.py": "" }, "stored": { "k.py": kernel } }),
            "given twice",
        ),
        (
            json!({ "sources": { "t.py": "" }, "stored": { "k.py": "../../tokens.json" } }),
            "are not here",
        ),
    ] {
        let (status, value) = place.submit(ALICE, &check(&files));
        assert!(
            status == 422 && value["error"].as_str().unwrap().contains(said),
            "{files} {value}"
        );
    }
    assert_eq!(place.submit(ALICE, &check(&json!({ "files": {} }))).0, 400);
    assert_eq!(place.ask(ALICE, Method::POST, "/judgements", "{").0, 400);
    let absolute =
        json!({ "judgement": { "command": "check", "task": "/etc/passwd", "kernels": ["stages=2"] } });
    assert_eq!(place.submit(ALICE, &absolute).0, 422);
    let large = vec![b' '; crate::guard::MAX_BODY + 1];
    assert_eq!(place.ask(ALICE, Method::POST, "/judgements", large).0, 413);
}

#[test]
fn a_ticket_is_given_up_by_its_client_and_its_events_say_so() {
    let place = Place::new();
    let id = place.submit(ALICE, &built_in()).1["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/judgements/{id}");
    assert_eq!(place.ask(BOB, Method::DELETE, &path, "").0, 403);
    let given_up = place.ask(ALICE, Method::DELETE, &path, "");
    assert_eq!((given_up.0, &given_up.1["state"]), (200, &json!("cancelled")));
    assert_eq!(place.ask(ADMIN, Method::DELETE, &path, "").0, 409);
    assert_eq!(
        place
            .ask(ADMIN, Method::DELETE, "/judgements/..%2f..%2ftokens", "")
            .0,
        404
    );
    assert_eq!(place.ask(READER, Method::GET, "/judgements/%ff", "").0, 404);

    let request = place.request(READER, Method::GET, &format!("{path}/events"));
    let response = place.answer(request.body(Body::empty()).unwrap());
    let told = place.text(response);
    assert!(
        told.contains("event: over") && told.contains("\"state\":\"cancelled\""),
        "{told}"
    );
    // It is over: nobody waits for it.
    assert_eq!(
        place.ask(READER, Method::GET, &format!("{path}?wait=45"), "").0,
        200
    );

    let request = place
        .request(READER, Method::GET, "/metrics")
        .body(Body::empty())
        .unwrap();
    let figures = place.text(place.answer(request));
    assert!(
        figures.contains("gauntlet_tickets{state=\"cancelled\"} 1"),
        "{figures}"
    );
    assert!(
        figures.contains("gauntlet_answers_total{status=\"4xx\"} 4"),
        "{figures}"
    );
}

#[test]
fn an_answer_is_taken_for_nothing_but_what_it_is() {
    let place = Place::new();
    let response = place.answer(
        place
            .request(READER, Method::GET, "/queue")
            .body(Body::empty())
            .unwrap(),
    );
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert!(header("content-security-policy").starts_with("default-src 'none'"));
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(header("cache-control"), "no-store");
    let other = Request::builder()
        .uri("/openapi.json")
        .header("host", "evil.example");
    assert_eq!(place.answer(other.body(Body::empty()).unwrap()).status(), 421);
}

#[test]
fn a_browser_gives_the_token_as_a_password_for_pages_alone() {
    let place = Place::new();
    let pair = |password: &str| format!("Basic {}", BASE64_STANDARD.encode(format!("me:{password}")));
    let status = |path: &str, given: &str| {
        let request = Request::builder().uri(path).header("host", "127.0.0.1:8485");
        let request = request
            .header("authorization", given)
            .body(Body::empty())
            .unwrap();
        let response = place.answer(request);
        let asks = response
            .headers()
            .get("www-authenticate")
            .map(|value| value.to_str().unwrap().to_owned());
        (response.status().as_u16(), asks.unwrap_or_default())
    };
    let reader = pair(&place.tokens[READER]);
    // There is no ledger yet.
    assert_eq!(status("/pages/index.html", &reader).0, 404);
    assert_eq!(status("/queue", &reader).0, 401);
    let refused = status("/pages/index.html", &pair("x"));
    assert!(refused.0 == 401 && refused.1.starts_with("Basic"), "{refused:?}");
    assert_eq!(status("/queue", "").1, "Bearer");
    assert_eq!(status("/", "").0, 303);
}

#[test]
fn an_agent_is_known_by_its_token() {
    let place = Place::new();
    let call = |who: usize, tool: &str, arguments: Value| {
        let asked = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments }
        });
        let request = place
            .request(who, Method::POST, "/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(Body::from(asked.to_string()))
            .unwrap();
        let response = place.answer(request);
        (response.status().as_u16(), place.text(response))
    };
    assert_eq!(call(READER, "history", json!({})).0, 403);
    place.submit(ALICE, &built_in());
    let (status, text) = call(ALICE, "history", json!({}));
    assert!(
        status == 200 && text.contains("alice: 1 comparisons"),
        "{status} {text}"
    );
    let (_, text) = call(BOB, "history", json!({}));
    assert!(text.contains("No ticket of bob yet"), "{text}");
}

#[test]
fn a_note_is_taken_from_a_page_of_this_server_alone() {
    let place = Place::new();
    let send = |who: usize, form: &str| {
        let request = Request::builder().method(Method::POST).uri("/pages/notes");
        let pair = format!("me:{}", place.tokens[who]);
        let request = request
            .header("host", "127.0.0.1:8485")
            .header("authorization", format!("Basic {}", BASE64_STANDARD.encode(pair)))
            .header("content-type", "application/x-www-form-urlencoded");
        let response = place.answer(request.body(Body::from(form.to_owned())).unwrap());
        (response.status().as_u16(), place.text(response))
    };
    let form = |proof: &str| format!("run=r&act=annotate&text=slow&proof={proof}");
    assert_eq!(send(READER, &form("x")).0, 403);
    let (status, text) = send(ALICE, &form("x"));
    assert!(status == 403 && text.contains("of no page"), "{status} {text}");
    assert_eq!(send(ALICE, "run=r&act=annotate").0, 400);
    let token = |who: usize| place.service.tokens.find(&place.tokens[who]).unwrap().unwrap();
    let proof = place.service.proof(&token(ALICE));
    assert_ne!(proof, place.service.proof(&token(BOB)));
    assert_eq!(send(BOB, &form(&proof)).0, 403, "a proof is its holder's own");
    let empty = format!("run=r&act=annotate&text=%20&proof={proof}");
    assert_eq!(send(ALICE, &empty).0, 400);
    // It is believed, but there is no ledger yet.
    assert_eq!(send(ALICE, &form(&proof)).0, 404);
}
