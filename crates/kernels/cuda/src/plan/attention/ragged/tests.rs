use super::*;
use crate::plan::attention::abi::Parameter;
use crate::plan::fixture::ADDRESSES;

const PLACES: RaggedPlaces = RaggedPlaces {
    query_begins: 1 << 20,
    keys: KeyPlaces::Ragged {
        begins: 1 << 21,
        counts: 0,
    },
    query: Strides::NONE,
    key: Strides::NONE,
    value: Strides::NONE,
};

fn shape(batch: usize, most_queries: usize, most_keys: usize) -> RaggedShape {
    RaggedShape {
        batch,
        heads: 32,
        kv_heads: 8,
        head_size: 128,
        most_queries,
        most_keys,
        causal: true,
        format: AttentionFormat::Bf16,
        scaling: Scaling::PerHead,
        output: OutputFormat::Bf16,
    }
}

/// The blocks of each launch, and the rows that it takes.
fn planned(shape: &RaggedShape) -> Vec<(u32, [u32; 2])> {
    let plan = RaggedPlan::new(shape, Target::hopper(132)).unwrap();
    let call = plan.call(PLACES);
    let launches = call.launches(&ADDRESSES);
    let about = |launch: &Launch| {
        let tail: Tail =
            bytemuck::pod_read_unaligned(&launch.parameter[launch.parameter.len() - size_of::<Tail>()..]);
        (launch.grid, [tail.rows_above, tail.rows_to])
    };
    launches.iter().map(about).collect()
}

#[test]
fn few_queries_have_the_blocks_that_run_at_once_whatever_the_batch() {
    for batch in [4, 8, 32, 500] {
        let found = planned(&shape(batch, 4, 32768));
        assert_eq!(found, [(2 * 132, [0, u32::MAX])], "{batch}");
    }
    // The last of a tile's parts merges them all, and a part has two steps at least.
    assert_eq!(planned(&shape(1, 1, 1 << 17))[0].0, 8 * MAX_PARTS[0] as u32);
    assert_eq!(planned(&shape(2, 1, 64 * 6))[0].0, 2 * 8 * 3);
    assert!(planned(&shape(0, 1, 64)).is_empty());
}

#[test]
fn sequences_of_few_queries_and_of_many_have_a_launch_each() {
    let found = planned(&shape(17, 512, 8192));
    // 16 tiles of each sequence and head of keys.
    let blocks = [2 * 132, 17 * 8 * 16];
    let few = FEW_QUERIES as u32;
    assert_eq!(found, [(blocks[0], [0, few]), (blocks[1], [few, u32::MAX])]);
    // One sequence is not both, and with too few tiles for the multiprocessors keys are split.
    assert_eq!(planned(&shape(1, 512, 8192)), [(8 * 16, [0, u32::MAX])]);
    assert_eq!(planned(&shape(1, 64, 8192)), [(16 * 8, [0, u32::MAX])]);
}

#[test]
fn launches_have_scratch_memory_of_their_own() {
    let shape = RaggedShape {
        format: AttentionFormat::E4m3,
        ..shape(2, 64, 8192)
    };
    let plan = RaggedPlan::new(&shape, Target::hopper(132)).unwrap();
    let rest = plan.rest.as_ref().unwrap();
    assert!(plan.main.workspace_bytes > 0 && rest.workspace_bytes > 0 && rest.counter_bytes > 0);
    let memory = plan.call(PLACES).memory(&[]);
    assert_eq!(
        memory.workspace_bytes,
        plan.main.workspace_bytes + rest.workspace_bytes
    );
    assert_eq!(memory.counter_bytes, plan.main.counter_bytes + rest.counter_bytes);
    let of = |launch: &Launch| {
        let parameter: Parameter = bytemuck::pod_read_unaligned(&launch.parameter[..size_of::<Parameter>()]);
        (parameter.workspace, parameter.counters)
    };
    let launches = plan.call(PLACES).launches(&ADDRESSES);
    let (first, second) = (of(&launches[0]), of(&launches[1]));
    assert_eq!(second.0 - first.0, plan.main.workspace_bytes as u64);
    assert_eq!(second.1 - first.1, plan.main.counter_bytes as u64);
}
