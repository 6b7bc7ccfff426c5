//! Prints what a problem becomes under a schedule that swaps the operands, as JSON, for harnesses in other languages:
//!
//! `cargo run -p gauntlet-kernels-cuda --example tiles -- problem.json schedule.toml [multiprocessors]`
//!
//! The problem is a path, or the JSON itself, as in `{"family": "grouped-gemm", "groups": [{"m": 16, "n": 4096, "k":
//! 7168}]}`; the schedule is a path, or the TOML itself.

use std::error::Error;
use std::path::Path;

use gauntlet_kernels_cuda::plan::swapped::SwappedPlan;
use gauntlet_kernels_cuda::plan::{Group, Plan, Target};
use gauntlet_problems::{Operation, Schedule};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [problem, schedule, rest @ ..] = arguments.as_slice() else {
        return Err("give a problem (JSON), a schedule (TOML), and how many multiprocessors (132)".into());
    };
    let problem: Operation = serde_json::from_str(&text(problem)?)?;
    let schedule: Schedule = toml::from_str(&text(schedule)?)?;
    let processors = rest.first().map_or(Ok(132), |number| number.parse())?;
    problem.validate()?;
    let Operation::GroupedGemm(gemm) = &problem else {
        return Err("attention has no tiles here".into());
    };

    let began = std::time::Instant::now();
    let plan = SwappedPlan::new(gemm, &schedule, Target::hopper(processors))?;
    let milliseconds = began.elapsed().as_secs_f64() * 1e3;
    let memory = plan.memory(&vec![Default::default(); gemm.groups.len()]);
    let groups: &[Group] = bytemuck::cast_slice(&memory.tables[..gemm.groups.len() * size_of::<Group>()]);
    let balance = plan.balance();
    let variant = plan.variant();
    let value = json!({
        "defines": variant.defines,
        "threads": variant.threads,
        "registers": variant.registers,
        "shared_bytes": variant.shared_bytes,
        "workers": plan.workers(),
        "tile_fields": ["group", "row", "token", "width", "first_chunk", "chunks", "slot", "parts"],
        "tiles": plan.tiles().iter().map(|&tile| bytemuck::cast::<_, [u32; 8]>(tile)).collect::<Vec<_>>(),
        "offsets": plan.offsets(),
        "item_offsets": plan.item_offsets(),
        "slots": plan.slots(),
        "groups": groups
            .iter()
            .map(|group| {
                json!({
                    "m": group.m, "n": group.n, "k": group.k, "tokens": group.tokens, "workspace": group.workspace,
                    "token_scales": group.token_scales, "output": group.output,
                })
            })
            .collect::<Vec<_>>(),
        "maps": memory
            .maps
            .iter()
            .map(|map| {
                json!({
                    "matrix": format!("{:?}", map.matrix), "group": map.group, "sizes": map.sizes,
                    "boxes": map.boxes,
                })
            })
            .collect::<Vec<_>>(),
        "workspace_bytes": memory.workspace_bytes,
        "partials": plan.partials(),
        "counter_bytes": memory.counter_bytes,
        "balance": {
            "makespan_us": balance.makespan / 1e3,
            "busy_us": balance.busy / balance.workers as f64 / 1e3,
            "even_us": balance.work / balance.workers as f64 / 1e3,
            "tiles": balance.tiles,
            "parts": balance.parts,
            "planned_in_ms": milliseconds,
        },
    });
    println!("{value}");
    Ok(())
}

/// The contents of a file, or the argument itself if it is not a file.
fn text(argument: &str) -> std::io::Result<String> {
    let path = Path::new(argument);
    if path.is_file() {
        std::fs::read_to_string(path)
    } else {
        Ok(argument.to_owned())
    }
}
