//! Which objects a quota is about (<https://kubernetes.io/docs/concepts/policy/resource-quotas/#quota-scopes>).

use pintle_machinery::{Value, ValueExt};

/// One condition of a quota.
pub(super) struct Scope<'a> {
    pub(super) name: &'a str,
    operator: &'a str,
    values: &'a [Value],
}

/// The conditions of a quota; all must hold.
pub(super) fn of(quota: &Value) -> impl Iterator<Item = Scope<'_>> {
    let named = quota.items_at("spec.scopes").iter().filter_map(Value::as_str);
    let named = named.map(|name| Scope { name, operator: "Exists", values: &[] });
    let selected = quota.items_at("spec.scopeSelector.matchExpressions").iter();
    named.chain(selected.map(|expression| Scope {
        name: expression.str_at("scopeName"),
        operator: expression.str_at("operator"),
        values: expression.items_at("values"),
    }))
}

impl Scope<'_> {
    /// Whether the condition holds for something that names these classes; one is enough.
    pub(super) fn selects(&self, classes: &[&str]) -> bool {
        let is_listed = |class: &str| self.values.iter().any(|value| value.as_str() == Some(class));
        match self.operator {
            "Exists" => !classes.is_empty(),
            "DoesNotExist" => classes.is_empty(),
            "In" => classes.iter().any(|class| is_listed(class)),
            "NotIn" => classes.is_empty() || classes.iter().any(|class| !is_listed(class)),
            _ => false,
        }
    }
}
