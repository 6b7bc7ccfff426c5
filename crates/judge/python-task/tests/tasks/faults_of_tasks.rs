//! Tasks that test little or nothing, and references that are no measure.

use gauntlet_task::{Coverage, InputKind, Sizes};

use super::{Files, computed, fault, has};

/// A task whose reference and generator have these bodies; `x` is f32 `[rows, 64]`.
fn task(head: &str, generate: &str, reference: &str) -> String {
    format!(
        "import numpy as np\ncases = [{{\"rows\": 32}}]\n{head}\n\
         def generate(rows, seed):\n    rng = np.random.default_rng(seed)\n    {generate}\n\
         def reference(x):\n    {reference}\n"
    )
}

const NORMAL: &str = "return {'x': rng.standard_normal((rows, 64), dtype=np.float32)}";

/// The only case of a task.
fn sizes(text: &str) -> (Files, Sizes) {
    let files = Files::new(&[("task.py", text)]);
    let sizes = files.open("task.py").unwrap().benchmark[0].sizes.clone();
    (files, sizes)
}

/// What is said of a task after a first use, and whether it is blind.
fn remarks(text: &str) -> Vec<(String, bool)> {
    let (_files, sizes) = sizes(text);
    assert_eq!(sizes.remarks(), [], "it was not used");
    let _used = computed(&sizes, 11);
    let remarks = sizes.remarks().into_iter();
    remarks.map(|remark| (remark.text, remark.is_blind)).collect()
}

/// The error of the expected result.
fn refused(text: &str) -> String {
    let (files, sizes) = sizes(text);
    let inputs = sizes.generate(InputKind::Competition, 1).unwrap();
    let error = sizes.expected(&*inputs, Coverage::Full).unwrap_err();
    let folder = files.path("").canonicalize().unwrap();
    error.replace(&format!("{}/", folder.display()), "")
}

#[test]
fn a_result_that_depends_on_its_inputs_is_nothing_to_remark() {
    if !has("numpy") {
        return;
    }
    assert_eq!(remarks(&task("", NORMAL, "return {'y': 2 * x}")), []);
}

#[test]
fn a_result_that_is_the_same_for_all_inputs_makes_a_task_blind() {
    if !has("numpy") {
        return;
    }
    // The maximum of a row minus its own mean, as one of KernelBench's problems has it.
    let zero =
        "m = x.max(axis=1, keepdims=True)\n    return {'y': np.tanh(m - m.mean(axis=1, keepdims=True))}";
    let said = remarks(&task("", NORMAL, zero));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].1 && said[0].0.contains("the same for 4 draws of the inputs"),
        "{said:?}"
    );
    assert!(said[0].0.starts_with("on rows=32, "), "{said:?}");
    // A mean over many elements hardly moves, and its limits are wider than that.
    let mean = "return {'y': np.float32(100) + x.mean(axis=1)}";
    let wide = "tolerance = {'rtol': 1e-2}";
    let said = remarks(&task(wide, NORMAL, mean));
    assert!(said.len() == 1 && said[0].1, "{said:?}");
    assert_eq!(
        remarks(&task("", NORMAL, mean)),
        [],
        "its own limits are narrow enough"
    );
    // The task's own check may tell results apart.
    let check = format!(
        "{wide}\ndef check(inputs, output, expected): return None if np.allclose(output['y'], expected['y'], 1e-6) else 'no'"
    );
    assert_eq!(remarks(&task(&check, NORMAL, mean)), []);
}

#[test]
fn one_output_of_several_that_is_the_same_is_named() {
    if !has("numpy") {
        return;
    }
    let said = remarks(&task(
        "",
        NORMAL,
        "return {'y': 2 * x, 'mask': np.arange(len(x)) > 3}",
    ));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        !said[0].1 && said[0].0.contains("what is expected of `mask` was the same"),
        "{said:?}"
    );
}

#[test]
fn inputs_that_are_the_same_for_all_seeds_are_named() {
    if !has("numpy") {
        return;
    }
    let fixed = "return {'x': np.random.default_rng(0).random((rows, 64), dtype=np.float32)}";
    let said = remarks(&task("", fixed, "return {'y': 2 * x}"));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].1 && said[0].0.contains("all inputs were the same for 4 seeds"),
        "{said:?}"
    );
    let some = "return {'x': rng.random((rows, 64), dtype=np.float32), 'order': np.arange(rows)}";
    let gather = "return {'y': 2 * x}";
    let said = remarks(&task("", some, gather));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        !said[0].1 && said[0].0.contains("`order` had the same values"),
        "{said:?}"
    );
    assert_eq!(remarks(&task("constant = 'order'", some, gather)), []);
    let said = remarks(&task("constant = 'x'", NORMAL, gather));
    assert!(
        said.len() == 1 && !said[0].1 && said[0].0.contains("every input is `constant`"),
        "{said:?}"
    );
}

/// What is said of a task, which is blind or not.
fn said_of(text: &str, is_blind: bool) -> String {
    let said = remarks(text);
    assert_eq!(said.iter().any(|(_, blind)| *blind), is_blind, "{said:?}");
    said.into_iter()
        .map(|(text, _)| text)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn kernels_that_leave_work_out_and_would_pass_are_named() {
    if !has("numpy") {
        return;
    }
    let wide = "tolerance = {'atol': 1e-3, 'nrmse': 9.0, 'bias': 9.0}";
    let said = said_of(&task(wide, NORMAL, "return {'y': np.float32(1e-4) * x}"), true);
    assert!(said.contains("was the same for 4 draws"), "{said}");
    let uneven = "return {'y': np.where(np.arange(64) + 0 * x < 1, x, 0) * np.float32(1)}";
    let said = said_of(
        &task(
            "tolerance = {'share': 0.02, 'nrmse': 9.0, 'bias': 9.0}",
            NORMAL,
            uneven,
        ),
        true,
    );
    assert!(said.contains("was the same for 4 draws"), "{said}");
    // Half of the elements may be wrong.
    let half = "tolerance = {'share': 0.55, 'nrmse': 9.0, 'bias': 9.0}";
    let said = said_of(&task(half, NORMAL, "return {'y': 2 * x}"), true);
    assert!(said.contains("computes the first half of `y`"), "{said}");
    // Nothing moves.
    let said = said_of(&task("", NORMAL, "return {'y': np.ascontiguousarray(x.T)}"), true);
    assert!(
        said.contains("`y` is `x` with its axes in another order"),
        "{said}"
    );
    let said = said_of(&task("accepts = ['view']", NORMAL, "return {'y': x}"), false);
    assert!(
        said.contains("same elements in the same order") && said.ends_with("the task accepts this"),
        "{said}"
    );
}

#[test]
fn inputs_that_can_be_left_out_are_named() {
    if !has("numpy") {
        return;
    }
    let of = |bias: &str, constant: &str, is_blind: bool| {
        let draw =
            format!("return {{'x': rng.standard_normal((rows, 64), dtype=np.float32), 'bias': {bias}}}");
        let text = task(constant, &draw, "return {'y': 2 * x + bias}");
        said_of(&text.replace("reference(x)", "reference(x, bias)"), is_blind)
    };
    let constant = "constant = 'bias'";
    let said = of("np.zeros(64, np.float32)", constant, true);
    assert!(
        said.contains("nothing depends on `bias`: a kernel that takes it as zeros would pass"),
        "{said}"
    );
    of("rng.standard_normal(64, dtype=np.float32)", constant, false);
    // The same for each seed: known in advance, unless the task says that it is a weight.
    let fixed = "np.random.default_rng(1).standard_normal(64, dtype=np.float32)";
    let said = of(fixed, "", true);
    assert!(said.contains("`bias` had the same values for 4 seeds"), "{said}");
    of(fixed, constant, false);
    of(fixed, "accepts = ['fixed-input']", false);
}

#[test]
fn an_input_that_rests_in_one_case_matters_in_another() {
    if !has("numpy") {
        return;
    }
    let draw = "return {'x': rng.standard_normal((rows, 64), dtype=np.float32), 'bias': np.full(64, rows - 8, np.float32)}";
    let text = task("constant = 'bias'", draw, "return {'y': 2 * x + bias}");
    let text = text
        .replace("reference(x)", "reference(x, bias)")
        .replace("[{\"rows\": 32}]", "[{\"rows\": 8}, {\"rows\": 9}]");
    let files = Files::new(&[("task.py", &text)]);
    let suite = files.open("task.py").unwrap();
    let [resting, other] = [0, 1].map(|index| suite.benchmark[index].sizes.clone());
    assert_eq!(resting.depends_on("bias"), None, "it was not used");
    for sizes in [&resting, &other] {
        let _used = computed(sizes, 11);
    }
    assert_eq!(resting.depends_on("bias"), Some(false));
    assert_eq!(resting.remarks()[0].input.as_deref(), Some("bias"));
    assert_eq!(other.depends_on("x"), Some(true));
}

#[test]
fn a_reference_that_answers_otherwise_each_time_is_refused() {
    if !has("numpy") {
        return;
    }
    let dropout =
        "return {'y': np.where(drawn.random(x.shape) < 0.2, 0, x / np.float32(0.8)).astype(np.float32)}";
    let text = task("drawn = np.random.default_rng()", NORMAL, dropout);
    let said = refused(&text);
    assert!(
        said.starts_with("task.py: the reference gives two results for the same inputs, on rows=32, "),
        "{said}"
    );
    assert!(said.contains("switch off dropout"), "{said}");
    // Where the task's own check alone decides, several results may be right.
    let (_files, sizes) = sizes(&format!(
        "{text}\ntolerance = 'check'\ndef check(inputs, output, expected): return None\n"
    ));
    let (inputs, output) = computed(&sizes, 1);
    assert_eq!(fault(&sizes, &*inputs, &output), None);
}

#[test]
fn a_reference_that_differs_by_rounding_is_a_measure() {
    if !has("numpy") {
        return;
    }
    let atomic =
        "calls.append(1)\n    return {'y': np.nextafter(x.sum(1), np.float32(9e9 * (len(calls) % 2)))}";
    let (_files, sizes) = sizes(&task("calls = []", NORMAL, atomic));
    let (inputs, output) = computed(&sizes, 1);
    assert_eq!(fault(&sizes, &*inputs, &output), None);
}

#[test]
fn a_reference_that_is_nan_everywhere_is_refused_and_in_part_is_noted() {
    if !has("numpy") {
        return;
    }
    let quiet = "with np.errstate(all='ignore'):";
    let said = refused(&task(
        "",
        NORMAL,
        &format!("{quiet} return {{'y': np.log(-np.abs(x)), 'z': x}}"),
    ));
    assert!(
        said.starts_with("task.py: the reference is NaN in all elements of `y`, on rows=32, "),
        "{said}"
    );
    let half = task(
        "",
        "return {'x': np.tile(np.float32([-1, 1]) * (1 + rng.random(32, dtype=np.float32))[:, None], 32)}",
        &format!("{quiet} return {{'y': np.sqrt(x)}}"),
    );
    let said = remarks(&half);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        !said[0].1 && said[0].0.contains("NaN in 50 % of the elements of `y`"),
        "{said:?}"
    );
    // Who is right where the reference is not is told.
    let (_files, sizes) = sizes(&half);
    let (inputs, mut output) = computed(&sizes, 1);
    output.0[0].set(0, 0.0);
    let said = fault(&sizes, &*inputs, &output).unwrap();
    assert!(
        said.ends_with("; the reference is NaN in 50 % of the elements of `y`"),
        "{said}"
    );
}

#[test]
fn a_result_that_is_nearer_than_the_reference_is_told_so() {
    if !has("numpy") {
        return;
    }
    // The differences of large numbers: f32 leaves few digits of them.
    let reference = "return {'y': ((x + np.float32(4096)) - x.dtype.type(4096))}";
    let (_files, sizes) = sizes(&task(
        "tolerance = {'rtol': 1e-5, 'nrmse': 1e-5}",
        NORMAL,
        reference,
    ));
    let (inputs, output) = computed(&sizes, 1);
    let x = super::values(&*inputs, "x");
    let mut exact = output.clone();
    x.iter()
        .enumerate()
        .for_each(|(index, value)| exact.0[0].set(index, *value));
    let said = fault(&sizes, &*inputs, &exact).unwrap();
    assert!(
        said.contains("the kernel's result is nearer to it: let the reference compute in f64"),
        "{said}"
    );
    let mut worse = output;
    (0..x.len()).for_each(|index| {
        let value = worse.0[0].get(index);
        worse.0[0].set(index, value * 1.01);
    });
    let said = fault(&sizes, &*inputs, &worse).unwrap();
    assert!(said.contains("the reference's is nearer to it"), "{said}");
}

#[test]
fn a_reference_that_takes_no_f64_gives_no_hint() {
    if !has("numpy") {
        return;
    }
    let reference = "assert x.dtype == np.float32; return {'y': 2 * x}";
    let (_files, sizes) = sizes(&task("", NORMAL, reference));
    let (inputs, mut output) = computed(&sizes, 1);
    output.0[0].set(0, 9.0);
    let said = fault(&sizes, &*inputs, &output).unwrap();
    assert!(said.starts_with("NRMSE") && !said.contains("f64"), "{said}");
}

#[test]
fn an_output_that_is_expected_to_be_zero_is_judged_by_the_tolerance_alone() {
    if !has("numpy") {
        return;
    }
    let zeros = "return {'y': x, 'rest': np.zeros(len(x), np.float32)}";
    let (_files, sizes) = sizes(&task("tolerance = {'rest': {'atol': 1e-6}}", NORMAL, zeros));
    let (inputs, output) = computed(&sizes, 1);
    let found = |value: f64| {
        let mut output = output.clone();
        output.0[1].set(3, value);
        fault(&sizes, &*inputs, &output)
    };
    assert_eq!(found(1e-7), None);
    assert!(
        found(1e-5)
            .unwrap()
            .starts_with("`rest`: 1 element is outside the tolerance")
    );
}

#[test]
fn what_is_left_of_zero_after_rounding_is_judged_by_the_tolerance_alone() {
    if !has("numpy") {
        return;
    }
    // The second output is zero but for errors of rounding in f32, which any other order of the sum makes otherwise.
    let rest = "m = x.mean(axis=1, keepdims=True)\n    return {'y': x, 'rest': (x - m).sum(axis=1)}";
    let stated = "tolerance = {'rest': {'atol': 1e-4}}";
    let (_files, sizes) = sizes(&task(stated, NORMAL, rest));
    let (inputs, output) = computed(&sizes, 1);
    let found = |size: f64| {
        let mut output = output.clone();
        (0..32).for_each(|row| output.0[1].set(row, if row % 2 == 0 { size } else { -size }));
        fault(&sizes, &*inputs, &output)
    };
    assert_eq!(found(1e-6), None);
    assert!(found(1e-3).is_some());
}

#[test]
fn an_output_of_few_elements_that_is_small_by_chance_may_be_as_far_off_as_usual() {
    if !has("numpy") {
        return;
    }
    // For seed 1 the scalar is a thousandth of what it is for others.
    let draw =
        "return {'x': np.float32(1e-3 if seed == 1 else 1) * rng.random((rows, 64), dtype=np.float32)}";
    let scalar = "return {'y': x, 'sum': np.float32(x.astype(np.float64).sum())}";
    let stated = "tolerance = {'sum': {'atol': 1e-2}}";
    let (_files, sizes) = sizes(&task(stated, draw, scalar));
    let (inputs, output) = computed(&sizes, 1);
    let found = |times: f64| {
        let mut output = output.clone();
        let sum = output.0[1].get(0);
        output.0[1].set(0, times * sum);
        fault(&sizes, &*inputs, &output)
    };
    assert_eq!(
        found(1.002),
        None,
        "far off for its size, and not for the size of other sums"
    );
    assert!(found(0.0).is_some(), "zero is none");
}

#[test]
fn few_calls_of_the_reference_say_what_hangs_on_an_input() {
    if !has("numpy") {
        return;
    }
    let head = "calls = []\ntolerance = {'rtol': 1e-3, 'atol': 1e-3}\n\
                def check(inputs, output, expected):\n    \
                return None if np.array_equal(output['y'], expected['y']) else f'{len(calls)} calls'";
    let (_files, sizes) = sizes(&task(
        head,
        NORMAL,
        "calls.append(1)\n    return {'y': np.sin(x)}",
    ));
    let (inputs, mut output) = computed(&sizes, 11);
    let _other = computed(&sizes, 12);
    assert_eq!(sizes.remarks(), []);
    let first = output.0[0].get(0);
    output.0[0].set(0, first + 1e-6);
    // One opens the case, three are for the two draws, the first of which is asked twice, and two for zeros and ones in place of `x`.
    let said = fault(&sizes, &*inputs, &output).unwrap();
    assert!(said.ends_with("6 calls"), "{said}");
}
