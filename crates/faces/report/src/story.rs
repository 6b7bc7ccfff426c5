//! What contestants and panellists said in a round.

use gauntlet_tournament::{Message, Phase, RoundReport};
use serde_json::Value;

use crate::foreign::visible_lines;
use crate::text::{bold, dim, paint, paragraph, usable};
use crate::tone::Tone;

/// What was said, as a paragraph each.
pub fn story(report: &RoundReport, width: usize) -> String {
    report.messages.iter().map(|one| message(one, width)).collect()
}

/// A question with its answer, in a paragraph.
pub fn message(message: &Message, width: usize) -> String {
    let said = sentence(message);
    if said.is_empty() {
        return String::new();
    }
    let said = match &message.fault {
        Some(_) => paint(said, Tone::Open.style()),
        None => said,
    };
    let head = format!("  {} ", bold(visible_lines(&message.who)));
    let mut text = paragraph(&head, &said, 4, usable(width));
    for refused in &message.refused {
        let told = format!("was told: {}", visible_lines(refused));
        text += &paragraph("    ", &dim(told), 4, usable(width));
    }
    text
}

/// What a participant said, to follow its name; empty if it said nothing.
pub fn sentence(message: &Message) -> String {
    let about = visible_lines(message.pitch.as_deref().unwrap_or_default()).into_owned();
    let said = match &message.answer {
        None => {
            let fault = message.fault.as_deref().unwrap_or("nothing came");
            format!("gives no answer ({}): {fault}", asked(message))
        }
        Some(answer) => match message.phase {
            Phase::Research => format!("finds the baseline bound by {}", text(&answer["bound-by"])),
            Phase::Pitch => pitched(answer),
            Phase::Question => match &answer["question"] {
                Value::Null => String::new(),
                question => format!("asks {}: {}", text(&question["to"]), text(&question["text"])),
            },
            Phase::Answer => format!("answers {about}: {}", text(&answer["text"])),
            Phase::Vote => voted(answer),
            Phase::Deal => match answer.get("withdraw") {
                Some(why) => format!("withdraws {about}: {}", text(why)),
                None if answer["accept"] == true => format!("accepts the terms for {about}"),
                None => format!("declines the terms for {about}"),
            },
            Phase::Build => handed_in("builds", &about, answer),
            Phase::Mend => handed_in("mends", &about, answer),
            Phase::Lesson => format!(
                "learns from {about}: {}; {}",
                text(&answer["wrong"]),
                text(&answer["follows"])
            ),
        },
    };
    visible_lines(&said).into_owned()
}

fn asked(message: &Message) -> String {
    match &message.pitch {
        Some(pitch) => format!("{} {pitch}", message.phase),
        None => message.phase.to_string(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn pitched(answer: &Value) -> String {
    match answer.get("pitch") {
        None => format!("passes: {}", text(&answer["pass"])),
        Some(pitch) => {
            let claim = pitch["claim"]["speedup"]["q50"].as_f64().unwrap_or(1.0);
            format!(
                "pitches {}, claiming {claim:.2}×: {}",
                text(&pitch["name"]),
                text(&pitch["change"])
            )
        }
    }
}

fn voted(answer: &Value) -> String {
    let votes = answer["votes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let one = |vote: &Value| {
        let scores = ["speedup", "feasibility", "risk", "quality"].map(|dimension| {
            match vote["scores"][dimension].as_f64() {
                Some(score) => format!("{score:.0}"),
                None => "–".to_owned(),
            }
        });
        let mut said = format!("{} {}", text(&vote["pitch"]), scores.join("/"));
        if !text(&vote["reason"]).is_empty() {
            said += &format!(" ({})", text(&vote["reason"]));
        }
        for term in vote["terms"].as_array().into_iter().flatten() {
            let kind = if vote["conditional"] == true {
                "only if not"
            } else {
                "give it up if"
            };
            said += &format!(", {kind} {}", text(&term["when"]));
        }
        said
    };
    match votes {
        [] => "leaves the votes to the rules".to_owned(),
        votes => format!("votes: {}", votes.iter().map(one).collect::<Vec<_>>().join("; ")),
    }
}

fn handed_in(does: &str, about: &str, answer: &Value) -> String {
    if let Some(why) = answer.get("withdrawn") {
        return format!("withdraws {about}: {}", text(why));
    }
    let change = match (
        answer["source"]["patch"].as_str(),
        answer["source"]["files"].as_object(),
    ) {
        (Some(patch), _) => {
            let lines = |sign: char, header: &str| {
                let changed = patch
                    .lines()
                    .filter(|line| line.starts_with(sign) && !line.starts_with(header));
                changed.count()
            };
            format!("+{} −{} lines", lines('+', "+++ "), lines('-', "--- "))
        }
        (None, Some(files)) => format!(
            "new texts of {}",
            files.keys().cloned().collect::<Vec<_>>().join(", ")
        ),
        (None, None) => "other words of the schedule".to_owned(),
    };
    format!("{does} {about}: {change}")
}
