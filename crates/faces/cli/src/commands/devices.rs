//! `gauntlet devices`.

use std::path::Path;

use gauntlet_device::{Accuracy, Arch, Device, on_record};
use serde_json::Value;

use crate::arguments::{Devices, JsonFile};
use crate::error::CliError;
use crate::exit::Exit;
use crate::listing;
use crate::sink;

/// Lists devices, or shows one.
pub fn devices(arguments: &Devices) -> Result<Exit, CliError> {
    match &arguments.device {
        Some(name) => show(&find(name)?, &arguments.json)?,
        None => list(&arguments.json)?,
    }
    Ok(Exit::Done)
}

/// A device by name, `host`, or file.
pub fn find(name: &str) -> Result<Device, CliError> {
    let found = if name.ends_with(".toml") {
        Device::load(Path::new(name))
    } else {
        Device::builtin(name)
    };
    found.map_err(|error| {
        let known: Vec<_> = Device::builtin_names().collect();
        CliError::bad_input(
            error.to_string(),
            format!("host, a device file, or one of {}", known.join(", ")),
        )
    })
}

fn list(json: &JsonFile) -> Result<(), CliError> {
    let mut devices = vec![Device::host()];
    for name in Device::builtin_names() {
        devices.push(find(name)?);
    }
    json.check()?;
    json.deliver_list(&devices, || tell_list(&devices))
}

fn tell_list(devices: &[Device]) -> Result<(), CliError> {
    let rows = devices.iter().map(|device| {
        let figure = |text: Option<String>| text.unwrap_or_else(|| "not known".to_owned());
        vec![
            device.name.clone(),
            device.title.clone(),
            device.arch.to_string(),
            device.processors.text(),
            figure(device.clock.as_ref().map(|clock| clock.text())),
            figure(device.memory.bandwidth.as_ref().map(|bandwidth| bandwidth.text())),
        ]
    });
    let head = ["device", "title", "architecture", "processors", "clock", "memory"];
    listing::print(&head, rows)?;
    sink::print("`gauntlet devices NAME` shows every figure with its source.")?;
    Ok(())
}

fn show(device: &Device, json: &JsonFile) -> Result<(), CliError> {
    json.check()?;
    json.deliver(device, || tell(device))
}

fn tell(device: &Device) -> Result<(), CliError> {
    sink::line(format_args!(
        "{} — {}, {}",
        device.name, device.title, device.arch
    ))?;
    let value = serde_json::to_value(device).map_err(|error| CliError::broken(error.to_string()))?;
    let mut rows = Vec::new();
    figures("", &value, &mut rows);
    listing::print(&["figure", "value", "source"], rows)?;
    for test in &device.model_tests {
        let record = on_record(Some(&Accuracy::from(test)));
        sink::line(format_args!("{}: {record}. Source: {}", test.family, test.source))?;
    }
    if device.arch != Arch::Cpu && device.model_tests.is_empty() {
        sink::line(format_args!("Predictions: {}.", on_record(None)))?;
    }
    Ok(())
}

/// Every table with a value and a source is a figure, at any depth.
fn figures(name: &str, value: &Value, rows: &mut Vec<Vec<String>>) {
    let Value::Object(entries) = value else { return };
    match (
        entries.get("value"),
        entries.get("source").and_then(Value::as_str),
    ) {
        (Some(figure), Some(source)) => {
            let unit = entries.get("unit").and_then(Value::as_str).unwrap_or_default();
            rows.push(vec![
                name.to_owned(),
                format!("{} {unit}", plain(figure)),
                source.to_owned(),
            ]);
            for measured in entries
                .get("measured")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let source = measured.get("source").and_then(Value::as_str).unwrap_or_default();
                let figure = measured.get("value").map(plain).unwrap_or_default();
                rows.push(vec![
                    "  measured".to_owned(),
                    format!("{figure} {unit}"),
                    source.to_owned(),
                ]);
            }
            if let Some(doubt) = entries.get("doubt").and_then(Value::as_str) {
                rows.push(vec!["  doubt".to_owned(), String::new(), doubt.to_owned()]);
            }
        }
        _ => {
            for (key, value) in entries {
                let name = if name.is_empty() {
                    key.clone()
                } else {
                    format!("{name}.{key}")
                };
                figures(&name, value, rows);
            }
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}
