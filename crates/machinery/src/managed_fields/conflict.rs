//! What a client is told whose apply would change what others own.

use super::{Entry, FieldSet, Operation};
use crate::{Status, StatusCause, StatusDetails, StatusReason, error_list::quote};

/// Fields that another manager owns.
pub(super) struct Conflict<'a> {
    pub(super) entry: &'a Entry,
    pub(super) fields: FieldSet,
}

/// 409 with a cause for each field.
pub(super) fn conflict_status(mut conflicts: Vec<Conflict<'_>>) -> Status {
    let key = |entry: &Entry| {
        (entry.manager.clone(), entry.operation, entry.api_version.clone(), entry.subresource.clone())
    };
    conflicts.sort_by_cached_key(|conflict| key(conflict.entry));
    let managers: Vec<(String, Vec<String>)> =
        conflicts.iter().map(|conflict| (describe(conflict.entry), conflict.fields.paths())).collect();
    let causes: Vec<StatusCause> = managers
        .iter()
        .flat_map(|(manager, paths)| {
            paths.iter().map(move |path| StatusCause {
                reason: "FieldManagerConflict".to_owned(),
                message: format!("conflict with {manager}"),
                field: path.clone(),
            })
        })
        .collect();
    let message = match causes.as_slice() {
        [one] => format!("Apply failed with 1 conflict: {}: {}", one.message, one.field),
        many => {
            let mut lines = Vec::with_capacity(many.len() + managers.len());
            for (manager, paths) in &managers {
                lines.push(format!("conflicts with {manager}:"));
                lines.extend(paths.iter().map(|path| format!("- {path}")));
            }
            format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
        }
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
