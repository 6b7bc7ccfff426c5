//! What stands in for AMX on processors of other architectures: a unit that is never found.

use super::SoftmaxLanes;

/// As on x86-64.
pub(crate) const SIDE: usize = 32;
/// As on x86-64.
pub(crate) const CHUNK: usize = SIDE * SIDE / 2;

/// Of which there is none.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tiles {}

impl Tiles {
    pub(super) unsafe fn found() -> Self {
        unreachable!("the path is refused where tiles are missing")
    }

    pub fn configure(&self) -> Self {
        match *self {}
    }

    pub fn pack_rows(&self, _: &[f32], _: usize, _: &mut [u32]) {
        match *self {}
    }

    pub fn pack_columns(&self, _: &[f32], _: usize, _: &mut [u32]) {
        match *self {}
    }

    pub fn pack_depths(&self, _: &[f32], _: usize, _: usize, _: usize, _: &mut [u32]) {
        match *self {}
    }

    pub fn softmax(&self, _: &[f32], _: f32, _: &mut SoftmaxLanes, _: usize, _: &mut [u32]) {
        match *self {}
    }

    pub fn multiply(&self, _: usize, _: usize, _: &[u32], _: &[u32], _: &mut [f32], _: bool) {
        match *self {}
    }
}
