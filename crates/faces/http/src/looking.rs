//! What can be judged, on what, and how busy the server is.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use gauntlet_device::Device;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::refusal::Refusal;
use crate::service::Service;

/// A task that is built in.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct BuiltIn {
    /// Its name.
    pub name: String,
    /// What it computes.
    pub description: String,
}

/// Lists the tasks that are built in; others are sent with a judgement.
pub async fn tasks(State(service): State<Arc<Service>>) -> Result<Json<Vec<BuiltIn>>, Refusal> {
    let tasks = service.aside(|_| {
        let described = gauntlet_families::suite_names().into_iter().map(|name| {
            let suite = gauntlet_families::suite(name).map_err(|error| Refusal::broken(&error))?;
            Ok(BuiltIn {
                name: name.to_owned(),
                description: suite.description,
            })
        });
        described.collect()
    });
    tasks.await.map(Json)
}

/// Lists the devices that are described, that of the server first.
pub async fn devices(State(service): State<Arc<Service>>) -> Result<Json<Vec<Device>>, Refusal> {
    let devices = service.aside(|_| {
        let built_in = Device::builtin_names().map(Device::builtin);
        std::iter::once(Ok(Device::host()))
            .chain(built_in)
            .collect::<Result<_, _>>()
            .map_err(|error| Refusal::broken(&error))
    });
    devices.await.map(Json)
}

/// How busy the server is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct QueueShown {
    /// How many tickets there are in each state.
    pub tickets: BTreeMap<String, usize>,
    /// Whether the server runs tickets on its own machine, one at a time; else a cluster does, or `gauntlet queue work`.
    pub works: bool,
    /// Why the machine is given no ticket for a while.
    pub resting: Option<Resting>,
}

/// A machine on which attempts died one after another.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Resting {
    /// How many died in a row.
    pub deaths: u32,
    /// Why the last one did.
    pub reason: String,
    /// When it is given a ticket again.
    pub until: Timestamp,
}

/// Says how busy the server is.
pub async fn queue(State(service): State<Arc<Service>>) -> Result<Json<QueueShown>, Refusal> {
    let shown = service.aside(|service| {
        let resting = service.rest()?;
        Ok(QueueShown {
            tickets: service.queue.counts()?,
            works: service.works_here,
            resting: resting.map(|rest| Resting {
                deaths: rest.deaths,
                reason: rest.reason,
                until: rest.until,
            }),
        })
    });
    shown.await.map(Json)
}
