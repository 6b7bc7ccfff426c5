//! A problem in the form of KernelBench.

use gauntlet_task::{Coverage, InputKind};

use super::{Files, computed, fault, has, limits};

const LINEAR: &str = r#"
import torch
import torch.nn as nn

class Model(nn.Module):
    """A layer and an activation."""
    def __init__(self, features, outputs):
        super().__init__()
        self.layer = nn.Linear(features, outputs)

    def forward(self, x):
        return torch.relu(self.layer(x))

def get_inputs():
    return [torch.rand(6, 16)]

def get_init_inputs():
    return [16, 4]
"#;

#[test]
fn a_model_is_a_task() {
    if !has("torch") {
        return;
    }
    let files = Files::new(&[("7_linear.py", LINEAR)]);
    let suite = files.open("7_linear.py").unwrap();
    assert_eq!(
        (suite.description.as_str(), suite.benchmark.len()),
        ("A layer and an activation.", 1)
    );
    let sizes = &suite.benchmark[0].sizes;
    let told = sizes.record();
    assert_eq!((&told["call"], &told["seed"]), (&"model".into(), &42.into()));
    let arguments = serde_json::json!({ "tuple": [{ "tensor": "0" }] });
    assert_eq!(told["arguments"], arguments);
    assert_eq!(
        told["init"],
        serde_json::json!({ "tuple": [{ "value": 16 }, { "value": 4 }] })
    );

    let (inputs, output) = computed(sizes, 1);
    let limits = limits(sizes, &*inputs)[0];
    assert_eq!(
        (limits.tolerance.relative, limits.tolerance.absolute),
        (1e-4, 1e-4)
    );
    assert_eq!(fault(sizes, &*inputs, &output), None);
    let other = sizes.generate(InputKind::Wide, 2).unwrap();
    assert!(
        fault(sizes, &*other, &output).is_some(),
        "the inputs follow the seed"
    );
    let again = sizes.expected(&*inputs, Coverage::Full).unwrap();
    assert_eq!(
        again,
        gauntlet_task::Expected::of(&output).within([limits]),
        "the weights do not"
    );
}

#[test]
fn a_model_that_does_not_fit_its_arguments_is_told() {
    if !has("torch") {
        return;
    }
    let files = Files::new(&[("7_linear.py", &LINEAR.replace("[16, 4]", "[16]"))]);
    insta::assert_snapshot!(files.refused("7_linear.py"));
}

#[test]
fn a_model_that_drops_at_random_is_refused_and_one_that_is_seeded_is_not() {
    if !has("torch") {
        return;
    }
    let random = LINEAR.replace(
        "torch.relu(self.layer(x))",
        "nn.functional.dropout(self.layer(x), 0.2)",
    );
    let files = Files::new(&[("66_dropout.py", &random)]);
    let sizes = &files.open("66_dropout.py").unwrap().benchmark[0].sizes;
    let inputs = sizes.generate(InputKind::Wide, 1).unwrap();
    let said = sizes.expected(&*inputs, Coverage::Full).unwrap_err();
    assert!(
        said.contains("the reference gives two results for the same inputs"),
        "{said}"
    );
    let fixed = random.replace("return nn", "torch.manual_seed(3)\n        return nn");
    let files = Files::new(&[("66_dropout.py", &fixed)]);
    let sizes = &files.open("66_dropout.py").unwrap().benchmark[0].sizes;
    let (inputs, output) = computed(sizes, 1);
    assert_eq!(fault(sizes, &*inputs, &output), None);
}

#[test]
fn a_kernel_that_is_nearer_to_the_model_in_f64_is_told_so() {
    if !has("torch") {
        return;
    }
    let inexact = LINEAR.replace("torch.relu(self.layer(x))", "(self.layer(x) + 4096) - 4096");
    let files = Files::new(&[
        ("7_linear.py", &inexact),
        (
            "8_linear.py",
            &LINEAR.replace("torch.relu(self.layer(x))", "self.layer(x)"),
        ),
    ]);
    let [rough, exact] = ["7_linear.py", "8_linear.py"].map(|name| files.open(name).unwrap());
    let (inputs, output) = computed(&exact.benchmark[0].sizes, 1);
    let said = fault(&rough.benchmark[0].sizes, &*inputs, &output).unwrap();
    assert!(said.contains("the kernel's result is nearer to it"), "{said}");
}
