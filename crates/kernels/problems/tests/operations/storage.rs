#![expect(clippy::unwrap_used, reason = "tests")]
//! Files of inputs and outputs.

use std::io::Write;
use std::path::PathBuf;

use gauntlet_nvfp4::{BLOCK, Nvfp4Tensor};
use gauntlet_problems::{
    Attention, AttentionFormat, AttentionInputs, Form, GemmShape, GroupInputs, GroupedGemm, HeadTensor,
    Inputs, Operation, Output, OutputFormat, Scaling, Sequence, StorageError,
};
use gauntlet_tensors::TensorFileError;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use safetensors::{Dtype, SafeTensors};
use tempfile::TempDir;

fn gemm(form: Form, k: usize) -> Operation {
    let groups = [[3, 5], [0, 2], [2, 1]].map(|[m, n]| [m, n, k]);
    Operation::GroupedGemm(GroupedGemm::new(form, groups))
}

fn attention(format: AttentionFormat) -> Operation {
    Operation::Attention(Attention {
        output: OutputFormat::F32,
        ..Attention::new(format, [[3, 4], [1, 2]], [4, 2], 5)
    })
}

/// Operands of every code that is a number.
fn drawn(operation: &Operation) -> Inputs {
    let mut generator = ChaCha8Rng::seed_from_u64(3);
    match operation {
        Operation::GroupedGemm(gemm) => {
            let mut tensor = |rows: usize, columns: usize| {
                let packed = (0..rows * columns / 2).map(|_| generator.random()).collect();
                // 0x7F and 0xFF are NaN in e4m3.
                let scales = (0..rows * columns / BLOCK)
                    .map(|_| generator.random_range(0..0x7F_u8) | u8::from(generator.random::<bool>()) << 7)
                    .collect();
                Nvfp4Tensor::new(rows, columns, packed, scales, generator.random_range(-1.0..1.0)).unwrap()
            };
            let groups = gemm.groups.iter().map(|shape| GroupInputs {
                a: tensor(shape.m, shape.k).into(),
                b: tensor(shape.n, shape.k),
                b2: (gemm.form == Form::Swiglu).then(|| tensor(shape.n, shape.k)),
            });
            Inputs::GroupedGemm(groups.collect())
        }
        Operation::Attention(attention) => {
            let mut tensor = |heads: usize, positions: fn(&Sequence) -> usize| {
                let mut values = Vec::new();
                for sequence in &attention.sequences {
                    let count = positions(sequence) * attention.head_size;
                    values.extend((0..heads).map(|_| -> Vec<f32> {
                        (0..count).map(|_| generator.random_range(-8.0..8.0)).collect()
                    }));
                }
                HeadTensor::quantise(attention.format, attention.scaling, attention.head_size, &values)
            };
            Inputs::Attention(AttentionInputs {
                query: tensor(attention.heads, |sequence| sequence.queries),
                key: tensor(attention.kv_heads, |sequence| sequence.keys),
                value: tensor(attention.kv_heads, |sequence| sequence.keys),
            })
        }
    }
}

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("inputs.safetensors");
    (directory, path)
}

#[test]
fn inputs_survive_the_file() {
    let (_directory, path) = place();
    let formats = [
        AttentionFormat::E4m3,
        AttentionFormat::Int8,
        AttentionFormat::F16,
        AttentionFormat::Bf16,
    ];
    let blocks = Operation::Attention(Attention {
        sequences: vec![
            Sequence { queries: 3, keys: 70 },
            Sequence { queries: 65, keys: 2 },
        ],
        heads: 4,
        kv_heads: 2,
        head_size: 5,
        causal: false,
        format: AttentionFormat::E4m3,
        scaling: Scaling::PerBlock,
        output: OutputFormat::F32,
    });
    let problems = [gemm(Form::Plain, 32), gemm(Form::Swiglu, 48)]
        .into_iter()
        .chain(formats.map(attention))
        .chain([blocks]);
    for problem in problems {
        let inputs = drawn(&problem);
        inputs.save(&path).unwrap();
        assert_eq!(Inputs::load(&path, &problem).unwrap(), inputs, "{problem}");
        // In memory as in the file, but for the file's header and the structures that hold the bytes.
        let stored = std::fs::metadata(&path).unwrap().len();
        let difference = stored.abs_diff(inputs.memory_bytes() as u64);
        assert!(difference < 4096, "{problem}: {difference}");
    }
}

#[test]
fn outputs_survive_the_file_whatever_their_bits() {
    let (_directory, path) = place();
    for problem in [gemm(Form::Plain, 32), attention(AttentionFormat::E4m3)] {
        let mut output = Output::poisoned(&problem);
        output.set(1, -0.0);
        output.set(2, 1.5);
        output.save(&path).unwrap();
        assert_eq!(Output::load(&path, &problem).unwrap(), output);
    }
}

#[test]
fn tensors_have_the_documented_names_types_and_shapes() {
    let (_directory, path) = place();
    drawn(&gemm(Form::Swiglu, 32)).save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let described = |name: &str| {
        let tensor = tensors.tensor(name).unwrap();
        (tensor.dtype(), tensor.shape().to_vec())
    };
    assert_eq!(tensors.len(), 27);
    assert_eq!(described("0.a.values"), (Dtype::U8, vec![3, 16]));
    assert_eq!(described("0.b2.scales"), (Dtype::F8_E4M3, vec![5, 2]));
    assert_eq!(described("2.b.tensor_scale"), (Dtype::F32, vec![1]));
}

#[test]
fn a_nan_scale_is_refused_with_its_place() {
    let (_directory, path) = place();
    let problem = gemm(Form::Plain, 32);
    drawn(&problem).save(&path).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let scales = SafeTensors::deserialize(&bytes)
        .unwrap()
        .tensor("0.b.scales")
        .unwrap()
        .data()
        .as_ptr();
    let offset = scales as usize - bytes.as_ptr() as usize;
    bytes[offset + 2 * 4 + 1] = 0x7F;
    std::fs::write(&path, bytes).unwrap();
    let message = Inputs::load(&path, &problem).unwrap_err().to_string();
    assert!(
        message.contains("`0.b`: the scale of row 4, block 1"),
        "{message}"
    );
}

#[test]
fn large_files_are_read_alike_and_the_first_complaint_is_told() {
    let (_directory, path) = place();
    let large = |k| {
        let groups = vec![GemmShape { m: 2, n: 4096, k }; 4];
        Operation::GroupedGemm(GroupedGemm {
            groups,
            form: Form::Plain,
            output: OutputFormat::F16,
            tokens: Default::default(),
        })
    };
    let inputs = drawn(&large(1024));
    inputs.save(&path).unwrap();
    assert!(Inputs::load(&path, &large(1024)).unwrap() == inputs);
    for _ in 0..8 {
        let message = Inputs::load(&path, &large(512)).unwrap_err().to_string();
        assert!(message.contains("tensor `0.a.values`"), "{message}");
    }
}

#[test]
fn files_that_do_not_fit_are_refused_by_name() {
    let (directory, path) = place();
    let missing = Inputs::load(&directory.path().join("none"), &gemm(Form::Plain, 32)).unwrap_err();
    assert!(
        matches!(missing, StorageError::File(TensorFileError::Read { .. })),
        "{missing}"
    );

    drawn(&gemm(Form::Plain, 32)).save(&path).unwrap();
    let shape = Inputs::load(&path, &gemm(Form::Plain, 64))
        .unwrap_err()
        .to_string();
    assert!(
        shape.ends_with("tensor `0.a.values` is U8 [3, 16], but the task takes U8 [3, 32]"),
        "{shape}"
    );
    let dual = Inputs::load(&path, &gemm(Form::Swiglu, 32)).unwrap_err();
    assert!(
        matches!(&dual, StorageError::File(TensorFileError::Missing { tensor, .. }) if tensor == "0.b2.values"),
        "{dual}"
    );

    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let short = Inputs::load(&path, &gemm(Form::Plain, 32)).unwrap_err();
    assert!(
        matches!(short, StorageError::File(TensorFileError::Malformed { .. })),
        "{short}"
    );
}

/// The error for a file with this header, which claims this header length and has `bytes` bytes in all.
fn complaint(header: &str, length: u64, bytes: u64) -> StorageError {
    let (_directory, path) = place();
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&length.to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.set_len(bytes).unwrap();
    Inputs::load(&path, &gemm(Form::Plain, 32)).unwrap_err()
}

#[test]
fn a_header_of_a_bogus_length_is_refused() {
    for (length, bytes) in [(u64::MAX, 100), (100_000_001, 100), (100_000_001, 200_000_000)] {
        let told = complaint("{}", length, bytes).to_string();
        assert!(told.ends_with("header too large"), "{length}: {told}");
    }
    let told = complaint("{}", 100_000_000, 100).to_string();
    assert!(told.ends_with("invalid header length"), "{told}");
}

#[test]
fn tensors_that_end_past_all_addresses_are_refused() {
    // Of the maximum length, and of a number such that their end lies below 2⁶⁴ relative to the first tensor, and above
    // it relative to the file.
    let size = u64::MAX / 8;
    let tensor = |number: u64| {
        let (begin, end) = (number * size, (number + 1) * size);
        format!(r#""{number}.c":{{"dtype":"U8","shape":[{size}],"data_offsets":[{begin},{end}]}}"#)
    };
    let header = format!("{{{}}}", (0..8).map(tensor).collect::<Vec<_>>().join(","));
    let length = header.len() as u64;
    let told = complaint(&header, length, 8 + length).to_string();
    assert!(told.ends_with("file not fully covered"), "{told}");
}

#[test]
fn an_operand_that_is_not_finite_is_refused() {
    let (_directory, path) = place();
    let problem = attention(AttentionFormat::E4m3);
    let Inputs::Attention(mut inputs) = drawn(&problem) else {
        unreachable!("attention was asked for")
    };
    inputs.key.bytes[17] = 0xFF;
    Inputs::Attention(inputs).save(&path).unwrap();
    let message = Inputs::load(&path, &problem).unwrap_err().to_string();
    assert!(
        message.ends_with("key: element 17 is NaN; operands must be finite"),
        "{message}"
    );
}

#[test]
fn an_output_of_another_length_is_refused() {
    assert!(Output::new(&gemm(Form::Plain, 32), vec![0; 3]).is_err());
    assert!(Output::new(&gemm(Form::Plain, 32), vec![0; 2 * (15 + 2)]).is_ok());
}
