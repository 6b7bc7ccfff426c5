//! Where the time goes: the cost of each mechanism, found by simulating without it.

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::ideal::Ideal;
use super::plan::Plan;
use crate::breakdown::{Breakdown, Part, PartTime};
use crate::host::HostTerm;

/// Makes a mechanism ideal.
type Removal = fn(&mut Ideal);

/// The mechanisms in the order of their removal: from the farthest from the product loop to the nearest. A part is the
/// time that its removal saves after the earlier ones are gone.
const ORDER: [(Part, Removal); 8] = [
    (Part::Ramp, |ideal| ideal.ramp = true),
    (Part::Tail, |ideal| ideal.tail = true),
    (Part::Epilogue, |ideal| ideal.epilogue = true),
    (Part::Barriers, |ideal| ideal.barriers = true),
    (Part::Conversion, |ideal| ideal.conversion = true),
    (Part::Contention, |ideal| ideal.contention = true),
    (Part::FillAndDrain, |ideal| ideal.fill = true),
    (Part::Copy, |ideal| ideal.copy = true),
];

/// The gap from the roofline to the prediction. If a mechanism becomes faster, tiles may be assigned differently and
/// the call may take longer; then the earlier part is 0, and the gain is smaller. No part is negative.
pub(super) fn of(plan: &Plan, roofline: f64, host: HostTerm) -> Breakdown {
    let mut parts = vec![(Part::Host, plan.host(host)), (Part::Launch, plan.launch())];
    let mut ideal = Ideal::default();
    // Each is an independent simulation of the whole call.
    let mut ideals = vec![ideal];
    for (_, think_away) in ORDER {
        think_away(&mut ideal);
        ideals.push(ideal);
    }
    let kernels: Vec<f64> = ideals.into_par_iter().map(|ideal| plan.kernel(ideal)).collect();
    let mut left = kernels[0].max(roofline);
    let mut goes = |part, seconds: f64, parts: &mut Vec<(Part, f64)>| {
        let now = seconds.clamp(roofline, left);
        parts.push((part, left - now));
        left = now;
    };
    for ((part, _), kernel) in ORDER.into_iter().zip(&kernels[1..]) {
        goes(part, *kernel, &mut parts);
    }
    goes(Part::Idle, plan.seconds(plan.balanced(ideal), ideal), &mut parts);
    goes(Part::Padding, roofline, &mut parts);
    Breakdown {
        roofline,
        parts: Part::ALL
            .map(|part| PartTime {
                part,
                seconds: parts
                    .iter()
                    .filter(|(other, _)| *other == part)
                    .map(|(_, seconds)| seconds)
                    .sum(),
            })
            .into(),
    }
}
