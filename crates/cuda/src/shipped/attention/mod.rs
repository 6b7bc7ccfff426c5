//! Attention's variants: the steps of its staircase, then formats, head sizes and masks of the fastest kernels.

mod resident;
mod specialised;
mod unified;

use super::Shipped;

/// All of attention's variants, in the order of the staircase.
pub(super) fn shipped() -> Vec<Shipped> {
    let mut shipped = unified::shipped();
    shipped.extend(specialised::shipped());
    shipped.extend(resident::shipped());
    shipped
}
