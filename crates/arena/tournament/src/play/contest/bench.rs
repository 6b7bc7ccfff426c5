//! What a contestant has while it builds: a folder with a copy of the source, and tools that examine what is there.

use std::fs;
use std::path::{Path, PathBuf};

use gauntlet_contestants::{Tool, Tools};
use gauntlet_gates::GATES;
use gauntlet_judge::gates::{Examination, Gate};
use gauntlet_judge::session::{conclude, examine};
use gauntlet_judge::{Candidate, Executor, Finding, Measurement, Session, Setting, Verdict};
use gauntlet_parameters::Parameters;
use gauntlet_scratch::Scratch;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::Player;
use crate::source::{Edit, Tree, inside};

/// The time of quick pairs that a contestant asks for.
const QUICK: SignedDuration = SignedDuration::from_secs(10);

/// The name of what lies in the workspace.
const TRIED: &str = "the workspace";

/// A contestant's workspace.
pub struct Bench<'b> {
    player: &'b Player<'b>,
    executor: &'b Executor,
    /// What the workspace is compared with.
    baseline: &'b Candidate,
    /// The source at the beginning, and its kernel.
    source: (Tree, String),
    scratch: Scratch,
}

impl<'b> Bench<'b> {
    /// A workspace with a source in it.
    pub fn new(
        player: &'b Player<'b>,
        executor: &'b Executor,
        baseline: &'b Candidate,
        source: (Tree, String),
    ) -> std::io::Result<Self> {
        let scratch = Scratch::new()?;
        let bench = Self {
            player,
            executor,
            baseline,
            source,
            scratch,
        };
        fs::create_dir(bench.folder())?;
        bench.source.0.write_to(&bench.folder())?;
        Ok(bench)
    }

    /// The folder.
    pub fn folder(&self) -> PathBuf {
        self.scratch.path().join("workspace")
    }

    fn candidate(&self) -> Result<Candidate, String> {
        let (tree, kernel) = &self.source;
        let tree = change_to(tree, &self.folder())?.applied(tree, &self.player.round.protected)?;
        let built = self
            .player
            .builds
            .candidate(TRIED, self.player.round, &tree, kernel, &Parameters::new());
        built.map_err(|fault| fault.reason)
    }

    /// Whether what is there passes the gates that measure nothing.
    fn check(&self) -> Result<Value, String> {
        let candidate = match self.candidate() {
            Ok(candidate) => candidate,
            Err(reason) => return Ok(json!({ "right": false, "reason": reason, "findings": [] })),
        };
        let findings = findings(self.player, self.executor, self.baseline, &candidate)?;
        let (verdict, reason) = conclude(&findings);
        if verdict == Verdict::Blocked {
            return Err(format!("the machine kept it from being examined: {reason}"));
        }
        let passed = findings
            .iter()
            .map(|one| json!({ "gate": one.gate, "reason": one.reason }));
        Ok(json!({
            "right": verdict == Verdict::Adopt,
            "reason": reason,
            "findings": passed.collect::<Vec<_>>(),
        }))
    }

    fn quick(&self) -> Result<Value, String> {
        if self.player.elsewhere().is_some() {
            return Err("this round is measured elsewhere, and only when it is judged; `check` says whether it is right".to_owned());
        }
        let candidate = self.candidate()?;
        let setting = Setting {
            measurement: Measurement {
                budget: QUICK,
                ..Measurement::quick()
            },
            ..self.player.round.setting.clone()
        };
        let session = Session::new(&setting, self.executor, [self.baseline, &candidate]);
        let found = session.compare().map_err(|error| error.to_string())?;
        let suite = found
            .comparison
            .as_ref()
            .and_then(|comparison| comparison.assessment.suite.as_ref());
        let interval = suite.map(|suite| {
            json!({ "lower": suite.lower.exp(), "middle": suite.estimate.exp(), "upper": suite.upper.exp() })
        });
        Ok(json!({ "verdict": found.verdict, "reason": found.reason, "found": interval }))
    }

    /// A file of the workspace, if the path leads nowhere else.
    fn file(&self, arguments: &Value, writes: bool) -> Result<PathBuf, String> {
        let path = arguments["path"]
            .as_str()
            .ok_or("give the path of a file in the workspace as `path`")?;
        let path = inside(path)?;
        // What was written there would only be refused later.
        if writes && let Some(why) = self.player.round.protected.forbids(&path) {
            return Err(why);
        }
        let mut place = self.folder();
        for part in path.split('/') {
            place.push(part);
            if place.is_symlink() {
                return Err(format!("`{path}` leads over a link"));
            }
        }
        Ok(place)
    }

    fn read(&self, arguments: &Value) -> Result<Value, String> {
        let file = self.file(arguments, false)?;
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", arguments["path"]))?;
        Ok(json!({ "text": text }))
    }

    fn write(&self, arguments: &Value) -> Result<Value, String> {
        let file = self.file(arguments, true)?;
        let text = arguments["text"]
            .as_str()
            .ok_or("give what the file shall hold as `text`")?;
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        }
        fs::write(file, text).map_err(|error| error.to_string())?;
        Ok(json!({}))
    }

    fn list(&self) -> Result<Value, String> {
        let tree = Tree::read(&self.folder()).map_err(|error| error.to_string())?;
        Ok(json!({ "files": tree.texts().map(|(path, _)| path).collect::<Vec<_>>() }))
    }
}

/// The change from a source to what a folder now holds. Files that are no texts are left out: a build makes them again.
pub fn change_to(source: &Tree, folder: &Path) -> Result<Edit, String> {
    let now = Tree::read(folder).map_err(|error| format!("the workspace cannot be taken: {error}"))?;
    Ok(Edit::Patch(source.diff(&now)))
}

/// What the gates that measure nothing find of a candidate.
pub fn findings(
    player: &Player,
    executor: &Executor,
    baseline: &Candidate,
    candidate: &Candidate,
) -> Result<Vec<Finding>, String> {
    let setting = &player.round.setting;
    let mut examination = Examination::new(setting, [baseline, candidate], executor, player.observer);
    for gate in GATES.iter().filter(|gate: &&&dyn Gate| !gate.measures()) {
        let finding = examine(*gate, &examination).map_err(|error| error.to_string())?;
        let stops = finding.stops().is_some();
        examination.add(finding);
        if stops {
            break;
        }
    }
    Ok(examination.findings)
}

impl Tools for Bench<'_> {
    fn list(&self) -> Vec<Tool> {
        let tool = |name: &str, description: &str, properties: Value| Tool {
            name: name.to_owned(),
            description: description.to_owned(),
            arguments: json!({
                "type": "object",
                "required": properties.as_object().map_or_else(Vec::new, |them| them.keys().cloned().collect()),
                "properties": properties,
                "additionalProperties": false,
            }),
        };
        let text = || json!({ "type": "string" });
        vec![
            tool(
                "check",
                "Whether the workspace passes all gates that measure nothing.",
                json!({}),
            ),
            tool(
                "quick",
                "Compares the workspace with the baseline in quick pairs of processes.",
                json!({}),
            ),
            tool("list", "Lists the files of the workspace.", json!({})),
            tool(
                "read",
                "Reads a file of the workspace.",
                json!({ "path": text() }),
            ),
            tool(
                "write",
                "Writes a file of the workspace.",
                json!({ "path": text(), "text": text() }),
            ),
        ]
    }

    fn call(&mut self, name: &str, arguments: &Value) -> Result<Value, String> {
        match name {
            "check" => self.check(),
            "quick" => self.quick(),
            "list" => Self::list(self),
            "read" => self.read(arguments),
            "write" => self.write(arguments),
            other => Err(format!("there is no tool `{other}`")),
        }
    }
}
