//! Kernels over the commits of their repositories.

use std::collections::{BTreeMap, BTreeSet};

use gauntlet_history::git::{Checkout, short};
use gauntlet_history::series::{Joint, Point, Recorded, Series, read, series};
use gauntlet_judge::ledger::{Commit, Judged, Wanted};
use gauntlet_report::{CommitTime, Tone, badge, commit_times, duration, visible};
use gauntlet_stats::percent;
use maud::{Markup, html};

use crate::address::{Address, slug};
use crate::error::PageError;
use crate::frame::moment;
use crate::listing::task_name;
use crate::source::{Page, Source};

/// How many comparisons, the newest first, are read for a history.
const READ: usize = 200;

/// A task, and a kernel as it is named at the root of its repository.
type Named = (String, String);

/// The kernels with a history, with their verdicts, the newest first.
fn kernels(source: &Source<'_>) -> Result<BTreeMap<Named, Vec<Judged>>, PageError> {
    let mut kernels: BTreeMap<Named, Vec<Judged>> = BTreeMap::new();
    let wanted = Wanted {
        in_history: true,
        ..Wanted::default()
    };
    for one in source.verdicts(&wanted)? {
        let named: BTreeSet<_> = commits(&one).map(|commit| commit.kernel.clone()).collect();
        for kernel in named {
            let key = (one.task.clone().unwrap_or_default(), kernel);
            kernels.entry(key).or_default().push(one.clone());
        }
    }
    Ok(kernels)
}

fn commits(one: &Judged) -> impl Iterator<Item = &Commit> {
    [&one.commit, &one.baseline_commit].into_iter().flatten()
}

/// The history that a file is of, such as `histories/KERNEL.html` or `histories/KERNEL/CASE.html`.
pub fn of_file(source: &Source<'_>, file: &str) -> Result<Option<Address>, PageError> {
    let Some(name) = file
        .strip_prefix("histories/")
        .and_then(|name| name.strip_suffix(".html"))
    else {
        return Ok(None);
    };
    let (of_kernel, case) = match name.split_once('/') {
        Some((of_kernel, case)) => (of_kernel, Some(case.to_owned())),
        None => (name, None),
    };
    let mut named = kernels(source)?.into_keys();
    let found = named.find(|(task, kernel)| slug(&format!("{task} {kernel}")) == of_kernel);
    Ok(found.map(|(task, kernel)| Address::History { task, kernel, case }))
}

/// All kernels with a history.
pub fn list(source: &Source<'_>) -> Result<Page, PageError> {
    let kernels = kernels(source)?;
    let body = html! {
        header { h1 { "History" } }
        @if kernels.is_empty() { p { "No kernel in a git repository was compared yet." } }
        @else {
            div.scroll tabindex="0" {
                table {
                    thead { tr { th { "kernel" } th { "task" } th { "commits" } th { "comparisons" } th { "last" } } }
                    tbody {
                        @for ((task, kernel), verdicts) in &kernels {
                            @let known: BTreeSet<_> = verdicts.iter().flat_map(commits).filter(|one| one.kernel == *kernel).map(|one| &one.id).collect();
                            @let address = Address::History { task: task.clone(), kernel: kernel.clone(), case: None };
                            tr {
                                td { a href=(source.links.to(&address)) { (visible(kernel)) } }
                                td { (task_name(task)) }
                                td.number { (known.len()) }
                                td.number { (verdicts.len()) }
                                td.whole { @if let Some(last) = verdicts.first() { (moment(last.at)) } }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok(Page::new("History", body))
}

/// The history of a kernel on a task, on the first case or on that whose name has this form in a path.
pub fn page(source: &Source<'_>, task: &str, kernel: &str, case: Option<&str>) -> Result<Page, PageError> {
    let unknown = || PageError::Unknown(format!("the ledger has no history of `{}`", visible(kernel)));
    let key = (task.to_owned(), kernel.to_owned());
    let mut verdicts = kernels(source)?.remove(&key).ok_or_else(unknown)?;
    let count = verdicts.len();
    verdicts.truncate(READ);
    verdicts.reverse();
    let recorded = read(source.ledger, &verdicts)?;
    let mut found = series(&recorded, &order(source, &recorded));
    found.retain(|one| one.kernel == kernel);
    let cases: BTreeSet<String> = found.iter().map(|one| one.case.clone()).collect();
    let shown = match case {
        Some(case) => cases.iter().find(|name| slug(name) == case),
        None => cases.first(),
    };
    let shown = shown.cloned().ok_or_else(unknown)?;
    found.retain(|one| one.case == shown);
    let body = html! {
        header {
            h1 { (visible(kernel)) }
            p.title { "on " a href=(source.links.to(&Address::Task(task.to_owned()))) { (task_name(task)) } ", case " (visible(&shown)) }
        }
        @if count > READ { p.quiet { "From the newest " (READ) " of " (count) " comparisons." } }
        @if cases.len() > 1 { (other_cases(source, task, kernel, &cases, &shown)) }
        @for one in &found { (shown_series(source, one)) }
        section {
            h2 { "Once more" }
            p { "In the repository, the first says the same of the commits that lead to the one that is checked out. The second looks for the commit \
                since which the kernel is slower; name a good one and a bad one." }
            pre tabindex="0" {
                "gauntlet history --kernel " (visible(kernel)) "\n"
                "gauntlet bisect GOOD BAD --kernel " (visible(kernel)) " --task FILE"
            }
        }
    };
    Ok(Page::new(kernel.to_owned(), body))
}

/// All commits in order: those of the repository first, if it is at hand. Others are in the order in which they were first measured.
fn order(source: &Source<'_>, recorded: &[Recorded]) -> Vec<String> {
    let checkout = source.repository.and_then(|folder| Checkout::around(folder).ok());
    let mut order = checkout
        .and_then(|checkout| checkout.commits().ok())
        .unwrap_or_default();
    let known: BTreeSet<String> = order.iter().cloned().collect();
    for version in recorded.iter().flat_map(|one| one.versions.iter().flatten()) {
        let id = &version.commit().id;
        if !known.contains(id) && !order.contains(id) {
            order.push(id.clone());
        }
    }
    order
}

fn other_cases(
    source: &Source<'_>,
    task: &str,
    kernel: &str,
    cases: &BTreeSet<String>,
    shown: &str,
) -> Markup {
    html! {
        p.cases {
            @for name in cases {
                @let address = Address::History { task: task.to_owned(), kernel: kernel.to_owned(), case: Some(slug(name)) };
                a href=(source.links.to(&address)) aria-current=[(name == shown).then_some("true")] { (visible(name)) } " "
            }
        }
    }
}

fn shown_series(source: &Source<'_>, one: &Series) -> Markup {
    let points: Vec<CommitTime> = one.points.iter().map(drawn).collect();
    let stack: Vec<String> = one
        .stack
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    html! {
        section {
            h2 { (visible(&one.device)) }
            p.quiet { (visible(&stack.join(", "))) }
            (commit_times(&points))
            div.scroll tabindex="0" {
                table {
                    thead { tr { th { "commit" } th { "measured" } th { "median" } th { "against the one before" } } }
                    tbody { @for (place, point) in one.points.iter().enumerate().rev() { (row(source, place, point)) } }
                }
            }
            @if one.points.iter().any(|point| point.changed) { p.quiet { "* The file was not as the commit has it, as a built library never is." } }
        }
    }
}

fn drawn(point: &Point) -> CommitTime {
    CommitTime {
        commit: short(&point.commit).to_owned(),
        seconds: point.seconds,
        joint: point.joint.as_ref().map(tone),
        perhaps_changed: point.perhaps_changed,
        told: format!("{}: {}", short(&point.commit), duration(point.seconds)),
    }
}

/// The tone of what joins two points: of the verdict, or of the side of its interval if the verdict was given on the older one.
fn tone(joint: &Joint) -> Tone {
    match (joint.verdict, joint.speedup) {
        (Some(verdict), _) => Tone::from(verdict),
        (None, Some(found)) if found.lower > 0.0 => Tone::Good,
        (None, Some(found)) if found.upper < 0.0 => Tone::Bad,
        _ => Tone::Open,
    }
}

fn row(source: &Source<'_>, place: usize, point: &Point) -> Markup {
    html! {
        tr {
            td {
                code { (short(&point.commit)) } @if point.changed { "*" }
            }
            td.whole { @if let Some(run) = point.runs.first() { a href=(source.links.to(&Address::Verdict(run.to_string()))) { (moment(point.at)) } } }
            td.number { (duration(point.seconds)) @if point.perhaps_changed { " ?" } }
            td {
                @match &point.joint {
                    None if place == 0 => "–",
                    None => "not compared",
                    Some(joint) => {
                        a href=(source.links.to(&Address::Verdict(joint.run.to_string()))) {
                            @match joint.verdict { Some(verdict) => (badge(verdict)), None => "compared" }
                        }
                        @if let Some(found) = joint.speedup {
                            " " (percent(found.estimate)) " [" (percent(found.lower)) " … " (percent(found.upper)) "]"
                        }
                    }
                }
            }
        }
    }
}
