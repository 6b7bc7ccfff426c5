use std::collections::BTreeSet;

use gauntlet_problems::Tile as TileShape;
use gauntlet_problems::{Operation, Scaling};

use super::*;
use crate::plan::fixture::{ADDRESSES, collect};

/// Unequal sequences with shared key heads.
fn ragged(format: AttentionFormat) -> Attention {
    let lengths = [[130, 300], [1, 7], [64, 65]];
    let attention = Attention {
        causal: true,
        ..Attention::new(format, lengths, [4, 2], 128)
    };
    Operation::Attention(attention.clone()).validate().unwrap();
    attention
}

fn work(attention: &Attention, order: Order) -> Work {
    let schedule = Schedule {
        tile: TileShape::from([64, 64, 128]),
        order,
        ..Schedule::baseline()
    };
    Work::new(attention, &schedule, 64, HeadSets::alone(attention), Parts::ONE).unwrap()
}

#[test]
fn maps_begin_at_their_sequences_rows_and_end_at_their_last() {
    for (format, bytes, inner) in [(AttentionFormat::F16, 2, 64), (AttentionFormat::E4m3, 1, 128)] {
        let attention = ragged(format);
        let maps = work(&attention, Order::PerTile).maps([64, 32, 32]);
        let rows = [attention.first_query_rows(), attention.first_key_rows()];
        assert_eq!(maps.len(), 9);
        for (place, of) in maps.chunks_exact(3).enumerate() {
            let lengths = attention.sequences[place];
            for (map, (first, positions, heads, box_rows)) in of.iter().zip([
                (rows[0][place], lengths.queries, 4, 64),
                (rows[1][place], lengths.keys, 2, 32),
                (rows[1][place], lengths.keys, 2, 32),
            ]) {
                assert_eq!(map.group, place);
                assert_eq!(
                    map.offset,
                    (first * 128 * bytes) as u64,
                    "{:?} {place}",
                    map.matrix
                );
                assert_eq!(map.sizes, [128, positions as u64, heads]);
                assert_eq!(map.boxes, [inner, box_rows, 1]);
            }
        }
    }
}

#[test]
fn tiles_have_every_query_once_in_every_order() {
    let attention = ragged(AttentionFormat::F16);
    for order in [Order::PerTile, Order::Static, Order::Sorted] {
        let mut found = BTreeSet::new();
        for tile in &work(&attention, order).tiles {
            assert!((1..=64).contains(&tile.queries), "{tile:?}");
            for query in tile.query..tile.query + tile.queries {
                assert!(
                    found.insert((tile.sequence, tile.head, query)),
                    "{order} {tile:?}"
                );
            }
        }
        assert_eq!(found.len(), attention.query_rows(), "{order}");
    }
}

#[test]
fn sorted_tiles_see_ever_fewer_keys() {
    let attention = ragged(AttentionFormat::F16);
    let seen = |tile: &Tile| {
        let lengths = attention.sequences[tile.sequence as usize];
        attention.visible_keys(lengths, (tile.query as usize + 64).min(lengths.queries) - 1)
    };
    let tiles = work(&attention, Order::Sorted).tiles;
    assert!(tiles.windows(2).all(|pair| seen(&pair[0]) >= seen(&pair[1])));
    assert_eq!((seen(&tiles[0]), seen(&tiles[tiles.len() - 1])), (300, 7));
}

#[test]
fn scales_of_blocks_begin_where_their_table_says_behind_the_tiles() {
    let by_block = Attention {
        scaling: Scaling::PerBlock,
        ..ragged(AttentionFormat::Int8)
    };
    let work = work(&by_block, Order::PerTile);
    let behind = 3 * size_of::<Sequence>() + work.tiles.len() * size_of::<Tile>();
    let starts: Vec<FirstScales> = collect(&work.memory().tables[behind..]);
    // Of 4 heads of queries 3, 1 and 1 block each; of 2 key heads 5, 1 and 2.
    let expected = [(0, 0), (12, 10), (16, 12)].map(|(query, key)| FirstScales { query, key });
    assert_eq!(starts, expected);
    let launch = &work.launch(&ADDRESSES, 1, 1)[0];
    let parameter: abi::Parameter = bytemuck::pod_read_unaligned(&launch.parameter);
    assert_eq!(parameter.first_scales, ADDRESSES.tables + behind as u64);
    let schedule = Schedule::baseline();
    assert_eq!(work.defines(&schedule)["SCALING"], "1");
}

#[test]
fn operands_whose_blocks_share_a_scale_or_have_none_have_no_table_of_them() {
    for (format, scaling) in [
        (AttentionFormat::E4m3, Scaling::PerHead),
        (AttentionFormat::Int8, Scaling::PerTensor),
        (AttentionFormat::F16, Scaling::PerBlock),
    ] {
        let attention = Attention {
            scaling,
            ..ragged(format)
        };
        let work = work(&attention, Order::PerTile);
        assert!(work.first_scales.is_empty(), "{format}");
        assert_eq!(work.defines(&Schedule::baseline())["SCALING"], "0");
    }
}

#[test]
fn kernels_of_the_specialised_plan_are_told_where_a_sequence_has_few_queries() {
    let few = |lengths: &[[usize; 2]]| {
        let attention = Attention {
            sequences: lengths
                .iter()
                .map(|&[queries, keys]| Lengths { queries, keys })
                .collect(),
            ..ragged(AttentionFormat::F16)
        };
        let schedule = Schedule {
            tile: TileShape::from([128, 128, 128]),
            stages: 2,
            ..Schedule::baseline()
        };
        let plan = SpecialisedPlan::new(&attention, &schedule, 132).unwrap();
        plan.variant().defines["FEW"].clone()
    };
    // Two heads share a key head, and are packed, so their rows count together.
    assert_eq!(few(&[[32, 3], [100, 300]]), "0");
    assert_eq!(few(&[[32, 3], [31, 300]]), "1");
}
