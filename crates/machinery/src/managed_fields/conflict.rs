//! Builds the `Status` for an apply that conflicts with fields of other managers.

use super::{Entry, FieldSet, Operation, field_set::Room, path_element::write_text};
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
    conflicts.sort_by_cached_key(|conflict| identifier(conflict.entry));
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

/// The JSON that identifies a manager in the reference, which sorts by it: a subresource comes before none.
fn identifier(entry: &Entry) -> Vec<u8> {
    let mut identifier = Vec::new();
    let is_apply = entry.operation == Operation::Apply;
    for (name, value) in [
        ("manager", entry.manager.as_str()),
        ("operation", entry.operation.as_str()),
        ("apiVersion", if is_apply { "" } else { entry.api_version.as_str() }),
        ("subresource", entry.subresource.as_str()),
    ] {
        if !value.is_empty() {
            identifier.push(if identifier.is_empty() { b'{' } else { b',' });
            write_text(&mut identifier, name);
            identifier.push(b':');
            write_text(&mut identifier, value);
        }
    }
    identifier.push(b'}');
    identifier
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_sorted_by_the_identifiers_of_their_managers() {
        let entry = |operation: Operation, subresource: &str| Entry {
            manager: "m".to_owned(),
            operation,
            api_version: "v1".to_owned(),
            time: None,
            subresource: subresource.to_owned(),
            fields: FieldSet::of_fields(["a"].into_iter()),
        };
        let entries =
            [entry(Operation::Update, ""), entry(Operation::Update, "scale"), entry(Operation::Apply, "")];
        let conflicts = entries.iter().map(|entry| Conflict { entry, fields: entry.fields.clone() });
        let expected = "Apply failed with 3 conflicts: conflicts with \"m\":\n- .a\nconflicts with \"m\" with subresource \
                        \"scale\" using v1:\n- .a\nconflicts with \"m\" using v1:\n- .a";
        assert_eq!(conflict_status(conflicts.collect()).message, expected);
    }
}
