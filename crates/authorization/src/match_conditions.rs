//! Evaluates the match conditions of webhooks
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authorization/#using-configuration-file-for-authorization>).

use crate::review::ReviewSpec;
use pintle_cel::{
    Activation, Environment, Program, Value as CelValue,
    types::{ObjectTypes, Type},
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, json, status::aggregate};
use std::sync::{Arc, LazyLock};

/// Conditions that must all be true for the webhook to be called; an empty list is true. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct MatchConditions(Arc<[Condition]>);

#[derive(Debug)]
struct Condition {
    expression: String,
    program: Program,
}

/// Conditions are equal when their texts are.
impl PartialEq for MatchConditions {
    fn eq(&self, other: &MatchConditions) -> bool {
        let texts = |conditions: &MatchConditions| -> Vec<String> {
            conditions.0.iter().map(|condition| condition.expression.clone()).collect()
        };
        texts(self) == texts(other)
    }
}

/// The cost budget of one expression.
const BUDGET: u64 = 1_000_000;
const MAX_CONDITIONS: usize = 64;
const REQUEST: &str = "request";

impl MatchConditions {
    /// Compiles the expressions of the list at this path.
    pub(crate) fn compile<'a>(
        expressions: impl ExactSizeIterator<Item = &'a str>,
        path: &FieldPath,
    ) -> Result<MatchConditions, ErrorList> {
        if expressions.len() > MAX_CONDITIONS {
            return Err(vec![FieldError::too_many(path, expressions.len(), MAX_CONDITIONS)]);
        }
        let (mut conditions, mut errors): (Vec<Condition>, _) = (Vec::new(), Vec::new());
        let mut seen: Vec<&str> = Vec::new();
        for (position, expression) in expressions.enumerate() {
            let path = path.index(position).child("expression");
            if expression.trim().is_empty() {
                errors.push(FieldError::required(&path, ""));
                continue;
            }
            if seen.contains(&expression) {
                errors.push(FieldError::duplicate(&path, expression));
                continue;
            }
            seen.push(expression);
            match compile(expression) {
                Ok(program) => conditions.push(Condition { expression: expression.to_owned(), program }),
                Err(detail) => errors.push(FieldError::invalid(&path, expression, detail)),
            }
        }
        if errors.is_empty() { Ok(MatchConditions(conditions.into())) } else { Err(errors) }
    }

    /// Whether the list is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all conditions are true for a request. A false condition takes precedence over errors of others.
    pub(crate) fn hold(&self, spec: &ReviewSpec<'_>) -> Result<bool, String> {
        let request = request(spec);
        let activation = Activation::new().with(REQUEST, CelValue::from_json(&request));
        let mut errors = Vec::new();
        for Condition { expression, program } in self.0.iter() {
            let mut budget = BUDGET;
            match program.evaluate(&activation, &mut budget) {
                Ok(CelValue::Bool(true)) => {}
                Ok(CelValue::Bool(false)) => return Ok(false),
                Ok(other) => errors.push(format!(
                    "cel evaluation error: expression '{expression}' eval result type should be bool but got {}",
                    other.type_name()
                )),
                Err(error) => errors
                    .push(format!("cel evaluation error: expression '{expression}' resulted in error: {error}")),
            }
        }
        if errors.is_empty() { Ok(true) } else { Err(aggregate(errors.into_iter())) }
    }
}

fn compile(expression: &str) -> Result<Program, String> {
    let program =
        ENVIRONMENT.compile(expression).map_err(|errors| format!("compilation failed: {errors}"))?;
    match program.result_type() {
        Type::Bool => Ok(program),
        other => Err(format!("must evaluate to bool but got {other}")),
    }
}

/// The environment with the variable `request`: a `SubjectAccessReviewSpec` of v1 with all its fields.
static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    const SPEC: &str = "kubernetes.SubjectAccessReviewSpec";
    const RESOURCE: &str = "kubernetes.ResourceAttributes";
    const NON_RESOURCE: &str = "kubernetes.NonResourceAttributes";
    const FIELD_SELECTOR: &str = "kubernetes.FieldSelectorAttributes";
    const LABEL_SELECTOR: &str = "kubernetes.LabelSelectorAttributes";
    const REQUIREMENT: &str = "kubernetes.SelectorRequirement";
    let mut types = ObjectTypes::default();
    let mut object = |name: &str, texts: &[&str], others: &[(&str, Type)]| {
        let texts = texts.iter().map(|field| ((*field).into(), Type::String));
        let others = others.iter().map(|(field, of_field)| ((*field).into(), of_field.clone()));
        types.insert(name, texts.chain(others));
    };
    let texts = || Type::list(Type::String);
    object(
        SPEC,
        &["user", "uid"],
        &[
            ("resourceAttributes", Type::object(RESOURCE)),
            ("nonResourceAttributes", Type::object(NON_RESOURCE)),
            ("groups", texts()),
            ("extra", Type::map(Type::String, texts())),
        ],
    );
    object(
        RESOURCE,
        &["namespace", "verb", "group", "version", "resource", "subresource", "name"],
        &[("fieldSelector", Type::object(FIELD_SELECTOR)), ("labelSelector", Type::object(LABEL_SELECTOR))],
    );
    object(NON_RESOURCE, &["path", "verb"], &[]);
    let requirements = Type::list(Type::object(REQUIREMENT));
    for selector in [FIELD_SELECTOR, LABEL_SELECTOR] {
        object(selector, &["rawSelector"], &[("requirements", requirements.clone())]);
    }
    object(REQUIREMENT, &["key", "operator"], &[("values", texts())]);
    Environment::new().with_types(Arc::new(types)).with_variable(REQUEST, Type::object(SPEC))
});

fn request(spec: &ReviewSpec<'_>) -> Value {
    let mut request = json!({
        "user": spec.user,
        "groups": spec.groups,
        "uid": spec.uid,
        "extra": spec.extra,
    });
    if let Some(attributes) = &spec.resource_attributes {
        let mut resource = json!({
            "namespace": attributes.namespace,
            "verb": attributes.verb,
            "group": attributes.group,
            "version": attributes.version,
            "resource": attributes.resource,
            "subresource": attributes.subresource,
            "name": attributes.name,
        });
        let selectors =
            [("fieldSelector", &attributes.field_selector), ("labelSelector", &attributes.label_selector)];
        for (field, selector) in selectors {
            if let (Some(selector), Some(resource)) = (selector, resource.as_object_mut()) {
                let requirements = selector.requirements.iter().map(|requirement| {
                    json!({
                        "key": requirement.key,
                        "operator": requirement.operator,
                        "values": requirement.values,
                    })
                });
                let requirements: Vec<_> = requirements.collect();
                resource.insert(field.to_owned(), json!({"requirements": requirements}));
            }
        }
        if let Some(request) = request.as_object_mut() {
            request.insert("resourceAttributes", resource);
        }
    }
    if let (Some(attributes), Some(request)) = (&spec.non_resource_attributes, request.as_object_mut()) {
        let attributes = json!({"verb": attributes.verb, "path": attributes.path});
        request.insert("nonResourceAttributes", attributes);
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_auth::authz::{Attributes, Selectors};
    use pintle_machinery::UserInfo;

    fn conditions(expressions: &[&str]) -> Result<MatchConditions, Vec<String>> {
        let compiled =
            MatchConditions::compile(expressions.iter().copied(), &FieldPath::new("matchConditions"));
        compiled.map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn conditions_see_the_request() {
        let user = UserInfo {
            name: "jane".to_owned(),
            groups: vec!["devs".to_owned()],
            extra: [("scopes".to_owned(), vec!["view".to_owned()])].into(),
            ..UserInfo::default()
        };
        let selectors = Selectors::parse("spec.nodeName=n", "app in (b, a),!old");
        let resource = Attributes {
            group: "apps",
            resource: "deployments",
            namespace: "shop",
            selectors: Some(&selectors),
            ..Attributes::of(&user, "list")
        };
        let path =
            Attributes { path: "/metrics", is_resource_request: false, ..Attributes::of(&user, "get") };
        let check = |attributes: &Attributes<'_>, expressions: &[&str], expected: Result<bool, &str>| {
            let conditions = conditions(expressions).unwrap();
            let found = conditions.hold(&ReviewSpec::of(attributes));
            assert_eq!(found.as_ref().map_err(String::as_str).copied(), expected, "{expressions:?}");
        };
        check(&resource, &["request.user == 'jane' && 'devs' in request.groups"], Ok(true));
        check(&resource, &["request.extra['scopes'] == ['view'] && request.uid == ''"], Ok(true));
        check(
            &resource,
            &["has(request.resourceAttributes)", "has(request.nonResourceAttributes)"],
            Ok(false),
        );
        check(&resource, &["request.resourceAttributes.namespace == 'shop'"], Ok(true));
        check(&resource, &["request.resourceAttributes.name == ''"], Ok(true));
        check(
            &resource,
            &[
                "request.resourceAttributes.fieldSelector.requirements.all(r, r.key == 'spec.nodeName' && r.operator == 'In' \
               && r.values == ['n'])",
            ],
            Ok(true),
        );
        check(
            &resource,
            &[
                "request.resourceAttributes.labelSelector.requirements.map(r, r.key + ' ' + r.operator) == ['app In', 'old \
               DoesNotExist']",
            ],
            Ok(true),
        );
        check(&path, &["request.?resourceAttributes.?verb.orValue('') == 'get'"], Ok(false));
        check(&path, &["request.nonResourceAttributes.path.startsWith('/metrics')"], Ok(true));
        let fails = "request.resourceAttributes.verb == 'get'";
        check(
            &path,
            &[fails],
            Err(
                "cel evaluation error: expression 'request.resourceAttributes.verb == 'get'' resulted in error: no such key: \
                 resourceAttributes",
            ),
        );
        check(&path, &[fails, "false"], Ok(false));
        check(&path, &[], Ok(true));
    }

    #[test]
    fn mistakes_are_told_by_field() {
        let check = |expressions: &[&str], expected: &[&str]| {
            let found = conditions(expressions).unwrap_err();
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.starts_with(expected), "{found}");
            }
        };
        check(
            &[" ", "true", "true", "'a'", "request.nothing"],
            &[
                "matchConditions[0].expression: Required value",
                "matchConditions[2].expression: Duplicate value: \"true\"",
                "matchConditions[3].expression: Invalid value: \"'a'\": must evaluate to bool but got string",
                "matchConditions[4].expression: Invalid value: \"request.nothing\": compilation failed: ERROR: <input>:1:8: \
                 undefined field 'nothing'",
            ],
        );
        check(&["true"; 65], &["matchConditions: Too many: 65: must have at most 64 items"]);
    }
}
