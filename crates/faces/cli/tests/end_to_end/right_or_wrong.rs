//! Which results of kernels are right, by the limits of each output: what `check` says of right and wrong kernels in Python.

use crate::common::{Place, has_numpy};

/// What `check` finds wrong with kernels of kernels.py: the first error of each, if any.
fn errors(task: &str, kernels: &str, names: &[&str]) -> Option<Vec<(String, Option<String>)>> {
    if !has_numpy() {
        return None;
    }
    let place = Place::new();
    place.write("task.py", task);
    place.write("kernels.py", kernels);
    let targets: Vec<_> = names.iter().map(|name| format!("kernels.py:{name}")).collect();
    let targets: Vec<_> = targets.iter().map(String::as_str).collect();
    let ran = place.run(&[&["check"], &targets[..], &["--task", "task.py"]].concat());
    // One summary for each kernel, after its table and the first error of each case.
    let summaries = ran
        .out
        .replace("nothing could be compared", "0 of 0 comparisons right");
    let parts: Vec<_> = summaries.split(" comparisons right").collect();
    assert_eq!(parts.len(), names.len() + 1, "{} {}", ran.out, ran.err);
    let first = |part: &&str| {
        part.lines()
            .find_map(|line| line.strip_prefix("[1] "))
            .map(str::to_owned)
    };
    let named = names.iter().map(|name| (*name).to_owned());
    Some(named.zip(parts.iter().map(first)).collect())
}

/// Checks that the first kernels are right, and that each other one is wrong with this in its error.
#[track_caller]
fn expect(task: &str, kernels: &str, right: &[&str], wrong: &[(&str, &str)]) {
    let names: Vec<_> = right
        .iter()
        .copied()
        .chain(wrong.iter().map(|one| one.0))
        .collect();
    let Some(errors) = errors(task, kernels, &names) else {
        return;
    };
    for (name, error) in &errors[..right.len()] {
        assert_eq!(*error, None, "{name}");
    }
    for ((name, error), (_, phrase)) in errors[right.len()..].iter().zip(wrong) {
        let error = error.as_deref().unwrap_or("right");
        assert!(error.contains(phrase), "{name}: no {phrase:?} in {error:?}");
    }
}

/// The rows of a decoding step see many keys: the average of their values is small, and the logarithm beside it is not.
const DECODING: &str = r#"
import numpy as np
cases = [{"rows": 8, "keys": 4096, "size": 64}]
tolerance = {"rtol": 1e-2, "atol": 1e-2}
def generate(rows, keys, size, seed):
    rng = np.random.default_rng(seed)
    draw = lambda scale, *shape: np.float32(scale) * rng.standard_normal(shape, dtype=np.float32)
    return {"query": draw(0.1, rows, size), "key": draw(1, keys, size), "value": draw(0.1, keys, size)}
def attend(query, key, value, kind):
    score = (query @ key.T).astype(kind) / np.sqrt(kind(query.shape[1]))
    top = score.max(1, keepdims=True)
    power = np.exp(score - top)
    total = power.sum(1, keepdims=True)
    return {"out": ((power / total) @ value).astype(np.float32), "lse": (np.log(total) + top)[:, 0].astype(np.float32)}
def reference(query, key, value):
    return attend(query, key, value, np.float64)
"#;

#[test]
fn a_small_output_is_judged_by_itself() {
    let kernels = "
import numpy as np
from task import attend
def right(query, key, value):
    return attend(query, key, value, np.float32)
def zeros(query, key, value):
    return {**right(query, key, value), 'out': np.zeros_like(query)}
def half_of_the_keys(query, key, value):
    half = len(key) // 2
    return {**right(query, key, value), 'out': right(query, key[:half], value[:half])['out']}
def negative(query, key, value):
    result = right(query, key, value)
    return {**result, 'out': -result['out']}
";
    let own = "`out`: NRMSE";
    let wrong = [("zeros", own), ("half_of_the_keys", own), ("negative", own)];
    expect(DECODING, kernels, &["right"], &wrong);
}

#[test]
fn a_share_stated_for_one_output_covers_no_other() {
    let task = r#"
import numpy as np
cases = [{"rows": 256, "cols": 128}]
tolerance = {"codes": {"rtol": 0, "atol": 0, "share": 0.01}, "scales": {"rtol": 1e-5, "atol": 0}}
def generate(rows, cols, seed):
    return {"x": np.random.default_rng(seed).standard_normal((rows, cols), dtype=np.float32)}
def quantised(x, kind):
    scales = np.abs(x).max(axis=1).astype(kind) / kind(127)
    return {"codes": np.rint(x / scales[:, None]).astype(np.int8), "scales": scales.astype(np.float32)}
def reference(x):
    return quantised(x, np.float64)
"#;
    let kernels = "
import numpy as np
from task import quantised
def right(x):
    return quantised(x, np.float32)
def ties(x):
    result = right(x)
    result['codes'].ravel()[::128] -= 1
    return result
def scale_of_the_next_row(x):
    result = right(x)
    return {**result, 'scales': np.roll(result['scales'], -1)}
def some_scales_off(x):
    result = right(x)
    result['scales'][::8] *= np.float32(1.0001)
    return result
def many_codes(x):
    result = right(x)
    result['codes'].ravel()[::50] += 1
    return result
";
    let wrong = [
        ("scale_of_the_next_row", "`scales`: NRMSE"),
        (
            "some_scales_off",
            "`scales`: 32 elements are outside the tolerance",
        ),
        ("many_codes", "`codes`: 656 elements are outside the tolerance"),
    ];
    expect(task, kernels, &["right", "ties"], &wrong);
}

const MASKED: &str = r#"
import numpy as np
cases = [{"rows": 32, "cols": 64}]
tolerance = {"rtol": 1e-4, "atol": 1e-6}
def generate(rows, cols, seed):
    rng = np.random.default_rng(seed)
    keep = rng.random((rows, cols)) < 0.5
    keep[::4] = False
    return {"x": rng.standard_normal((rows, cols), dtype=np.float32), "keep": keep}
def reference(x, keep):
    with np.errstate(all="ignore"):
        power = np.where(keep, np.exp(x.astype(np.float64)), 0)
        return {"y": (power / power.sum(1, keepdims=True)).astype(np.float32)}
"#;

#[test]
fn a_row_of_nan_must_be_written_too() {
    let kernels = "
import numpy as np
def writes_nan(x, keep, y):
    with np.errstate(all='ignore'):
        power = np.where(keep, np.exp(x), 0)
        y[...] = power / power.sum(1, keepdims=True)
def leaves_rows(x, keep, y):
    rows = keep.any(1)
    power = np.where(keep[rows], np.exp(x[rows]), 0)
    y[rows] = power / power.sum(1, keepdims=True)
def leaves_all(x, keep, y):
    pass
def writes_zeros(x, keep, y):
    writes_nan(x, keep, y)
    y[~keep.any(1)] = 0
";
    let wrong = [
        (
            "leaves_rows",
            "512 elements of `y` were never written, the first at row 0, column 0",
        ),
        (
            "leaves_all",
            "2048 elements of `y` were never written, the first at row 0, column 0",
        ),
        (
            "writes_zeros",
            "the reference is NaN in 25 % of the elements of `y`",
        ),
    ];
    expect(MASKED, kernels, &["writes_nan"], &wrong);
}

#[test]
fn nan_and_unwritten_elements_are_told_apart_with_their_place() {
    let task = "
import numpy as np
cases = [{'rows': 16, 'cols': 32}]
tolerance = {'rtol': 1e-2, 'atol': 1e-2}
def generate(rows, cols, seed):
    return {'x': np.random.default_rng(seed).standard_normal((rows, cols), dtype=np.float32)}
def reference(x):
    return {'y': np.maximum(x, 0)}
";
    let kernels = "
import numpy as np
def right(x): return np.where(x > 0, x, np.float32(0))
def all_nan(x): return np.full_like(x, np.nan)
def one_nan(x):
    y = np.maximum(x, 0)
    y[-1, 3] = np.nan
    return y
def one_infinity(x):
    y = np.maximum(x, 0)
    y[2, 5] = np.inf
    return y
def last_row_left(x, y):
    y[:-1] = np.maximum(x[:-1], 0)
";
    let wrong = [
        (
            "all_nan",
            "512 elements of `y` are NaN, the first at row 0, column 0",
        ),
        (
            "one_nan",
            "1 element of `y` is NaN, the first at row 15, column 3",
        ),
        ("one_infinity", "worst at `y`, row 2, column 5: inf instead of"),
        (
            "last_row_left",
            "32 elements of `y` were never written, the first at row 15, column 0",
        ),
    ];
    expect(task, kernels, &["right"], &wrong);
}

#[test]
fn integers_that_are_not_written_are_found_by_check() {
    let task = "
import numpy as np
cases = [{'n': 64}]
def generate(n, seed):
    return {'x': np.random.default_rng(seed).integers(0, 9, n)}
def reference(x):
    return {'y': np.where(x > 4, x, -1)}
";
    let kernels = "
import numpy as np
def right(x, y): y[...] = np.where(x > 4, x, -1)
def large_ones(x, y): y[x > 4] = x[x > 4]
";
    // −1 is what an output holds that is filled with the byte 0xFF.
    expect(
        task,
        kernels,
        &["right"],
        &[("large_ones", "of `y` were never written")],
    );
}

#[test]
fn minus_infinity_is_right_only_where_it_is_expected() {
    let task = "
import numpy as np
cases = [{'rows': 12, 'cols': 8}]
tolerance = {'rtol': 1e-4, 'atol': 1e-5}
def generate(rows, cols, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, cols), dtype=np.float32)
    x[::3] = -np.inf
    return {'x': x}
def reference(x):
    top = x.max(1).astype(np.float64)
    with np.errstate(all='ignore'):
        sums = np.exp(x - np.where(np.isfinite(top), top, 0)[:, None]).sum(1)
        return {'lse': (np.log(sums) + np.where(np.isfinite(top), top, 0)).astype(np.float32)}
";
    let kernels = "
import numpy as np
from task import reference
def right(x): return reference(x)
def instead(x, value):
    lse = reference(x)['lse']
    lse[~np.isfinite(lse)] = value
    return lse
def finite(x): return instead(x, -1e30)
def positive(x): return instead(x, np.inf)
def nan(x): return instead(x, np.nan)
";
    let wrong = [
        ("finite", "instead of -inf"),
        ("positive", "inf instead of -inf"),
        ("nan", "4 elements of `lse` are NaN"),
    ];
    expect(task, kernels, &["right"], &wrong);
}

#[test]
fn statistics_over_padding_are_told_by_their_bias() {
    let task = "
import numpy as np
cases = [{'groups': 4, 'per': 8, 'positions': 200}]
tolerance = {'rtol': 6.5e-2, 'atol': 6.5e-2}
def generate(groups, per, positions, seed):
    rng = np.random.default_rng(seed)
    return {'x': (rng.standard_normal((groups, per, positions)) + 0.2).astype(np.float32)}
def normed(x, over):
    mean, var = over.mean(axis=(1, 2), keepdims=True), over.var(axis=(1, 2), keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5)
def reference(x):
    return {'y': normed(x.astype(np.float64), x.astype(np.float64)).astype(np.float32)}
";
    let kernels = "
import numpy as np
from task import normed
def right(x): return normed(x, x).astype(np.float32)
def padded(x):
    over = np.zeros(x.shape[:2] + (224,), np.float32)
    over[..., :200] = x
    return normed(x, over).astype(np.float32)
";
    expect(task, kernels, &["right"], &[("padded", "bias ")]);
}

#[test]
fn inputs_may_be_scratch_and_old_memory_is_no_result() {
    let task = "
import numpy as np
cases = [{'n': 64}]
tolerance = {'rtol': 1e-4, 'atol': 1e-3}
def generate(n, seed):
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal((n, n), dtype=np.float32) for name in 'ab'}
def reference(a, b):
    return {'c': (a.astype(np.float64) @ b).astype(np.float32)}
";
    let kernels = "
import numpy as np
def right(a, b): return a @ b
def in_place(a, b):
    a[...] = a @ b
    return a
def view(a, b): return (b.T @ a.T).T
def inputs_to_zero(a, b):
    a[...] = b[...] = 0
    return np.zeros_like(a)
def old_memory(a, b): return np.empty_like(a)
";
    let wrong = [("inputs_to_zero", "NRMSE 1.00e0"), ("old_memory", "")];
    expect(task, kernels, &["right", "in_place", "view"], &wrong);
}

#[test]
fn halves_of_an_output_that_two_calls_write_are_no_whole() {
    let task = "
import numpy as np
cases = [{'n': 512}]
def generate(n, seed):
    rng = np.random.default_rng(seed)
    return {'x': rng.standard_normal(n, dtype=np.float32), 'i': rng.integers(0, 100, n)}
def reference(x, i):
    return {'half': x / 2, 'double': i * 2}
";
    let kernels = "
import numpy as np
calls = 0
def right(x, i, half, double): np.divide(x, 2, out=half); np.multiply(i, 2, out=double)
def by_turns(x, i, half, double):
    global calls
    part = slice(0, 256) if calls % 2 == 0 else slice(256, None)
    calls += 1
    half[part], double[part] = x[part] / 2, i[part] * 2
own = {}
def own_buffer(x, i):
    half, double = own.setdefault('buffers', (np.empty_like(x), np.empty_like(i)))
    by_turns(x, i, half, double)
    return {'half': half, 'double': double}
";
    let wrong = [
        ("by_turns", "of `half` are NaN or never written"),
        ("own_buffer", ""),
    ];
    expect(task, kernels, &["right"], &wrong);
}

#[test]
fn results_of_many_shapes_and_types_are_right_or_named() {
    let task = "
import numpy as np
cases = {'correctness': [{'rows': 1, 'cols': 1}, {'rows': 0, 'cols': 8}], 'benchmark': [{'rows': 16, 'cols': 32}]}
tolerance = {'loss': {'rtol': 1e-4}, 'scaled': {'rtol': 1e-5}}
def generate(rows, cols, seed):
    return {'x': np.random.default_rng(seed).standard_normal((rows, cols), dtype=np.float32)}
def result(x):
    return {'loss': np.asarray(np.square(x.astype(np.float64)).sum(), np.float32), 'mask': x > 0,
            'most': x.argmax(axis=1) if len(x) else np.zeros(0, np.int64), 'scaled': x.T * np.float32(2),
            'wave': np.exp(1j * x.astype(np.float64)).astype(np.complex64)}
def reference(x):
    return result(x)
";
    let kernels = "
import numpy as np
from task import result
def right(x): return result(x)
def scalar_of_numpy(x): return {**result(x), 'loss': np.square(x).sum()}
def strided(x):
    wide = np.empty((x.shape[1], 2 * x.shape[0]), np.float32)
    wide[:, ::2] = 2 * x.T
    return {**result(x), 'scaled': wide[:, ::2]}
def backwards(x): return {**result(x), 'scaled': np.ascontiguousarray((x * np.float32(2)).T[::-1])[::-1]}
def one_element(x): return {**result(x), 'loss': np.square(x).sum(keepdims=True).reshape(1)}
def mask_as_u8(x): return {**result(x), 'mask': (x > 0).astype(np.uint8)}
def not_transposed(x): return {**result(x), 'scaled': (x * np.float32(2)).reshape(x.shape[1], x.shape[0])}
def off_by_one(x): return {**result(x), 'most': result(x)['most'] + (np.arange(len(x)) == 3)}
def conjugate(x): return {**result(x), 'wave': result(x)['wave'].conj()}
";
    let right = ["right", "scalar_of_numpy", "strided", "backwards"];
    let wrong = [
        ("one_element", "`loss`"),
        ("mask_as_u8", "`mask` has elements of type uint8"),
        ("not_transposed", "`scaled`: "),
        ("off_by_one", "`most`: "),
        ("conjugate", "`wave`: "),
    ];
    expect(task, kernels, &right, &wrong);
}
