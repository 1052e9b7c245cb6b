//! Finds the types in which Go's encoder distinguishes an empty list, map or byte slice from an absent one.

use crate::cursor::{FieldRef, SchemaRef};
use crate::node::{Shape, Type};
use crate::schema::Schema;
use std::sync::LazyLock;

/// For each node of the built-in schema: whether a value of it contains such a field. Computed once, since few types
/// have one.
static HOLDERS: LazyLock<Box<[bool]>> = LazyLock::new(|| holders(Schema::builtin()));

impl SchemaRef<'_> {
    /// Whether a value of this built-in type can contain a field where empty and absent differ. Always
    /// `false` for types that are not built in.
    pub fn tells_empty_from_none(self) -> bool {
        std::ptr::eq(self.schema(), Schema::builtin())
            && HOLDERS.get(self.id().0 as usize).copied().unwrap_or_default()
    }
}

impl FieldRef<'_> {
    /// Whether empty and absent differ for this field of a list, a map or bytes: Go writes `[]`, `{}` or `""` for empty
    /// and `null` for absent.
    pub fn tells_empty_from_none(self) -> bool {
        matches!(self.ty().ty(), Type::List | Type::Map | Type::Bytes)
            && !self.is_pointer()
            && self.is_always_written()
    }
}

fn holders(schema: &Schema) -> Box<[bool]> {
    let mut holders = vec![false; schema.nodes.len()].into_boxed_slice();
    // Types refer to themselves, so this repeats until a pass finds no further node.
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
        assert_eq!(holds("k8s.io/api/certificates/v1.CertificateSigningRequestSpec"), Some(true));
        assert_eq!(holds("k8s.io/api/core/v1.EnvVar"), Some(false));
        assert_eq!(holds("k8s.io/api/core/v1.ConfigMap"), Some(false));
        assert_eq!(holds("k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta"), Some(false));
    }
}
