//! Decodes the configuration from YAML or JSON, strictly.

use pintle_machinery::{
    Value,
    codec::{ConfigKind, StrictProblem, json, yaml},
};
use pintle_schema::{FieldSpec, ListType, NodeId, Omit, Schema, SchemaBuilder, StructSpec, Type};
use std::sync::LazyLock;

/// All versions have the same fields.
const KIND: ConfigKind = ConfigKind {
    kind: "AuthenticationConfiguration",
    group: "apiserver.config.k8s.io",
    versions: &["v1", "v1beta1", "v1alpha1"],
};

/// Decodes a configuration. Unknown and duplicate fields are errors.
pub(super) fn decode(bytes: &[u8]) -> Result<Value, String> {
    let converted = yaml::to_json(bytes).map_err(|error| error.to_string())?;
    // JSON is a subset of YAML: this reads both.
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
    let texts = types.list(text);
    let issuer = types.structure(
        &[
            ("url", text),
            ("certificateAuthority", text),
            ("audiences", texts),
            ("audienceMatchPolicy", text),
            ("egressSelectorType", text),
        ],
        &[("discoveryURL", text)],
    );
    let claim_rule = types
        .structure(&[("claim", text), ("requiredValue", text), ("expression", text), ("message", text)], &[]);
    let claim_rules = types.list(claim_rule);
    let prefixed = types.structure(&[("claim", text), ("expression", text)], &[("prefix", text)]);
    let plain = types.structure(&[("claim", text), ("expression", text)], &[]);
    let extra = types.structure(&[("key", text), ("valueExpression", text)], &[]);
    let extras = types.list(extra);
    let mappings = types
        .structure(&[("username", prefixed), ("groups", prefixed), ("uid", plain), ("extra", extras)], &[]);
    let user_rule = types.structure(&[("expression", text), ("message", text)], &[]);
    let user_rules = types.list(user_rule);
    let jwt = types.structure(
        &[
            ("issuer", issuer),
            ("claimValidationRules", claim_rules),
            ("claimMappings", mappings),
            ("userValidationRules", user_rules),
        ],
        &[],
    );
    let jwts = types.list(jwt);
    let condition = types.structure(&[("path", text)], &[]);
    let conditions = types.list(condition);
    let anonymous = types.structure(&[("enabled", boolean), ("conditions", conditions)], &[]);
    let root =
        types.structure(&[("kind", text), ("apiVersion", text), ("jwt", jwts)], &[("anonymous", anonymous)]);
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
