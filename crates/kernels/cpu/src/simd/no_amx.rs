//! Replaces AMX on other architectures: a unit that is never detected.

use std::convert::Infallible;
use std::marker::PhantomData;

use gauntlet_problems::AttentionFormat;

use super::{LANES, SoftmaxLanes};

/// The same as on x86-64.
pub(crate) const SIDE: usize = 32;
/// The same as on x86-64.
pub(crate) const CHUNK: usize = SIDE * SIDE / 2;

/// Uninhabited.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tiles(Infallible);

impl Tiles {
    pub(super) unsafe fn found() -> Self {
        unreachable!("the path is refused where tiles are missing")
    }

    pub fn configure(&self) -> Configured {
        match self.0 {}
    }

    pub fn widen(&self, _: AttentionFormat, _: &[u8], _: &mut [u32]) {
        match self.0 {}
    }

    pub fn widen_nvfp4(&self, _: &[u8], _: &[u8], _: &mut [u32], _: usize) {
        match self.0 {}
    }

    pub fn turn(&self, _: &mut [f32; SIDE * SIDE]) {
        match self.0 {}
    }

    pub fn pack_rows(&self, _: &[u32], _: usize, _: &mut [u32]) {
        match self.0 {}
    }

    pub fn pack_columns(&self, _: &[u32], _: usize, _: &mut [u32]) {
        match self.0 {}
    }

    pub fn pack_depths(&self, _: &[u32], _: usize, _: usize, _: usize, _: &mut [u32]) {
        match self.0 {}
    }

    pub fn raise(&self, _: &[f32; SIDE * SIDE], _: &mut [f32; LANES]) {
        match self.0 {}
    }

    pub fn exponents(&self, _: &[f32; LANES], _: f32, _: &mut SoftmaxLanes) -> Exponents {
        match self.0 {}
    }

    pub fn weigh<'a>(
        &self,
        _: &[f32; SIDE * SIDE],
        _: &Exponents,
        _: &mut [f32; LANES],
        _: (usize, &mut [u32]),
        _: impl Iterator<Item = Product<'a>>,
        _: usize,
    ) {
        match self.0 {}
    }

    pub fn add_sums(&self, _: &[f32; LANES], _: &mut SoftmaxLanes) {
        match self.0 {}
    }
}

/// Uninhabited.
#[derive(Debug)]
pub(crate) struct Exponents(Infallible);

/// Uninhabited.
#[derive(Debug)]
pub(crate) struct Configured(Infallible);

impl Configured {
    pub fn product<'a>(
        &'a self,
        _: (usize, usize),
        _: &'a [u32],
        _: &'a [u32],
        _: &'a mut [f32],
        _: bool,
    ) -> Product<'a> {
        match self.0 {}
    }
}

/// Uninhabited.
#[derive(Debug)]
pub(crate) struct Product<'a>(Infallible, PhantomData<&'a mut [f32]>);

impl Product<'_> {
    /// The same as on x86-64.
    pub fn steps(chunks: usize, parts: usize) -> usize {
        chunks * parts
    }

    pub fn finish(self) {
        match self.0 {}
    }
}
