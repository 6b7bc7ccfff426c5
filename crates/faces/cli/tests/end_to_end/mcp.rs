//! An agent's loop through `gauntlet mcp`, with the client of the `rmcp` crate, by both protocols.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests")]

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ClientConfig, Implementation, ProgressNotificationParam, ProtocolVersion,
    ReadResourceRequestParams, ResourceContents,
};
use rmcp::service::{ClientLifecycleMode, NotificationContext, RunningService, serve_client_with_lifecycle};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};

use crate::common::{NORM_SUITE, Place, has_numpy, pitch, tiny_round};

const TASK: &str = r#""""Rows divided by their sums."""
import numpy as np
cases = {"correctness": [{"rows": 3, "cols": 5}], "benchmark": [{"name": "wide", "rows": 64, "cols": 2000}]}
def generate(rows, cols, seed):
    return {"x": np.random.default_rng(seed).random((rows, cols), dtype=np.float32) + 1}
def reference(x):
    return {"y": x / x.sum(1, keepdims=True)}
"#;

/// The first one is not right; `mended` stands for what the agent writes then.
const KERNELS: &str = r#"
import numpy as np
def slow(x):
    y = np.empty_like(x)
    for row in range(len(x)):
        for _ in range(20):
            y[row] = x[row] / x[row].sum()
    return y
def fast(x):
    return x / x.sum(0, keepdims=True)
"#;

/// Counts what it hears of progress.
#[derive(Clone, Default)]
struct Listener {
    heard: Arc<AtomicUsize>,
}

impl ClientHandler for Listener {
    async fn on_progress(
        &self,
        _progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.client_info = Implementation::new("tester", "1");
        config
    }
}

/// A client with its server. What the server says is counted in bytes.
struct Agent {
    client: RunningService<RoleClient, Listener>,
    server: Child,
    heard: Arc<AtomicUsize>,
    bytes: usize,
}

/// What a tool answered.
struct Answer {
    text: String,
    link: Option<String>,
    is_error: bool,
}

impl Agent {
    async fn start(place: &Place, options: &[&str], mode: ClientLifecycleMode) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut words = vec!["mcp", "--queue", "queue"];
        words.extend(options);
        let server = place
            .command(&words)
            .stdin(Stdio::from(OwnedFd::from(theirs.try_clone().unwrap())))
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            .spawn()
            .unwrap();
        ours.set_nonblocking(true).unwrap();
        let ours = tokio::net::UnixStream::from_std(ours).unwrap();
        let listener = Listener::default();
        let heard = listener.heard.clone();
        let client = serve_client_with_lifecycle(listener, ours, mode).await.unwrap();
        Self {
            client,
            server,
            heard,
            bytes: 0,
        }
    }

    async fn call(&mut self, tool: &'static str, arguments: Value) -> Answer {
        let asked = arguments.to_string().len();
        let request = CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone());
        let result = self.client.call_tool(request).await.unwrap();
        let said = serde_json::to_value(&result).unwrap();
        self.bytes += asked + said["content"].to_string().len();
        let text = said["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(text.len() <= 1500, "{} bytes: {text}", text.len());
        Answer {
            text,
            link: said["content"][1]["uri"].as_str().map(str::to_owned),
            is_error: result.is_error == Some(true),
        }
    }

    /// Asks for a verdict until there is one.
    async fn verdict(&mut self, ticket: &str) -> Answer {
        for _ in 0..20 {
            let answer = self.call("verdict", json!({ "ticket": ticket })).await;
            let waits = ["is queued", "is running", "Not a win yet"];
            if !waits.iter().any(|words| answer.text.contains(words)) {
                return answer;
            }
        }
        panic!("no verdict of {ticket}");
    }

    async fn read(&self, address: &str) -> Value {
        let read = self
            .client
            .read_resource(ReadResourceRequestParams::new(address))
            .await
            .unwrap();
        let ResourceContents::TextResourceContents { text, .. } = &read.contents[0] else {
            panic!("no text");
        };
        serde_json::from_str(text).unwrap()
    }

    async fn end(mut self) {
        self.client.cancel().await.unwrap();
        self.server.wait().unwrap();
    }
}

/// The ticket that an answer names.
fn ticket(answer: &Answer) -> String {
    answer.text.split('`').nth(1).unwrap().to_owned()
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test);
}

const INITIALIZE: ClientLifecycleMode = ClientLifecycleMode::Initialize;

fn discover() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}

#[test]
fn an_agent_lists_checks_mends_judges_and_hears_the_verdict() {
    if !has_numpy() {
        return;
    }
    let place = Place::new();
    place.write("rows.py", TASK);
    place.write("kernels.py", KERNELS);
    run(async {
        let mut agent = Agent::start(&place, &[], INITIALIZE).await;
        assert_eq!(
            agent.client.peer_info().unwrap().protocol_version,
            ProtocolVersion::V_2025_11_25
        );
        let tools = serde_json::to_string(&agent.client.list_all_tools().await.unwrap()).unwrap();
        agent.bytes += tools.len();
        let tasks = agent.call("list_tasks", json!({})).await;
        assert!(
            tasks.text.contains("- `rows.py`") && tasks.text.contains("`rms-norm`"),
            "{}",
            tasks.text
        );
        let task = agent.call("get_task", json!({ "task": "rows.py" })).await;
        assert!(task.text.contains("wide (cols=2000 rows=64)"), "{}", task.text);

        let asked = json!({ "task": "rows.py", "kernel": "kernels.py:fast" });
        let wrong = agent.call("check", asked.clone()).await;
        assert!(
            wrong.text.contains("not right") && !wrong.is_error,
            "{}",
            wrong.text
        );
        let result = agent.read(&wrong.link.unwrap()).await;
        assert_eq!(
            (&result["state"], &result["verdict"]),
            (&json!("decided"), &json!("not-right"))
        );

        place.write("kernels.py", &KERNELS.replace("sum(0, ", "sum(1, "));
        let right = agent.call("check", asked).await;
        assert!(!right.text.contains("not right"), "{}", right.text);

        let asked = json!({ "task": "rows.py", "candidate": "kernels.py:fast", "baseline": "kernels.py:slow", "budget": "8s" });
        let queued = agent.call("judge", asked).await;
        assert!(
            queued.text.contains("Comparison 1 of this task by tester."),
            "{}",
            queued.text
        );
        // What is judged is what the files held when it was asked.
        place.write("kernels.py", "raise Exception");
        let verdict = agent.verdict(&ticket(&queued)).await;
        assert!(
            !verdict.is_error && verdict.text.contains("Comparison 1 of"),
            "{}",
            verdict.text
        );
        let result = agent.read(&verdict.link.unwrap()).await;
        let verdict_word = result["verdict"].as_str().unwrap();
        let is_faster = verdict.text.contains("**A win**") || verdict.text.contains("**No win**");
        assert_eq!(is_faster, verdict_word == "adopt", "{}", verdict.text);
        assert_eq!(result["result"]["verdict"].as_str(), Some(verdict_word));
        assert!(
            agent.heard.load(Ordering::Relaxed) > 0,
            "nothing was heard of progress"
        );

        let history = agent.call("history", json!({})).await;
        assert!(
            history.text.contains(&ticket(&queued)) && history.text.contains("not-right"),
            "{}",
            history.text
        );
        agent.call("explain", json!({ "ticket": ticket(&queued) })).await;
        let next = agent.call("next", json!({ "task": "rows.py" })).await;
        assert!(!next.text.is_empty());
        // Four bytes a token are what is counted on for English text and JSON.
        let tokens = agent.bytes / 4;
        println!(
            "the loop took {tokens} tokens, of which the list of tools {}",
            tools.len() / 4
        );
        assert!(tokens < 6000, "{tokens} tokens");
        agent.end().await;
    });
}

#[test]
fn a_wrong_name_fails_at_once_and_leaves_no_ticket() {
    let place = Place::new();
    place.write("suite.toml", NORM_SUITE);
    place.write("outside.py", "");
    std::fs::create_dir(place.path("inside")).unwrap();
    place.write("inside/suite.toml", NORM_SUITE);
    run(async {
        let mut agent = Agent::start(&place, &["--folder", "inside"], discover()).await;
        assert_eq!(
            agent.client.peer_info().unwrap().protocol_version,
            ProtocolVersion::V_2026_07_28
        );
        for (tool, arguments, said) in [
            (
                "get_task",
                json!({ "task": "../suite.toml" }),
                "outside of the folder",
            ),
            (
                "judge",
                json!({ "task": "rms-nrom", "candidate": "stages=2" }),
                "rms-nrom",
            ),
            (
                "judge",
                json!({ "task": "suite.toml", "candidate": "partial-sums=3" }),
                "partial-sums",
            ),
            (
                "judge",
                json!({ "task": "suite.toml", "candidate": "missing.py:f" }),
                "missing.py",
            ),
            (
                "compare",
                json!({ "task": "suite.toml", "baseline": "builtin", "candidate": "rows-per-task=8", "cases": ["two"] }),
                "two",
            ),
            (
                "compare",
                json!({ "task": "suite.toml", "baseline": "builtin", "candidate": "../outside.py:f" }),
                "outside",
            ),
            (
                "check",
                json!({ "task": "suite.toml", "kernel": "missing.so:f" }),
                "missing.so",
            ),
            ("verdict", json!({ "ticket": "0123456789ab" }), "no ticket"),
            ("pitch", json!({ "toml": "" }), "No round is open"),
        ] {
            let answer = agent.call(tool, arguments).await;
            assert!(
                answer.is_error && answer.text.contains(said),
                "{tool}: {}",
                answer.text
            );
        }
        let history = agent.call("history", json!({})).await;
        assert_eq!(history.text, "No ticket of tester yet.");
        agent.end().await;
    });
}

#[test]
fn a_client_that_gives_up_loses_nothing() {
    let place = Place::new();
    place.write("suite.toml", NORM_SUITE);
    run(async {
        let mut agent = Agent::start(&place, &["--client", "one"], INITIALIZE).await;
        let asked = json!({ "task": "suite.toml", "candidate": "rows-per-task=8", "baseline": "builtin", "budget": "4s" });
        let queued = agent.call("judge", asked.clone()).await;
        let id = ticket(&queued);
        assert_eq!(
            ticket(&agent.call("judge", asked).await),
            id,
            "asked once more, it is the same ticket"
        );
        // It waits for a moment, gives up, and goes; so does the server.
        let waits = agent.call("verdict", json!({ "ticket": id }));
        let _gave_up = tokio::time::timeout(Duration::from_millis(300), waits).await;
        agent.server.kill().unwrap();
        agent.end().await;
        let mut agent = Agent::start(&place, &["--client", "one"], INITIALIZE).await;
        let verdict = agent.verdict(&id).await;
        assert!(verdict.link.is_some(), "{}", verdict.text);
        let cancelled = agent.call("cancel", json!({ "ticket": id })).await;
        assert!(cancelled.text.contains("has ended already"), "{}", cancelled.text);
        agent.end().await;
    });
}

#[test]
fn a_pitch_goes_into_an_open_round() {
    let place = Place::new();
    place.write("suite.toml", NORM_SUITE);
    // A table's keys come before the tables.
    let round = tiny_round("").replace("tile = [16, 32, 64]", "");
    let round = format!("pitches = [\"pitches\"]\n{round}");
    place.write("round.toml", &round);
    std::fs::create_dir(place.path("pitches")).unwrap();
    let toml = pitch("few rows", "rows-per-task = 8", "").replace("[[pitch]]", "");
    run(async {
        let mut agent = Agent::start(&place, &["--round", "round.toml"], INITIALIZE).await;
        let put = agent.call("pitch", json!({ "toml": toml })).await;
        assert!(
            !put.is_error && put.text.contains("is in round tiny"),
            "{}",
            put.text
        );
        let again = agent.call("pitch", json!({ "toml": toml })).await;
        assert!(
            again.is_error && again.text.contains("another name"),
            "{}",
            again.text
        );
        let elsewhere = agent
            .call("pitch", json!({ "toml": toml.replace("few rows", "../x") }))
            .await;
        assert!(
            elsewhere.is_error && elsewhere.text.contains("digits"),
            "{}",
            elsewhere.text
        );
        let bare = agent.call("pitch", json!({ "toml": "name = \"bare\"" })).await;
        assert!(bare.is_error && bare.text.contains("pitch-file"), "{}", bare.text);
        agent.end().await;
    });
    let checked = place.run(&["check", "round.toml"]);
    assert!(checked.out.contains("few rows"), "{}{}", checked.out, checked.err);
}
