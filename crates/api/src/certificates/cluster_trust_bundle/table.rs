//! The table columns of cluster trust bundles.

use crate::printing::{NONE, column, name};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![Column::name(), column("SignerName", "The signer that the bundle belongs to.")]
}

/// The cells of one object.
pub(super) fn cells(bundle: &Value, _now: Timestamp) -> Vec<Cell> {
    let signer = match bundle.str_at("spec.signerName") {
        "" => NONE,
        signer => signer,
    };
    vec![name(bundle), signer.into()]
}
