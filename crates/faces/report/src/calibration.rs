//! Local measurements, as a table.

use gauntlet_device::Calibration;

use crate::table::{columns, table};
use crate::text::{bold, paragraph, usable};

/// The parameters with their spread, and the known accuracy of the model that uses them.
pub fn calibration(calibration: &Calibration, width: usize) -> String {
    let width = usable(width);
    let machine = &calibration.machine;
    let details: Vec<_> = machine.details.values().map(String::as_str).collect();
    let introduction = format!(
        "{}, {} threads, {}, measured {} by {}",
        machine.processor,
        machine.threads,
        details.join(", "),
        calibration.date.strftime("%Y-%m-%d %H:%M UTC"),
        machine.version,
    );
    let head = format!("{} — ", bold(&calibration.device));
    let mut text = paragraph(&head, &introduction, 2, width);
    let header = columns!(Whole "cost of"; Figures "median", "least", "most"; Words "unit");
    let rows = calibration.parameters.iter().map(|(name, parameter)| {
        let figure = |value: f64| format!("{value:.3}");
        vec![
            name.clone(),
            figure(parameter.value),
            figure(parameter.low),
            figure(parameter.high),
            parameter.unit.clone(),
        ]
    });
    text += &table(&header, rows.collect(), 2, width);
    text
}
