//! The native kernel on the correctness cases of the competition that its schedules come from.
//!
//! Values and scales of the plain form are so few and small there that sums in fp32 are exact, in any order: results must
//! have the very bits of the f64 oracle's, rounded once.

use gauntlet_device::Arch;
use gauntlet_families::{operations, suite};
use gauntlet_problems::resources::fewest_steps;
use gauntlet_problems::{Form, GroupedGemm, Operation};
use gauntlet_task::{Coverage, ErrorMeasures, InputKind};
use rayon::prelude::*;

use super::{Kernels, compiler, target};
use crate::plan;
use crate::shipped::{Shipped, shipped};
use gauntlet_cuda::compiler::Compiler;

const ARCH: Arch = Arch::Sm100a;

/// The correctness cases of a form, each with its name.
fn cases(form: Form) -> Vec<(String, GroupedGemm)> {
    let name = match form {
        Form::Plain => "group-gemm",
        Form::Swiglu => "dual-gemm",
    };
    let of_case = |case: &gauntlet_task::Case| match gauntlet_tiled_family::operation(&case.sizes) {
        Some(Operation::GroupedGemm(gemm)) => (case.name.clone(), gemm.clone()),
        _ => panic!("{} is no GEMM", case.name),
    };
    suite(name).unwrap().correctness.iter().map(of_case).collect()
}

/// Each shipped variant with each case that its tiles suit; the depth is split in at most as many parts as it has steps.
fn trials() -> Vec<(Shipped, String, Operation)> {
    let of_variant = |one: Shipped| {
        let Operation::GroupedGemm(own) = one.problem.clone() else {
            panic!("{} is no GEMM", one.name);
        };
        cases(own.form).into_iter().filter_map(move |(name, case)| {
            let problem = Operation::GroupedGemm(GroupedGemm {
                output: own.output,
                ..case
            });
            let mut one = one.clone();
            one.schedule.split_k = one.schedule.split_k.min(fewest_steps(&one.schedule, &problem));
            let planned = plan::plan(&problem, &one.schedule, target(ARCH));
            planned.is_ok().then_some((one, name, problem))
        })
    };
    shipped(ARCH).into_iter().flat_map(of_variant).collect()
}

/// The error of a variant on a case, if any.
fn wrong(compiler: &Compiler, one: &Shipped, case: &str, problem: &Operation) -> Option<String> {
    let said = |text: String| Some(format!("{}, {case}: {text}", one.name));
    let inputs = operations::generate(problem, InputKind::Competition, 11);
    let kernels = Kernels::new(compiler, problem, &one.schedule, ARCH);
    let found = match kernels.run(std::slice::from_ref(&inputs), 0) {
        Ok(found) => operations::output(problem, &found[0]),
        Err(fault) => return said(fault.to_string()),
    };
    let expected = operations::expected(problem, &inputs, Coverage::Full).unwrap();
    let rules = operations::rules(problem, &one.schedule);
    let errors = ErrorMeasures::between(&found, &expected, rules.tolerance);
    let Operation::GroupedGemm(GroupedGemm { form, .. }) = problem else {
        return said("no GEMM".to_owned());
    };
    if *form == Form::Plain && errors.unequal > 0 {
        return said(format!("{} results have other bits", errors.unequal));
    }
    let rightness = operations::sizes(problem)
        .unwrap()
        .rightness(Some(InputKind::Competition));
    rules
        .fault(&errors, rightness)
        .and_then(|fault| said(fault.to_string()))
}

/// Interprets every `step`th of the trials.
fn interpret(step: usize) {
    let Some(compiler) = compiler() else { return };
    let tried: Vec<_> = trials().into_iter().step_by(step).collect();
    let wrong: Vec<_> = tried
        .par_iter()
        .filter_map(|(one, case, problem)| wrong(&compiler, one, case, problem))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_case_is_tried_with_every_kind_of_tile() {
    let tried = trials();
    let of_form = |form: Form| cases(form).len();
    assert_eq!((of_form(Form::Plain), of_form(Form::Swiglu)), (10, 8));
    // Tiles of 8, 16 and 248 tokens hold no case, or some, as each of its groups must fit one tile.
    for one in shipped(ARCH) {
        let cases = tried.iter().filter(|(tried, ..)| tried.name == one.name).count();
        let narrow = !one.schedule.tile.n.is_multiple_of(64);
        assert!(cases >= if narrow { 0 } else { 8 }, "{}: {cases}", one.name);
    }
}

#[test]
fn some_cases_of_the_competition_are_exact() {
    interpret(61);
}

#[test]
#[ignore = "minutes: every shipped variant on every case"]
fn all_cases_of_the_competition_are_exact() {
    interpret(1);
}
