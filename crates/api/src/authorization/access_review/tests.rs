use super::*;
use pintle_auth::{
    BoxFuture,
    authz::{AlwaysAllow, Verdict},
};
use pintle_registry::testing::now;
use std::{future::ready, sync::Mutex};

fn errors(review: Value, expected: &[&str]) {
    let mut errors = validate_spec(&review, true);
    errors.extend(validate_metadata(&review, false));
    assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{review}");
}

#[test]
fn reviews_ask_for_one_thing_of_somebody() {
    errors(json!({"spec": {"user": "u", "resourceAttributes": {}}}), &[]);
    errors(json!({"spec": {"groups": ["g"], "nonResourceAttributes": {}}}), &[]);
    errors(
        json!({}),
        &[
            "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be \
             specified",
            "spec.user: Invalid value: \"\": at least one of user or group must be specified",
        ],
    );
    errors(
        json!({"spec": {"user": "u", "resourceAttributes": {}, "nonResourceAttributes": {"path": "/"}}}),
        &[
            "spec.nonResourceAttributes: Invalid value: {\"Path\":\"/\",\"Verb\":\"\"}: cannot be specified in combination \
             with resourceAttributes",
        ],
    );
    let attributes = json!({"fieldSelector": {}, "labelSelector": {"rawSelector": "a", "requirements": [{"key": "b", "operator": "Near"}]}});
    errors(
        json!({"spec": {"user": "u", "resourceAttributes": attributes}}),
        &[
            "spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector \
             is specified, requirements or rawSelector is required",
            "spec.resourceAttributes.labelSelector.rawSelector: Invalid value: \"a\": may not specified at the same time as \
             requirements",
        ],
    );
    errors(
        json!({
            "metadata": {
                "managedFields": [{"time": "t", "manager": "m"}],
                "ownerReferences": [{"controller": true, "blockOwnerDeletion": true, "kind": "K", "apiVersion": "v1"}],
                "labels": {"a": "b"},
                "name": "n",
            },
            "spec": {"user": "u", "resourceAttributes": {}},
        }),
        &[
            "metadata: Invalid value: {\"name\":\"n\",\"labels\":{\"a\":\"b\"},\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"K\",\
             \"controller\":true,\"blockOwnerDeletion\":true}],\"managedFields\":[{\"manager\":\"m\",\"time\":\"t\"}]}: must be empty",
        ],
    );
    let local = json!({"metadata": {"namespace": "shop", "managedFields": [{}]}});
    assert_eq!(validate_metadata(&local, true), []);
    assert_eq!(validate_metadata(&local, false).len(), 1);
}

/// Records the attributes, and denies with a reason.
#[derive(Default)]
struct Listens(Mutex<String>);

impl Authorizer for Listens {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
        let Attributes { user, verb, group, version, resource, subresource, namespace, name, path, .. } =
            *attributes;
        let selectors = attributes.selectors.cloned().unwrap_or_default();
        *self.0.lock().unwrap() = format!(
            "{} {:?} {:?} {verb} {group}/{version}/{resource}/{subresource} {namespace}/{name} {path} {} {}",
            user.name,
            user.groups,
            user.extra,
            selectors.field_terms.len(),
            selectors.label_requirements.len(),
        );
        let verdict = Verdict { reason: "no".into(), error: "broken".into(), ..Verdict::new(Decision::Deny) };
        Box::pin(ready(verdict))
    }
}

#[test]
fn authorizers_are_asked_what_the_review_asks() {
    let check = |spec: Value, asked: &str, evaluation_error: &str| {
        let review = json!({"spec": spec, "status": {"allowed": true, "reason": "mine"}});
        let authorizer = Listens::default();
        let user = user_of(&review);
        let answer = now(answer(&authorizer, &user, review.clone()));
        assert_eq!(*authorizer.0.lock().unwrap(), asked);
        let status =
            json!({"allowed": false, "denied": true, "reason": "no", "evaluationError": evaluation_error});
        assert_eq!(answer["status"], status);
        assert_eq!(answer["spec"], review["spec"]);
    };
    check(
        json!({"user": "u", "groups": ["g"], "extra": {"a": ["b"]}, "resourceAttributes": {
            "verb": "get", "group": "apps", "resource": "deployments", "subresource": "scale", "namespace": "n", "name": "o"}}),
        "u [\"g\"] {\"a\": [\"b\"]} get apps/*/deployments/scale n/o  0 0",
        "broken",
    );
    check(
        json!({"user": "u", "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}),
        "u [] {} get /// / /metrics 0 0",
        "broken",
    );
    check(
        json!({"user": "u", "resourceAttributes": {"version": "v2",
            "fieldSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}, {"key": "a", "operator": "Exists"}]},
            "labelSelector": {"requirements": [{"key": "a", "operator": "Near"}]}}}),
        "u [] {}  /v2// /  1 0",
        "broken; spec.resourceAttributes.fieldSelector partially ignored due to parse error; \
         spec.resourceAttributes.labelSelector ignored due to parse error",
    );
    check(
        json!({"user": "u", "resourceAttributes": {
            "fieldSelector": {"rawSelector": "a=b,c!=d"}, "labelSelector": {"rawSelector": "a in (b)"}}}),
        "u [] {}  /*// /  2 1",
        "broken",
    );
    let review = json!({"spec": {"resourceAttributes": {"verb": "get"}}});
    let answer = now(answer(&AlwaysAllow, &UserInfo::default(), review));
    assert_eq!(answer["status"], json!({"allowed": true}));
}
