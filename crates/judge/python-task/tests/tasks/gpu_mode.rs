//! A folder in the form of GPU MODE's competitions, with numpy in place of torch.

use super::{Files, computed, fault, has, limits};

const TASK_YML: &str = r#"
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "utils.py", "source": "../shared/utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
lang: "py"
description: |
  Add pairs of arrays.

config:
  main: "eval.py"
tests:
  - {"sizes": [3, 4], "seed": 11}
benchmarks:
  - {"sizes": [300, 40], "seed": 12}
  - {"sizes": [500], "seed": 13}
ranking_by: "geom"
test_timeout: 180
"#;

const UTILS: &str = r#"
import numpy as np
def match_reference(data, output, reference, rtol=1e-4, atol=1e-6):
    wanted = reference(data)
    same = len(output) == len(wanted) and all(np.allclose(*pair, rtol, atol) for pair in zip(output, wanted))
    return (True, "") if same else (False, "the sums differ")
def make_match_reference(reference, **kwargs):
    def judge(data, output):
        return match_reference(data, output, reference=reference, **kwargs)
    return judge
"#;

const REFERENCE: &str = r#"
import numpy as np
from task import kind
from utils import make_match_reference
def generate_input(sizes, seed):
    drawn = np.random.default_rng(seed)
    return [(drawn.standard_normal(size, kind), drawn.standard_normal(size, kind)) for size in sizes], sizes
def ref_kernel(data):
    pairs, sizes = data
    return [one + other for one, other in pairs]
check_implementation = make_match_reference(ref_kernel, rtol=1e-3)
"#;

fn files(yml: &str, reference: &str) -> Files {
    Files::new(&[
        ("sums/task.yml", yml),
        ("sums/task.py", "import numpy as np\nkind = np.float32\n"),
        ("sums/reference.py", reference),
        ("shared/utils.py", UTILS),
    ])
}

#[test]
fn a_competition_s_folder_is_a_task() {
    if !has("numpy") {
        return;
    }
    let files = files(TASK_YML, REFERENCE);
    let suite = files.open("sums").unwrap();
    assert_eq!(
        (suite.name.as_str(), suite.description.as_str()),
        ("sums", "Add pairs of arrays.")
    );
    let names =
        |cases: &[gauntlet_task::Case]| cases.iter().map(|case| case.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&suite.correctness), ["test-1"]);
    assert_eq!(names(&suite.benchmark), ["benchmark-1", "benchmark-2"]);
    insta::assert_snapshot!(suite.notes.join("\n"));
    let sizes = &suite.correctness[0].sizes;
    insta::assert_json_snapshot!(sizes.record());
    let (inputs, output) = computed(sizes, 9);
    let tolerance = limits(sizes, &*inputs)[0].tolerance;
    assert_eq!((tolerance.relative, tolerance.absolute), (1e-3, 1e-6));
    assert_eq!(fault(sizes, &*inputs, &output), None);
    let mut wrong = output;
    wrong.0[1].set(0, 5.0);
    assert!(fault(sizes, &*inputs, &wrong).is_some());
    let sizes = sizes.downcast::<gauntlet_python_task::PythonSizes>().unwrap();
    let errors = |output: &gauntlet_task::Output| {
        let expected = gauntlet_task::Expected::of(output);
        gauntlet_task::ErrorMeasures::between(output, &expected, tolerance)
    };
    let own = gauntlet_task::TaskSizes::check(sizes, &*inputs, &wrong, &errors(&wrong));
    assert_eq!(own.as_deref(), Some("the task's own check: the sums differ"));
}

#[test]
fn fresh_seeds_are_of_the_size_of_those_in_the_file() {
    if !has("numpy") {
        return;
    }
    // A generator that adds the seed to its values, as one that gives each row a mean of its own does.
    let adds = REFERENCE.replace(
        "drawn.standard_normal(size, kind)",
        "kind(seed) + drawn.standard_normal(size, kind)",
    );
    let files = files(&TASK_YML.replace("\"seed\": 13", "\"seed\": 20000"), &adds);
    let suite = files.open("sums").unwrap();
    let largest = |seed| {
        let (_, output) = computed(&suite.correctness[0].sizes, seed);
        output.0[0].get(0)
    };
    assert!((largest(19_999) - 2.0 * 19_999.0).abs() < 20.0);
    let wrapped = largest(20_000 * 100_000 + 3);
    assert!((wrapped - 6.0).abs() < 20.0, "{wrapped}");
}

#[test]
fn a_check_of_another_form_is_the_rule_or_stands_beside_a_wide_one() {
    if !has("numpy") {
        return;
    }
    let own = |body: &str| {
        let (before, _) = REFERENCE.split_once("check_implementation").unwrap();
        files(
            TASK_YML,
            &format!("{before}def check_implementation(data, output):\n{body}"),
        )
    };
    let properties = own("    return '' if all((part < 100).all() for part in output) else 'too large'\n");
    let suite = properties.open("sums").unwrap();
    assert!(
        suite.notes.iter().any(|note| note.contains("only it decides")),
        "{:?}",
        suite.notes
    );
    let sizes = &suite.correctness[0].sizes;
    let (inputs, mut output) = computed(sizes, 9);
    output.0[0].set(0, 50.0);
    assert_eq!(fault(sizes, &*inputs, &output), None);
    output.0[0].set(0, 500.0);
    assert_eq!(
        fault(sizes, &*inputs, &output).unwrap(),
        "the task's own check: too large"
    );

    let near =
        own("    wanted = ref_kernel(data)\n    return abs(output[0] - wanted[0]).max() <= 1, 'far off'\n");
    let suite = near.open("sums").unwrap();
    assert!(
        suite.notes.iter().any(|note| note.contains("0.05 at most")),
        "{:?}",
        suite.notes
    );
    let sizes = &suite.correctness[0].sizes;
    let (inputs, mut output) = computed(sizes, 9);
    let right = output.0[0].get(0);
    output.0[0].set(0, right + 1e-3);
    assert_eq!(fault(sizes, &*inputs, &output), None);
    output.0[0].set(0, right + 0.9);
    assert!(fault(sizes, &*inputs, &output).unwrap().contains("`: NRMSE"));
}

#[test]
fn what_cannot_be_honoured_is_refused_or_told_by_name() {
    if !has("numpy") {
        return;
    }
    let told = [
        ("an unknown field", "ranking_by:", "ranked_by:"),
        ("another language", "lang: \"py\"", "lang: \"cu\""),
        ("no benchmarks", "benchmarks:", "milestones:"),
        (
            "a case that is no map",
            "- {\"sizes\": [3, 4], \"seed\": 11}",
            "- 3",
        ),
        ("YAML that is none", "tests:\n", "tests: [\n"),
        ("a source that is not there", "../shared/utils.py", "../utils.py"),
        ("another size", "{\"sizes\": [500]", "{\"size\": [500]"),
    ];
    let mut all = String::new();
    for (what, before, after) in told {
        let said = files(&TASK_YML.replace(before, after), REFERENCE).refused("sums");
        all += &format!("{what}:\n  {said}\n\n");
    }
    insta::assert_snapshot!(all);
}
