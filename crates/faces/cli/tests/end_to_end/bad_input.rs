//! Bad input: each case gets a message that names the file, the line and the remedy, exit code 2, and leaves the ledger
//! unchanged.

#![expect(clippy::unwrap_used, reason = "tests")]

use crate::common::{Place, Ran, TINY_SUITE, names, pitch, tiny_round};

/// Runs a round file with one error and checks the message and the ledger.
#[track_caller]
fn refused(round: &str, suite: &str, phrases: &[&str]) {
    let place = Place::new();
    place.write("suite.toml", suite);
    place.write("round.toml", round);
    let ran = place.run(&["run", "round.toml"]).expect(2);
    names(&ran, phrases);
    assert!(
        !place.path("ledger.sqlite").exists(),
        "a bad file must not make a ledger"
    );
}

#[test]
fn malformed_toml() {
    let round = tiny_round("").replace("budget = \"20s\"", "budget = = \"20s\"");
    refused(
        &round,
        TINY_SUITE,
        &["round.toml:15", "budget = = \"20s\"", "help:"],
    );
}

#[test]
fn an_unknown_schedule_word() {
    let round = tiny_round(&pitch("typo", "stagez = 2", ""));
    refused(
        &round,
        TINY_SUITE,
        &["round.toml:23", "stagez", "stages", "gauntlet schedules"],
    );
}

#[test]
fn an_unknown_value_of_a_word() {
    let round = tiny_round(&pitch("typo", "order = \"dynamik\"", ""));
    refused(&round, TINY_SUITE, &["round.toml:23", "dynamik", "dynamic"]);
}

#[test]
fn a_recorded_loop_outside_of_a_round_of_records() {
    refused(
        &tiny_round(&pitch(
            "loop",
            "stages = 2",
            "recorded-loop = \"barrier-removed\"",
        )),
        TINY_SUITE,
        &[
            "round.toml:31",
            "proved no longer",
            "softmax.cu:fused",
            "gauntlet check",
        ],
    );
}

#[test]
fn a_missing_claim() {
    let whole = pitch("no-claim", "stages = 2", "");
    let without: String = whole
        .lines()
        .filter(|line| !line.starts_with("claim"))
        .map(|line| format!("{line}\n"))
        .collect();
    refused(
        &tiny_round(&without),
        TINY_SUITE,
        &["round.toml:18", "missing field `claim`", "add `claim`"],
    );
}

#[test]
fn odds_that_do_not_add_up() {
    let round =
        tiny_round(&pitch("odd-odds", "stages = 2", "")).replace("inconclusive = 0.5", "inconclusive = 0.6");
    refused(&round, TINY_SUITE, &["round.toml:25", "add up to 1.1"]);
}

#[test]
fn a_depth_that_is_not_a_multiple_of_sixteen() {
    let suite = TINY_SUITE.replace("k = 256", "k = 250");
    refused(
        &tiny_round(""),
        &suite,
        &["suite.toml:12", "250", "16", "240", "256"],
    );
}

#[test]
fn no_groups() {
    let suite = TINY_SUITE.replace("groups = [{ m = 8, n = 96, k = 256 }]", "groups = []");
    refused(&tiny_round(""), &suite, &["suite.toml:12", "group"]);
}

#[test]
fn a_scale_that_is_not_a_number() {
    let place = Place::new();
    // One problem's operands as a safetensors file, with the third scale of A made NaN (0x7F).
    let (rows, columns, depth) = (2_usize, 4_usize, 32_usize);
    let mut a_scales = vec![0x38_u8; rows * depth / 16];
    a_scales[2] = 0x7F;
    let tensors: Vec<(&str, &str, Vec<usize>, Vec<u8>)> = vec![
        (
            "0.a.values",
            "U8",
            vec![rows, depth / 2],
            vec![0x11; rows * depth / 2],
        ),
        ("0.a.scales", "F8_E4M3", vec![rows, depth / 16], a_scales),
        ("0.a.tensor_scale", "F32", vec![1], 1_f32.to_le_bytes().to_vec()),
        (
            "0.b.values",
            "U8",
            vec![columns, depth / 2],
            vec![0x22; columns * depth / 2],
        ),
        (
            "0.b.scales",
            "F8_E4M3",
            vec![columns, depth / 16],
            vec![0x38; columns * depth / 16],
        ),
        ("0.b.tensor_scale", "F32", vec![1], 1_f32.to_le_bytes().to_vec()),
    ];
    std::fs::write(place.path("operands.safetensors"), safetensors(&tensors)).unwrap();
    place.write(
        "suite.toml",
        "[[benchmark]]\nname = \"real\"\ndata = \"operands.safetensors\"\n\
         grouped-gemm = { groups = [{ m = 2, n = 4, k = 32 }] }\n",
    );
    place.write("round.toml", &tiny_round(""));
    let ran = place.run(&["run", "round.toml"]).expect(2);
    names(
        &ran,
        &["suite.toml:3", "operands.safetensors", "NaN", "row 1", "block 0"],
    );
}

/// The file format: eight bytes of header length, a JSON header, the tensors.
fn safetensors(tensors: &[(&str, &str, Vec<usize>, Vec<u8>)]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut bytes = Vec::new();
    for (name, kind, shape, data) in tensors {
        let start = bytes.len();
        bytes.extend_from_slice(data);
        let entry =
            serde_json::json!({ "dtype": kind, "shape": shape, "data_offsets": [start, bytes.len()] });
        header.insert((*name).to_owned(), entry);
    }
    let header = serde_json::to_vec(&header).unwrap();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.extend(bytes);
    file
}

#[test]
fn a_suite_file_that_does_not_exist() {
    let place = Place::new();
    place.write("round.toml", &tiny_round(""));
    names(
        &place.run(&["run", "round.toml"]).expect(2),
        &["round.toml:6", "suite.toml", "check the path"],
    );
}

#[test]
fn a_round_that_does_not_exist() {
    let place = Place::new();
    names(
        &place.run(&["run", "nowhere.toml"]).expect(2),
        &["nowhere.toml", "check the path"],
    );
}

#[test]
fn a_suite_nobody_knows() {
    let round = tiny_round("").replace("suite.toml", "group-gem");
    refused(
        &round,
        TINY_SUITE,
        &["round.toml:6", "group-gem", "group-gemm, dual-gemm, attention"],
    );
}

#[test]
fn a_device_nobody_knows() {
    let round = tiny_round("").replace("\"host\"", "\"b20\"");
    refused(&round, TINY_SUITE, &["round.toml:5", "b20", "b200"]);
}

#[test]
fn pitches_that_wait_for_one_another() {
    let pitches =
        pitch("one", "stages = 2", "after = \"two\"") + &pitch("two", "stages = 3", "after = \"one\"");
    refused(
        &tiny_round(&pitches),
        TINY_SUITE,
        &["round.toml:19", "`one` comes after itself"],
    );
}

#[test]
fn a_name_under_which_a_fallback_is_kept() {
    let round = tiny_round(&pitch("one (fallback)", "stages = 2", ""));
    refused(
        &round,
        TINY_SUITE,
        &["round.toml:19", "cannot be called `one (fallback)`"],
    );
}

#[test]
fn bounds_that_nothing_exceeds() {
    for (added, phrase) in [
        ("[correctness]\nnrmse = nan", "correctness.nrmse = NaN"),
        ("[correctness]\ninputs = []", "correctness.inputs is empty"),
        ("[budgets]\npanel-bytes = nan", "budgets.panel-bytes = NaN"),
        ("[criteria]\nresamples = 5", "at least 200"),
        ("[criteria]\ntarget = 0.0", "docs/guide/rounds.md"),
    ] {
        refused(
            &tiny_round(&format!("\n{added}\n")),
            TINY_SUITE,
            &[phrase, "round.toml:1"],
        );
    }
    let round = tiny_round("").replace("blocks = 1", "blocks = 9000000000000000000");
    refused(&round, TINY_SUITE, &["round.toml:14", "must lie in 1…1000"]);
}

#[test]
fn looks_that_are_none() {
    for (looks, phrase) in [
        (
            "[5, 3]",
            "each look is at more pairs of processes than the one before",
        ),
        (
            "[3, 3]",
            "each look is at more pairs of processes than the one before",
        ),
        ("[1, 3]", "an interval over processes needs at least two of them"),
        ("[]", "nothing would ever be looked at"),
    ] {
        let round = tiny_round("").replace("looks = [2]", &format!("looks = {looks}"));
        refused(
            &round,
            TINY_SUITE,
            &["round.toml:12", phrase, "such as [4, 6, 9]"],
        );
    }
}

#[test]
fn a_load_of_no_time_or_of_minutes() {
    for heating in ["0s", "2m"] {
        let round = tiny_round("").replace("warm = true", &format!("heating = \"{heating}\""));
        refused(
            &round,
            TINY_SUITE,
            &["round.toml:16", "measurement.heating", "\"500ms\" is usual"],
        );
    }
}

#[test]
fn options_of_other_commands() {
    let place = Place::new();
    for arguments in [
        &["suites", "--ledger", "l.sqlite"][..],
        &["devices", "--keep", "3"],
        &["--ledger", "l.sqlite", "doctor"],
    ] {
        names(&place.run(arguments).expect(2), &["unexpected argument"]);
    }
    for arguments in [
        &["ledger", "list", "--ledger", "l.sqlite"][..],
        &["ledger", "--ledger", "l.sqlite", "list"],
    ] {
        names(
            &place.run(arguments).expect(2),
            &["there is no ledger at l.sqlite"],
        );
    }
}

#[test]
fn a_fault_of_a_pitch_in_its_own_file() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    let whole = pitch("mine", "stages = 2", "").replace("[[pitch]]", "");
    let without = whole.replace(
        "evidence = [{ kind = \"intuition\", text = \"it feels right\" }]",
        "evidence = []",
    );
    place.write("pitches/mine.toml", &without);
    let round = tiny_round("").replace(
        "[baseline.schedule]",
        "pitches = [\"pitches/mine.toml\"]\n[baseline.schedule]",
    );
    place.write("round.toml", &round);
    let ran = place.run(&["run", "round.toml"]).expect(2);
    names(&ran, &["pitches/mine.toml:3", "no evidence"]);
}

#[test]
fn times_without_time() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    place.write("round.toml", &tiny_round(""));
    for budget in ["--budget=0s", "--budget=-5s", "--budget=soon"] {
        names(
            &place.run(&["run", "round.toml", budget]).expect(2),
            &["120s or 5m"],
        );
        let bench = ["bench", "baseline", "stages = 2", "--suite", "suite.toml", budget];
        names(&place.run(&bench).expect(2), &["120s or 5m"]);
    }
    assert!(!place.path("ledger.sqlite").exists());
}

#[test]
fn what_is_neither_a_suite_nor_a_schedule() {
    let place = Place::new();
    names(
        &place.run(&["check", "grup-gemm"]).expect(2),
        &["neither a file nor a suite", "did you mean `group-gemm`?"],
    );
    let absent = place.run(&["check", "nope.toml"]).expect(2);
    names(&absent, &["neither a file nor a suite", "check the path"]);
    assert!(!absent.err.contains("did you mean"), "{}", absent.err);
    let misspelt = tiny_round("").replace("title = ", "titel = ");
    refused(
        &misspelt,
        TINY_SUITE,
        &["round.toml:", "unknown field `titel`", "did you mean `title`?"],
    );
    names(
        &place.run(&["bench", "baseline", "stages"]).expect(2),
        &[
            "`stages` is not a set of parameters: it names no parameter with a value",
            "stages=2",
        ],
    );
}

#[test]
fn a_schedule_that_no_case_allows() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    let ran = place
        .run(&["check", "suite.toml", "--schedule", "cluster = [2, 1]"])
        .expect(2);
    names(&ran, &["allows this schedule", "no blocks share loads"]);
}

/// An error that affects every candidate is not a verdict on one of them.
#[test]
fn an_environment_in_which_no_worker_can_serve() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    place.write("round.toml", &tiny_round(&pitch("two", "stages = 2", "")));
    for arguments in [
        &["run", "round.toml"][..],
        &["bench", "stages = 1", "stages = 2", "--json", "-"],
    ] {
        let mut command = place.command(arguments);
        let ran = Ran::of(command.env("GAUNTLET_SIMD", "mmx").output().unwrap()).expect(2);
        names(&ran, &["unknown path `mmx`", "GAUNTLET_SIMD", "gauntlet doctor"]);
        assert!(!ran.out.contains("compile"), "{}", ran.out);
    }
    // `check` names the paths itself.
    let mut command = place.command(&[
        "check",
        "suite.toml",
        "--simd",
        "portable",
        "--schedule",
        "baseline",
    ]);
    let ran = Ran::of(command.env("GAUNTLET_THREADS", "0").output().unwrap()).expect(2);
    names(&ran, &["at least 1 thread", "GAUNTLET_THREADS"]);
}

/// Making its operands would take more memory than can be addressed by many machines, and end the program.
#[test]
fn a_case_that_no_worker_could_hold_is_refused() {
    let place = Place::new();
    let case = "name = \"big\"\n[[benchmark]]\nname = \"one\"\ngrouped-gemm = { groups = [{ m = 16, n = 4294967296, k = 256 }] }\n";
    place.write("big.toml", case);
    let ran = place
        .run(&["check", "big.toml", "--schedule", "baseline"])
        .expect(2);
    names(&ran, &["the case one need", "make the case smaller"]);
}
