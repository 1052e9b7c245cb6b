//! Where an encoder tells an empty list or map from none.

use crate::cursor::{FieldRef, SchemaRef};
use crate::node::{Shape, Type};
use crate::schema::Schema;
use std::sync::LazyLock;

/// By node of the built-in schema: whether there is such a field somewhere in a value of it. Found out once, since few
/// types have one.
static HOLDERS: LazyLock<Box<[bool]>> = LazyLock::new(|| holders(Schema::builtin()));

impl SchemaRef<'_> {
    /// Whether somewhere in a value of a built-in type an empty list or map can be told from none. `false` for other
    /// types: what is said of them says nothing of Go.
    pub fn tells_empty_from_none(self) -> bool {
        std::ptr::eq(self.schema(), Schema::builtin())
            && HOLDERS.get(self.id().0 as usize).copied().unwrap_or_default()
    }
}

impl FieldRef<'_> {
    /// Whether an empty list or map in this field can be told from none: Go writes `[]` for one and `null` for the other.
    pub fn tells_empty_from_none(self) -> bool {
        matches!(self.ty().ty(), Type::List | Type::Map) && !self.is_pointer() && self.is_always_written()
    }
}

fn holders(schema: &Schema) -> Box<[bool]> {
    let mut holders = vec![false; schema.nodes.len()].into_boxed_slice();
    // Types refer to themselves, so this goes round until nothing is found any more.
    loop {
        let mut has_grown = false;
        for (at, node) in schema.nodes.iter().enumerate() {
            let holds = |id: crate::node::NodeId| holders.get(id.0 as usize).copied().unwrap_or_default();
            let found = match node.shape {
                Shape::List { item, .. } => holds(item),
                Shape::Map { value, .. } => holds(value),
                Shape::Struct { .. } => u32::try_from(at).is_ok_and(|at| {
                    let mut fields = schema.node(crate::node::NodeId(at)).fields();
                    fields.any(|field| field.tells_empty_from_none() || holds(field.ty().id()))
                }),
                _ => false,
            };
            if let Some(known) = holders.get_mut(at).filter(|known| found && !**known) {
                *known = true;
                has_grown = true;
            }
        }
        if !has_grown {
            return holders;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Schema;

    #[test]
    fn types_with_lists_that_are_always_written_hold_them_and_others_do_not() {
        let holds = |name: &str| Schema::builtin().by_type_name(name).map(|ty| ty.tells_empty_from_none());
        assert_eq!(holds("k8s.io/api/rbac/v1.PolicyRule"), Some(true));
        assert_eq!(holds("k8s.io/api/rbac/v1.ClusterRole"), Some(true));
        assert_eq!(holds("k8s.io/api/apps/v1.Deployment"), Some(true));
        assert_eq!(holds("k8s.io/api/core/v1.EnvVar"), Some(false));
        assert_eq!(holds("k8s.io/api/core/v1.ConfigMap"), Some(false));
        assert_eq!(holds("k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta"), Some(false));
    }
}
