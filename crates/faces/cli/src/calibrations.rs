//! The files of calibrations, and how devices get theirs.

use std::path::{Path, PathBuf};

use gauntlet_device::{Arch, Calibration, Device};
use gauntlet_tournament::Tournament;

use crate::arguments::CalibrationFile;
use crate::error::{CliError, say_line};
use crate::sink;

/// The folder beside the ledger.
const FOLDER: &str = "calibrations";

/// Where to look for calibrations.
pub struct Calibrations {
    folder: PathBuf,
    chosen: Option<PathBuf>,
}

impl Calibrations {
    /// The folder beside the ledger, or a file given by the user.
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

    /// The device with its calibration, if there is one. A file given by the user must fit; one beside the ledger that
    /// does not fit is left out with a message.
    pub fn apply(&self, device: Device) -> Result<Device, CliError> {
        // A calibration given for this machine's rounds says nothing about GPUs.
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
            Err(error) if self.chosen.is_some() => Err(CliError::bad_input(
                error.to_string(),
                "give a file that `gauntlet calibrate` wrote on this machine, or leave --calibration out",
            )),
            Err(error) => {
                say_line(format_args!("note: {error}; predictions are not calibrated"));
                Ok(device)
            }
        }
    }

    /// Applies calibrations to the devices of the rounds.
    pub fn apply_to(&self, tournament: &mut Tournament) -> Result<(), CliError> {
        for round in &mut tournament.rounds {
            round.setting.device = self.apply(round.setting.device.clone())?;
        }
        Ok(())
    }

    /// Refuses a place in which a device's calibration could not be written at the end.
    pub fn check(&self, device: &Device) -> Result<(), CliError> {
        sink::check_with_folders(&self.file(device))
    }

    /// Writes a calibration; returns its path.
    pub fn keep(&self, device: &Device, calibration: &Calibration) -> Result<PathBuf, CliError> {
        let file = self.file(device);
        let text = calibration
            .to_toml()
            .map_err(|error| CliError::broken(error.to_string()))?;
        if let Some(folder) = file.parent() {
            // If this fails, writing the file fails too: that error names the file, and its contents are kept
            // elsewhere.
            let _made = std::fs::create_dir_all(folder);
        }
        sink::write(&file, text.as_bytes())?;
        Ok(file)
    }
}
