//! The CPU at hand, as far as the system describes it.

mod cache;
mod simd;
mod system;

use crate::{Arch, Cpu, Device, Figure, Flops, Memory};

/// Describes the CPU this process runs on. Figures that the system does not report are absent.
pub(crate) fn detect() -> Device {
    let threads = system::threads();
    let simd = simd::features();
    let clock = system::clock();
    let model = system::model();
    let caches = cache::sizes();
    let ceiling = ceiling(threads.get());
    let title = model
        .as_ref()
        .map_or_else(|| "this machine's CPU".to_owned(), |model| model.value.clone());
    Device {
        name: "host".to_owned(),
        title,
        arch: Arch::Cpu,
        processors: threads,
        clock,
        memory: Memory {
            l2_size: caches.l2,
            ..Memory::default()
        },
        gpu: None,
        cpu: Some(Cpu {
            model,
            simd,
            l1_size: caches.l1,
            last_level_size: caches.last_level,
            governor: system::governor(),
            ceiling: Some(ceiling),
        }),
        model_tests: Vec::new(),
    }
}

/// Multiplications and additions a clock of the strongest existing core: AMX on int8, 16 × 16 × 64 products in 16
/// clocks (Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter on AMX).
const MAX_A_CLOCK: f64 = 2048.0;

/// Higher than the turbo clock of any core on the market.
const FASTEST_CLOCK: f64 = 7e9;

fn ceiling(threads: f64) -> Figure<Flops> {
    Figure::new(
        threads * MAX_A_CLOCK * FASTEST_CLOCK,
        format!(
            "bound: {threads} threads × {MAX_A_CLOCK} operations a clock, AMX on int8 being the most of any core, × \
             {:.0} GHz, which no core reaches",
            FASTEST_CLOCK / 1e9
        ),
    )
    .in_unit("TFLOP/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_detected_names_its_source() {
        let host = detect();
        assert!(host.processors.get() >= 1.0 && host.processors.text().ends_with(" thread"));
        assert!(host.processors.source().starts_with("detected: "));
        let cpu = host.cpu.unwrap();
        assert!(cpu.simd.source.starts_with("detected: "));
        for source in [
            host.clock.as_ref().map(|figure| figure.source().to_owned()),
            host.memory
                .l2_size
                .as_ref()
                .map(|figure| figure.source().to_owned()),
            cpu.model.map(|fact| fact.source),
            cpu.l1_size.map(|figure| figure.source().to_owned()),
            cpu.last_level_size.map(|figure| figure.source().to_owned()),
            cpu.governor.map(|fact| fact.source),
        ]
        .into_iter()
        .flatten()
        {
            assert!(source.starts_with("detected: "), "{source}");
        }
        assert!(
            host.memory.bandwidth.is_none(),
            "the system does not tell it, so nothing may be claimed"
        );
    }
}
