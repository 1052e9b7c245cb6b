//! Builds the `Status` for an apply that conflicts with fields of other managers.

use super::{Entry, FieldSet, Operation, field_set::Room};
use crate::{Status, StatusCause, StatusDetails, StatusReason};
use pintle_go_forms::quote;

/// Conflicting fields that one other manager owns.
pub(super) struct Conflict<'a> {
    pub(super) entry: &'a Entry,
    pub(super) fields: FieldSet,
}

/// The maximum number of conflicts in a message, and their maximum size in bytes.
const MAX_NAMED: usize = 1000;
const MAX_NAMED_BYTES: usize = 256 * 1024;

/// A 409 with a cause for each field, up to the maximum number and size.
pub(super) fn conflict_status(mut conflicts: Vec<Conflict<'_>>) -> Status {
    let key = |entry: &Entry| {
        (entry.manager.clone(), entry.operation, entry.api_version.clone(), entry.subresource.clone())
    };
    conflicts.sort_by_cached_key(|conflict| key(conflict.entry));
    let count: usize = conflicts.iter().map(|conflict| conflict.fields.len()).sum();
    let mut room = Room { paths: MAX_NAMED, bytes: MAX_NAMED_BYTES };
    let mut causes: Vec<StatusCause> = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    for conflict in &conflicts {
        let manager = describe(conflict.entry);
        lines.push(format!("conflicts with {manager}:"));
        for path in conflict.fields.paths_within(&mut room) {
            lines.push(format!("- {path}"));
            // Each cause contains the manager's name again.
            room.take_bytes(manager.len());
            causes.push(StatusCause {
                reason: "FieldManagerConflict".to_owned(),
                message: format!("conflict with {manager}"),
                field: path,
            });
            if room.bytes == 0 {
                break;
            }
        }
        if room.is_over() {
            break;
        }
    }
    if causes.len() < count {
        lines.push("and more conflicts".to_owned());
    }
    let message = match causes.as_slice() {
        [one] if count == 1 => format!("Apply failed with 1 conflict: {}: {}", one.message, one.field),
        _ => format!("Apply failed with {count} conflicts: {}", lines.join("\n")),
    };
    let mut status = Status::failure(409, StatusReason::Conflict, message);
    status.details = Some(StatusDetails { causes, ..StatusDetails::default() });
    status
}

fn describe(entry: &Entry) -> String {
    let mut text = quote(&entry.manager);
    if !entry.subresource.is_empty() {
        text.push_str(&format!(" with subresource {}", quote(&entry.subresource)));
    }
    if entry.operation == Operation::Update {
        text.push_str(&format!(" using {}", entry.api_version));
    }
    text
}
