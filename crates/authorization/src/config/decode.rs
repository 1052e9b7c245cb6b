//! Decodes the configuration from YAML or JSON, strictly.

use pintle_machinery::{
    Value,
    codec::{ConfigKind, StrictProblem, json, yaml},
};
use pintle_schema::{FieldSpec, ListType, NodeId, Omit, Schema, SchemaBuilder, StructSpec, Type};
use std::sync::LazyLock;

const KIND: ConfigKind = ConfigKind {
    kind: "AuthorizationConfiguration",
    group: "apiserver.config.k8s.io",
    versions: &["v1", "v1beta1", "v1alpha1"],
};

/// Decodes a configuration. Unknown and duplicate fields are errors. An empty text is a configuration without
/// authorizers.
pub(super) fn decode(bytes: &[u8]) -> Result<Value, String> {
    if bytes.is_empty() {
        return Ok(Value::Object(Default::default()));
    }
    let converted = yaml::to_json(bytes).map_err(|error| error.to_string())?;
    KIND.check(&converted.json)?;
    let decoded = json::decode(&converted.json, SCHEMA.root()).map_err(|error| error.to_string())?;
    let mut problems = converted.problems;
    problems.extend(decoded.problems);
    match problems.is_empty() {
        true => Ok(decoded.value),
        false => {
            let texts: Vec<_> = problems.iter().map(StrictProblem::to_string).collect();
            Err(format!("strict decoding error: {}", texts.join(", ")))
        }
    }
}

/// The fields of the configuration.
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let mut types = Types(SchemaBuilder::new());
    let text = types.0.scalar(Type::String);
    let boolean = types.0.scalar(Type::Bool);
    let duration = types.0.scalar(Type::Duration);
    let connection = types.structure(&[("type", text)], &[("kubeConfigFile", text)]);
    let condition = types.structure(&[("expression", text)], &[]);
    let conditions = types.list(condition);
    let webhook = types.structure(
        &[
            ("authorizedTTL", duration),
            ("unauthorizedTTL", duration),
            ("timeout", duration),
            ("subjectAccessReviewVersion", text),
            ("matchConditionSubjectAccessReviewVersion", text),
            ("failurePolicy", text),
            ("connectionInfo", connection),
            ("matchConditions", conditions),
        ],
        &[("cacheAuthorizedRequests", boolean), ("cacheUnauthorizedRequests", boolean)],
    );
    let authorizer = types.structure(&[("type", text), ("name", text)], &[("webhook", webhook)]);
    let authorizers = types.list(authorizer);
    let root = types.structure(&[("kind", text), ("apiVersion", text), ("authorizers", authorizers)], &[]);
    types.0.finish(root)
});

struct Types(SchemaBuilder);

impl Types {
    fn list(&mut self, item: NodeId) -> NodeId {
        self.0.list(item, ListType::Atomic, &[])
    }

    /// A struct type; the fields of `pointers` are pointers in Go, so that absent and zero differ.
    fn structure(
        &mut self,
        values: &[(&'static str, NodeId)],
        pointers: &[(&'static str, NodeId)],
    ) -> NodeId {
        let id = self.0.reserve();
        let field = |pointer: bool| {
            move |&(name, node): &(&'static str, NodeId)| {
                let omit = if pointer { Omit::Empty } else { Omit::Never };
                (FieldSpec { name, pointer, omit, ..FieldSpec::default() }, node)
            }
        };
        let fields = values.iter().map(field(false)).chain(pointers.iter().map(field(true))).collect();
        self.0.set_struct(id, StructSpec { fields, declared: true, ..StructSpec::default() });
        id
    }
}
