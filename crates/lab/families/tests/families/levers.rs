//! The levers that explanations propose.

use gauntlet_problems::Schedule;
use gauntlet_simulate::{Part, Problem, levers};

#[test]
fn every_lever_is_a_parameter_of_its_family() {
    for (suite, table) in [
        ("group-gemm", Schedule::table_of_gemm()),
        ("attention", Schedule::table_of_attention()),
    ] {
        let suite = gauntlet_families::suite(suite).unwrap();
        let problem = Problem::of(&suite.benchmark[0].sizes).unwrap();
        for name in Part::ALL.into_iter().flat_map(|part| levers(part, problem)) {
            assert!(table.find(name).is_some(), "{name} in {}", suite.name);
        }
    }
}
