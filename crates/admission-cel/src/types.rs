//! The types of the variables.

use pintle_cel::types::{ObjectTypes, Type, TypeProvider};
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

pub(crate) const REQUEST: &str = "kubernetes.AdmissionRequest";
pub(crate) const NAMESPACE: &str = "kubernetes.Namespace";
pub(crate) const VARIABLES: &str = "kubernetes.variables";
/// The variable of the last type.
pub(crate) const VARIABLES_NAME: &str = "variables";

/// The types that the variables of one policy consist of.
#[derive(Clone, Debug, Default)]
pub(crate) struct AdmissionTypes {
    /// The types of `variables`, by name; `None` when it is not declared.
    pub(crate) variables: Option<HashMap<Box<str>, Type>>,
    /// Types beside the common ones.
    pub(crate) others: Option<Arc<dyn TypeProvider>>,
}

impl TypeProvider for AdmissionTypes {
    fn has_type(&self, name: &str) -> bool {
        COMMON.has_type(name)
            || (name == VARIABLES && self.variables.is_some())
            || self.others.as_ref().is_some_and(|others| others.has_type(name))
    }

    fn field(&self, type_name: &str, field: &str) -> Option<Type> {
        if type_name == VARIABLES {
            return self.variables.as_ref()?.get(field).cloned();
        }
        let other = || self.others.as_ref()?.field(type_name, field);
        COMMON.field(type_name, field).or_else(other)
    }

    fn is_constructible(&self, type_name: &str) -> bool {
        self.others.as_ref().is_some_and(|others| others.is_constructible(type_name))
    }
}

/// The types of `request` and `namespaceObject`.
static COMMON: LazyLock<ObjectTypes> = LazyLock::new(|| {
    const KIND: &str = "kubernetes.GroupVersionKind";
    const RESOURCE: &str = "kubernetes.GroupVersionResource";
    const USER: &str = "kubernetes.UserInfo";
    const METADATA: &str = "kubernetes.NamespaceMetadata";
    const SPEC: &str = "kubernetes.NamespaceSpec";
    const STATUS: &str = "kubernetes.NamespaceStatus";
    const CONDITION: &str = "kubernetes.NamespaceCondition";
    let strings = || Type::list(Type::String);
    let string_map = || Type::map(Type::String, Type::String);
    let mut types = ObjectTypes::default();
    let mut object = |name: &str, texts: &[&str], others: Vec<(&str, Type)>| {
        let texts = texts.iter().map(|field| ((*field).into(), Type::String));
        let others = others.into_iter().map(|(field, of_field)| (field.into(), of_field));
        types.insert(name, texts.chain(others));
    };
    object(KIND, &["group", "version", "kind"], Vec::new());
    object(RESOURCE, &["group", "version", "resource"], Vec::new());
    object(
        USER,
        &["username", "uid"],
        vec![("groups", strings()), ("extra", Type::map(Type::String, strings()))],
    );
    object(
        REQUEST,
        &["subResource", "requestSubResource", "name", "namespace", "operation"],
        vec![
            ("kind", Type::object(KIND)),
            ("resource", Type::object(RESOURCE)),
            ("requestKind", Type::object(KIND)),
            ("requestResource", Type::object(RESOURCE)),
            ("userInfo", Type::object(USER)),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    );
    object(SPEC, &[], vec![("finalizers", strings())]);
    object(
        CONDITION,
        &["status", "type", "message", "reason"],
        vec![("lastTransitionTime", Type::Timestamp)],
    );
    object(STATUS, &["phase"], vec![("conditions", Type::list(Type::object(CONDITION)))]);
    object(
        METADATA,
        &["name", "generateName", "namespace", "UID", "resourceVersion"],
        vec![
            ("labels", string_map()),
            ("annotations", string_map()),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("finalizers", strings()),
        ],
    );
    object(
        NAMESPACE,
        &[],
        vec![
            ("metadata", Type::object(METADATA)),
            ("spec", Type::object(SPEC)),
            ("status", Type::object(STATUS)),
        ],
    );
    types
});
