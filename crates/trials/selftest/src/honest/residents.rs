//! The list of honest workers.

use std::time::Duration;

use super::habits::{self, BigAllocations, GrowingHeap, Packs, Pool, ReadsAFile, Slower, When, processors};
use super::{Habit, Resident};
use crate::cheats::work::{Honest, Trick};

/// The worker in Python that comes with Gauntlet as an example.
const NUMPY: &str = include_str!("../../../../../examples/worker/rms_norm.py");

/// All honest workers.
pub fn residents() -> Vec<Resident> {
    let mut residents = by_times();
    residents.extend(by_threads());
    residents.extend(by_memory());
    residents.extend(around_the_calls());
    residents
}

fn resident(name: &'static str, story: &'static str, trick: fn() -> Box<dyn Trick>) -> Resident {
    Resident {
        name,
        story,
        habit: Habit::Trick(trick, || 1),
    }
}

fn by_times() -> Vec<Resident> {
    vec![
        resident(
            "compiles-as-it-goes",
            "its first thirty calls take three times as long, as those of a JIT compiler do",
            || Box::new(Slower::new(|place| if place.before < 30 { 2.0 } else { 0.0 })),
        ),
        resident(
            "starts-each-request-slowly",
            "the first 30 % of the calls of each request take 30 % longer",
            || {
                Box::new(Slower::new(|place| {
                    if place.index * 10 < place.calls * 3 {
                        0.3
                    } else {
                        0.0
                    }
                }))
            },
        ),
        resident(
            "collects-garbage",
            "every eleventh call takes twice as long",
            || {
                Box::new(Slower::new(
                    |place| if place.before % 11 == 10 { 1.0 } else { 0.0 },
                ))
            },
        ),
        resident(
            "has-two-times",
            "each call takes 15 % longer, or not, with even chances",
            || Box::new(Slower::new(|_| if rand::random() { 0.15 } else { 0.0 })),
        ),
        resident(
            "has-two-kinds-of-processes",
            "each process takes 3 % longer, or not, with even chances, as page placement makes it",
            || Box::new(Slower::new(|place| if place.slow_process { 0.03 } else { 0.0 })),
        ),
    ]
}

fn by_threads() -> Vec<Resident> {
    vec![
        resident(
            "spins-for-100-ms",
            "its threads spin for 100 ms after each call before they park, as those of BLAS libraries do",
            || Box::new(Pool::new(Duration::from_millis(100), None)),
        ),
        resident(
            "spins-for-1-ms",
            "its threads spin for 1 ms after each call before they park",
            || Box::new(Pool::new(Duration::from_millis(1), None)),
        ),
        resident(
            "parks-late",
            "its threads look for work every 50 µs for 20 ms after each call before they park",
            || {
                let poll = Some(Duration::from_micros(50));
                Box::new(Pool::new(Duration::from_millis(20), poll))
            },
        ),
        Resident {
            name: "has-more-threads-than-processors",
            story: "computes on twice as many threads as there are processors",
            habit: Habit::Trick(|| Box::new(Honest), || 2 * processors()),
        },
    ]
}

fn by_memory() -> Vec<Resident> {
    vec![
        resident("grows-its-heap", "keeps 64 KiB of every call", || {
            Box::<GrowingHeap>::default()
        }),
        resident(
            "allocates-a-lot",
            "allocates and touches 16 MiB in every call, and gives them back",
            || Box::new(BigAllocations),
        ),
        resident(
            "reads-a-file",
            "reads a file of 1 MiB in every call, which the page cache holds",
            || Box::<ReadsAFile>::default(),
        ),
    ]
}

fn around_the_calls() -> Vec<Resident> {
    vec![
        resident(
            "packs-in-prepare",
            "repacks its weights in the step that prepares constant inputs",
            || Box::new(Packs(When::Prepare)),
        ),
        resident(
            "loads-slowly",
            "repacks all of its inputs as it loads them, and computes from the originals",
            || Box::new(Packs(When::Load)),
        ),
        resident(
            "hands-out-slowly",
            "reorders its result several times as it hands it out",
            || Box::new(Packs(When::Output)),
        ),
        Resident {
            name: "starts-slowly",
            story: "works for 150 ms and waits for 150 ms before its first request",
            habit: Habit::AtStart(habits::start_slowly),
        },
        Resident {
            name: "numpy",
            story: "a worker in Python with numpy, on RMSNorm",
            habit: Habit::Numpy(NUMPY),
        },
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cheats::work::tests::results_of;

    #[test]
    fn each_computes_every_call_as_the_honest_kernel_does() {
        let expected = results_of(Box::new(Honest), 1);
        for resident in residents() {
            if let Habit::Trick(trick, threads) = resident.habit {
                assert_eq!(results_of(trick(), threads()), expected, "{}", resident.name);
            }
        }
    }

    #[test]
    fn there_are_at_least_twelve_and_the_documentation_has_each() {
        let residents = residents();
        let names: BTreeSet<&str> = residents.iter().map(|resident| resident.name).collect();
        assert_eq!(names.len(), residents.len());
        assert!(names.len() >= 12);
        let documentation = include_str!("../../../../../docs/explanation/cheats.md");
        for Resident { name, story, .. } in &residents {
            let row = format!("| {name} | {story} |");
            assert!(
                documentation.contains(&row),
                "docs/explanation/cheats.md lacks:\n{row}"
            );
        }
    }
}
