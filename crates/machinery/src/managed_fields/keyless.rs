//! The built-in kinds with lists whose items may lack the values that identify them, such as the secrets of a service
//! account. Items of other lists always have them: Go's encoder writes the fields, or they have defaults.

use pintle_schema::{ListType, NodeId, Omit, Schema, SchemaRef, Type};
use std::{collections::HashSet, sync::LazyLock};

/// Whether a stored object of a built-in kind may have such items.
pub(super) fn may_lack_keys(kind: SchemaRef<'_>) -> bool {
    static KINDS: LazyLock<HashSet<NodeId>> = LazyLock::new(|| {
        let kinds = Schema::builtin().kinds().map(|kind| kind.schema);
        kinds.filter(|kind| finds_list(*kind, &mut HashSet::new())).map(SchemaRef::id).collect()
    });
    std::ptr::eq(kind.schema(), Schema::builtin()) && KINDS.contains(&kind.id())
}

/// Whether such a list is at or below a node that was not seen yet.
fn finds_list(node: SchemaRef<'_>, seen: &mut HashSet<NodeId>) -> bool {
    if !seen.insert(node.id()) {
        return false;
    }
    match node.ty() {
        Type::Struct => node.fields().any(|field| finds_list(field.ty(), seen)),
        Type::Map => finds_list(node.value(), seen),
        Type::List => {
            let item = node.item();
            let lacks = |key| {
                let field = item.field(key);
                field.is_some_and(|field| field.omit() != Omit::Never && field.default().is_none())
            };
            node.list_type() == ListType::Map && node.list_map_keys().all(lacks) || finds_list(item, seen)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_kinds_may_lack_keys() {
        let kinds = Schema::builtin().kinds().filter(|kind| may_lack_keys(kind.schema));
        let mut names: Vec<&str> =
            kinds.map(|kind| kind.kind).filter(|name| !name.ends_with("List")).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names, ["FlowSchema", "PriorityLevelConfiguration", "ServiceAccount", "StorageVersion"]);
    }
}
