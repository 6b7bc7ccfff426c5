//! Where calibrations are kept, and how devices come by theirs.

use std::path::{Path, PathBuf};

use gauntlet_device::{Arch, Calibration, Device};
use gauntlet_tournament::Tournament;

use crate::arguments::CalibrationFile;
use crate::sink;
use crate::trouble::{Trouble, say};

/// The folder beside the ledger.
const FOLDER: &str = "calibrations";

/// Where to look for calibrations.
pub struct Calibrations {
    folder: PathBuf,
    chosen: Option<PathBuf>,
}

impl Calibrations {
    /// Those beside the ledger, or one that was chosen.
    pub fn of(file: &CalibrationFile) -> Self {
        let ledger = &file.ledger.path;
        Self {
            folder: ledger.parent().unwrap_or(Path::new("")).join(FOLDER),
            chosen: file.chosen.clone(),
        }
    }

    /// The file of a device.
    pub fn file(&self, device: &Device) -> PathBuf {
        self.chosen
            .clone()
            .unwrap_or_else(|| self.folder.join(format!("{}.toml", device.name)))
    }

    /// The device with its calibration, if there is one. One that was chosen must fit; one that lies beside the ledger
    /// and does not is left out, with a word about it.
    pub fn apply(&self, device: Device) -> Result<Device, Trouble> {
        // A calibration that was chosen for this machine's rounds says nothing about the GPUs of others.
        if device.arch != Arch::Cpu {
            return Ok(device);
        }
        let file = self.file(&device);
        if self.chosen.is_none() && !file.exists() {
            return Ok(device);
        }
        let calibrated = Calibration::load(&file).and_then(|found| device.clone().calibrated(&found));
        match calibrated {
            Ok(device) => Ok(device),
            Err(error) if self.chosen.is_some() => Err(Trouble::bad_input(
                error.to_string(),
                "give a file that `gauntlet calibrate` wrote on this machine, or leave --calibration out",
            )),
            Err(error) => {
                say(&format!("note: {error}; predictions are not calibrated\n"));
                Ok(device)
            }
        }
    }

    /// The rounds' devices with theirs.
    pub fn apply_to(&self, tournament: &mut Tournament) -> Result<(), Trouble> {
        for round in &mut tournament.rounds {
            round.setting.device = self.apply(round.setting.device.clone())?;
        }
        Ok(())
    }

    /// Refuses a place in which a device's calibration could not be kept in the end.
    pub fn check(&self, device: &Device) -> Result<(), Trouble> {
        sink::check_with_folders(&self.file(device))
    }

    /// Keeps a calibration; returns where.
    pub fn keep(&self, device: &Device, calibration: &Calibration) -> Result<PathBuf, Trouble> {
        let file = self.file(device);
        let text = calibration
            .to_toml()
            .map_err(|error| Trouble::broken(error.to_string()))?;
        if let Some(folder) = file.parent() {
            // What stands in the way is told of the file, whose contents are kept elsewhere then.
            let _made = std::fs::create_dir_all(folder);
        }
        sink::write(&file, text.as_bytes())?;
        Ok(file)
    }
}
