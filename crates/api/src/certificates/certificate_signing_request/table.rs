//! The table columns of certificate signing requests.

use crate::printing::{NONE, age, column, name, text};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt, meta};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::age(),
        column("SignerName", "Who should sign."),
        column("Requestor", "Who asks."),
        column("RequestedDuration", "How long the certificate should be good for."),
        column("Condition", "Whether it was approved, and whether it was issued."),
    ]
}

/// The cells of one object.
pub(super) fn cells(request: &Value, now: Timestamp) -> Vec<Cell> {
    let duration = request.i64_at("spec.expirationSeconds");
    let signer = request.str_at("spec.signerName");
    vec![
        name(request),
        age(request, now),
        if signer.is_empty() { NONE } else { signer }.into(),
        text(request, "spec.username"),
        duration.map_or_else(|| NONE.to_owned(), meta::human_duration).into(),
        condition(request).into(),
    ]
}

fn condition(request: &Value) -> String {
    let has = |condition_type: &str| {
        let mut conditions = request.items_at("status.conditions").iter();
        conditions.any(|condition| condition.str_at("type") == condition_type)
    };
    // A denial outweighs an approval.
    let mut words = vec![match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }];
    if has("Failed") {
        words.push("Failed");
    }
    if !request.str_at("status.certificate").is_empty() {
        words.push("Issued");
    }
    words.join(",")
}
