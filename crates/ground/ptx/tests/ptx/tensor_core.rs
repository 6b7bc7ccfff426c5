//! Products on the tensor cores of sm_100a against the products in f64, and mistakes that have to be seen.

#![expect(clippy::unwrap_used, reason = "tests")]

mod kernel;
mod mistakes;
mod operands;
mod threads;
mod transfers;

use gauntlet_ptx::{Fault, Kernel, Launch, Memory, TensorMap, run};

use kernel::{Case, Filled, Swizzle};
use operands::Operands;

/// Runs a kernel of this text on the operands of a case.
fn results(text: &str, case: Case, operands: &Operands, seed: u64) -> Result<Vec<f32>, Fault> {
    let kernel = Kernel::read(text, "one").unwrap();
    let mut memory = Memory::new();
    let images: Vec<_> = (0..case.blocks())
        .map(|block| {
            let image = operands.image(block);
            let rows = image.len() as u64 / 256;
            (memory.allocate(image), rows)
        })
        .collect();
    let first = match case.pair {
        false => images[0].0,
        true => {
            let map = |(address, rows): &(u64, u64)| TensorMap {
                address: *address,
                element_bytes: 1,
                sizes: vec![256, *rows],
                strides: vec![256],
                boxes: vec![256, (case.stage_bytes() / 256) as u32],
                swizzle: gauntlet_ptx::Swizzle::None,
            };
            memory.allocate(images.iter().flat_map(|image| map(image).encode()).collect())
        }
    };
    let output = memory.allocate_unwritten(4 * 128 * case.blocks() * case.columns);
    let parameter = [first.to_le_bytes(), output.to_le_bytes()].concat();
    let launch = Launch {
        cluster: case.blocks() as u32,
        shared_bytes: case.shared_bytes() as u32,
        parameter: &parameter,
        ..Launch::of(&kernel, [case.blocks() as u32, 1, 1], [128, 1, 1])
    };
    run(&[launch], &mut memory, seed)?;
    let words = memory.contents(output).unwrap().chunks_exact(4);
    Ok(words
        .map(|word| f32::from_le_bytes(word.try_into().unwrap()))
        .collect())
}

/// The fault or the first wrong result of a kernel of this text, if any.
fn wrong(text: &str, case: Case, seed: u64) -> Option<String> {
    let operands = Operands::random(case, seed);
    match results(text, case, &operands, seed) {
        Ok(found) => operands.wrong(&found),
        Err(fault) => Some(fault.to_string()),
    }
}

const CASE: Case = Case {
    columns: 64,
    depth: 512,
    chunk: 128,
    swizzle: Swizzle::Bytes64,
    pair: false,
    filled: Filled::ByCopyEngine,
};

#[test]
fn products_of_one_block_are_those_in_f64() {
    let swizzles = [
        Swizzle::None,
        Swizzle::Bytes32,
        Swizzle::Bytes64,
        Swizzle::Bytes128,
    ];
    for (index, swizzle) in swizzles.into_iter().enumerate() {
        for (columns, depth, chunk) in [(8, 64, 64), (64, 128, 64), (128, 512, 256), (256, 256, 128)] {
            let chunk = chunk.max(2 * swizzle.width().min(depth / 2));
            let case = Case {
                columns,
                depth,
                chunk,
                swizzle,
                ..CASE
            };
            if chunk <= depth && chunk / 2 % swizzle.width() == 0 {
                assert_eq!(wrong(&case.text(), case, index as u64), None, "{case:?}");
            }
        }
    }
    // A width that no power of two divides, with scales in the second block of columns.
    let case = Case { columns: 168, ..CASE };
    assert_eq!(wrong(&case.text(), case, 7), None);
}

#[test]
fn products_of_a_pair_are_those_in_f64() {
    for (columns, swizzle) in [
        (16, Swizzle::Bytes64),
        (64, Swizzle::None),
        (128, Swizzle::Bytes64),
        (256, Swizzle::Bytes32),
    ] {
        let case = Case {
            columns,
            swizzle,
            pair: true,
            ..CASE
        };
        assert_eq!(wrong(&case.text(), case, columns as u64), None, "{case:?}");
    }
}

#[test]
fn the_order_of_events_does_not_matter() {
    let case = Case { columns: 8, ..CASE };
    for seed in 0..20 {
        assert_eq!(wrong(&case.text(), case, seed), None, "seed {seed}");
        let pair = Case {
            columns: 16,
            depth: 256,
            chunk: 128,
            pair: true,
            ..CASE
        };
        assert_eq!(wrong(&pair.text(), pair, seed), None, "pair, seed {seed}");
    }
}

#[test]
fn a_scale_that_is_no_number_makes_its_rows_and_columns_none() {
    // e4m3's NaN, and a code with a sign, which ue4m3 does not have.
    for code in [0x7F, 0xB8] {
        let mut operands = Operands::random(CASE, 1);
        operands.left.set_scale(5, 3, code);
        operands.right.set_scale(9, 30, code);
        let found = results(&CASE.text(), CASE, &operands, 1).unwrap();
        for (index, result) in found.into_iter().enumerate() {
            let is_of_it = index / CASE.columns == 5 || index % CASE.columns == 9;
            assert_eq!(result.is_nan(), is_of_it, "{index}: {result}");
        }
    }
}

/// `.block16` is another name of `.scale_vec::4X`; both operands negated give the same product, and one the opposite.
#[test]
fn products_are_negated_as_the_descriptor_says() {
    let operands = Operands::random(CASE, 2);
    let description = 1 << 7 | 1 << 10 | CASE.columns >> 3 << 17 | 1 << 27;
    let found = |bits: usize| {
        let text = CASE
            .text()
            .replace("scale_vec::4X", "block16.collector::a::discard");
        let negated = format!("mov.u32 %r16, {};", description | bits);
        let text = text.replace(&format!("mov.u32 %r16, {description};"), &negated);
        results(&text, CASE, &operands, 2).unwrap()
    };
    let plain = found(0);
    assert_eq!(operands.wrong(&plain), None);
    assert_eq!(found(3 << 13), plain);
    for bits in [1 << 13, 1 << 14] {
        let opposite: Vec<f32> = found(bits).into_iter().map(|result| -result).collect();
        assert_eq!(opposite, plain);
    }
}
