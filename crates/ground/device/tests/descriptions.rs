//! Descriptions: the embedded ones, and the messages about faulty ones.

use std::path::Path;

use gauntlet_device::{Arch, Device, DeviceError};

const L4: &str = include_str!("../devices/l4.toml");

#[test]
fn every_embedded_description_reads_and_bears_its_own_name() {
    for name in Device::builtin_names() {
        let device = Device::builtin(name).unwrap();
        assert_eq!(device.name, name);
        assert!(device.gpu.is_some(), "{name}");
    }
    assert_eq!(Device::builtin_names().count(), 5);
}

#[test]
fn peaks_agree_with_the_makers_data_sheets() {
    // Dense fp16 TFLOP/s printed in the data sheets: L4 121, A100 312, H100 and H200 989 (at 1830 MHz: 132 × 4096
    // × 1.83 GHz; at the boost clock here 1070), B200 2250 to 2500.
    for (name, low, high) in [
        ("l4", 120.0, 122.0),
        ("a100", 311.0, 313.0),
        ("h200", 989.0, 1080.0),
        ("b200", 2250.0, 2500.0),
    ] {
        let device = Device::builtin(name).unwrap();
        let rate = device.gpu.as_ref().unwrap().fp16_rate.get();
        let peak = device.processors.get() * rate * device.clock.as_ref().unwrap().get() / 1e12;
        assert!((low..=high).contains(&peak), "{name}: {peak} TFLOP/s");
    }
}

#[test]
fn units_become_those_of_the_dimension() {
    let device = Device::builtin("b200").unwrap();
    assert_eq!(device.memory.l2_rate.as_ref().unwrap().get(), 68.8);
    assert_eq!(device.memory.bandwidth.as_ref().unwrap().get(), 7672e9);
    assert_eq!(device.memory.bandwidth.as_ref().unwrap().attainable(), 7260e9);
    assert_eq!(device.gpu.unwrap().shared_memory_block.get(), 232_448.0);
}

#[test]
fn doubts_are_kept() {
    let device = Device::builtin("b200").unwrap();
    assert_eq!(device.processors.get(), 148.0);
    assert_eq!(device.processors.range(), Some((144.0, 148.0)));
    assert_eq!(device.processors.doubt(), Some("some papers say 144"));
}

#[test]
fn a_description_survives_writing_and_reading() {
    let devices = Device::builtin_names()
        .map(|name| Device::builtin(name).unwrap())
        .chain([Device::host()]);
    for device in devices {
        let text = toml::to_string(&device).unwrap();
        assert_eq!(Device::from_toml(&text, Path::new("again.toml")).unwrap(), device);
    }
}

#[test]
fn a_user_file_is_read_from_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    std::fs::write(&file, L4.replace("\"l4\"", "\"mine\"")).unwrap();
    let device = Device::load(&file).unwrap();
    assert_eq!((device.name.as_str(), device.arch), ("mine", Arch::Sm89));
    assert!(matches!(
        Device::load(&folder.path().join("none.toml")),
        Err(DeviceError::Read { .. })
    ));
}

#[test]
fn messages_name_the_fault_and_what_would_be_right() {
    let messages = [
        ("wrong unit", L4.replace("\"GB/s\"", "\"Gbps\"")),
        ("unknown figure", L4.replace("[gpu.warps]", "[gpu.wraps]")),
        ("unknown arch", L4.replace("sm_89", "sm_98")),
        (
            "no source",
            L4.replace("source = \"NVIDIA L4 data sheet\"", "source = \" \""),
        ),
        ("negative", L4.replace("value = 300", "value = -300")),
        (
            "missing figure",
            L4.replace("[processors]", "[clock-of-something]"),
        ),
        ("not TOML", "name = ".to_owned()),
        ("no gpu table", L4[..L4.find("[gpu.").unwrap()].to_owned()),
    ]
    .map(|(what, text)| {
        let error = Device::from_toml(&text, Path::new("mine.toml")).unwrap_err();
        let DeviceError::Invalid { span, .. } = &error else {
            panic!("{error}")
        };
        let at = span
            .clone()
            .map_or("nowhere", |span| text[span].lines().next().unwrap_or_default());
        format!("{what}: {error}\n    at: {at}")
    });
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let messages = ["b20", "H200", "mi300x"].map(|name| Device::builtin(name).unwrap_err().to_string());
    insta::assert_snapshot!(messages.join("\n"));
}
