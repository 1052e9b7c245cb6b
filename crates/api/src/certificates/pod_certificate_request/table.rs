//! The table columns of pod certificate requests.

use crate::printing::{column, labels, name, text};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

const STATES: [&str; 3] = ["Issued", "Denied", "Failed"];

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("PodName", "The pod that the certificate is for."),
        column("ServiceAccountName", "The service account of the pod."),
        column("NodeName", "The node of the pod."),
        column("SignerName", "The signer that issues the certificate."),
        column("State", "Whether the request is pending, issued, denied or failed."),
        column("UnverifiedUserAnnotations", "What the pod tells the signer."),
    ]
}

/// The cells of one object.
pub(super) fn cells(request: &Value, _now: Timestamp) -> Vec<Cell> {
    let conditions = request.items_at("status.conditions").iter().rev();
    let mut types = conditions.map(|condition| condition.str_at("type"));
    let state = types.find(|condition_type| STATES.contains(condition_type)).unwrap_or("Pending");
    vec![
        name(request),
        text(request, "spec.podName"),
        text(request, "spec.serviceAccountName"),
        text(request, "spec.nodeName"),
        text(request, "spec.signerName"),
        state.into(),
        labels(request.map_at("spec.unverifiedUserAnnotations")).into(),
    ]
}
