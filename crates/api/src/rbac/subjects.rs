//! Table cells that role bindings and cluster role bindings share.

use pintle_machinery::{Value, ValueExt};
use pintle_registry::Cell;

/// The role as `kind/name`.
pub(super) fn role(binding: &Value) -> Cell {
    format!("{}/{}", binding.str_at("roleRef.kind"), binding.str_at("roleRef.name")).into()
}

/// The users, groups and service accounts of a binding, each joined. Subjects of other kinds are left out.
pub(super) fn subjects(binding: &Value) -> [Cell; 3] {
    ["User", "Group", "ServiceAccount"].map(|kind| {
        let subjects = binding.items_at("subjects").iter().filter(|subject| subject.str_at("kind") == kind);
        let names: Vec<String> = subjects
            .map(|subject| match kind {
                "ServiceAccount" => format!("{}/{}", subject.str_at("namespace"), subject.str_at("name")),
                _ => subject.str_at("name").to_owned(),
            })
            .collect();
        names.join(", ").into()
    })
}
