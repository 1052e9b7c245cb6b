//! Self subject rules reviews: the rules of the caller in a namespace.

use super::group::GROUP;
use crate::declare::Declare;
use pintle_auth::authz::ResolvedRules;
use pintle_machinery::{Status, Value, ValueExt, json, status::aggregate};
use pintle_registry::{Backing, BoxFuture, NamedCreater, RequestContext, Resource, Verb};
use std::sync::Arc;

/// The declaration of the resource.
pub fn resource() -> Resource {
    let mut resource =
        GROUP.cluster("SelfSubjectRulesReview", "selfsubjectrulesreviews").verbs([Verb::Create]);
    resource.backing = Backing::Creater(Arc::new(SelfSubjectRulesReviewCreater));
    resource
}

/// Answers with the rules, and copies only kind and apiVersion of the request.
#[derive(Debug, Clone, Copy)]
struct SelfSubjectRulesReviewCreater;

impl NamedCreater for SelfSubjectRulesReviewCreater {
    fn prepare<'a>(
        &'a self,
        _: &'a RequestContext<'a>,
        review: &'a mut Value,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(require_namespace(review)))
    }

    fn create<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        review: Value,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let namespace = review.str_at("spec.namespace");
            let rules = context.authorizer.rules_for(context.user, namespace).await;
            Ok(json!({
                "apiVersion": context.group_version.to_string(),
                "kind": "SelfSubjectRulesReview",
                "metadata": {},
                "spec": {},
                "status": status(&rules),
            }))
        })
    }
}

fn require_namespace(review: &Value) -> Result<(), Status> {
    match review.str_at("spec.namespace") {
        "" => Err(Status::bad_request("no namespace on request")),
        _ => Ok(()),
    }
}

fn status(rules: &ResolvedRules) -> Value {
    let rule = |lists: &[(&str, &[String])]| {
        let mut rule = json!({});
        for (name, list) in lists.iter().filter(|(_, list)| !list.is_empty()) {
            rule.set(name, json!(list));
        }
        rule
    };
    let resource_rules = rules.resource_rules.iter().map(|own| {
        rule(&[
            ("verbs", &own.verbs),
            ("apiGroups", &own.groups),
            ("resources", &own.resources),
            ("resourceNames", &own.names),
        ])
    });
    let non_resource_rules = rules
        .non_resource_rules
        .iter()
        .map(|own| rule(&[("verbs", &own.verbs), ("nonResourceURLs", &own.urls)]));
    let mut status = json!({
        "resourceRules": resource_rules.collect::<Value>(),
        "nonResourceRules": non_resource_rules.collect::<Value>(),
        "incomplete": rules.incomplete,
    });
    if !rules.errors.is_empty() {
        status.set("evaluationError", aggregate(rules.errors.iter().cloned()));
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_auth::authz::{NonResourceRule, ResourceRule};

    #[test]
    fn rules_are_told() {
        let texts = |text: &str| vec![text.to_owned()];
        let rules = ResolvedRules {
            resource_rules: vec![ResourceRule {
                verbs: texts("get"),
                groups: texts(""),
                resources: texts("pods"),
                names: Vec::new(),
            }],
            non_resource_rules: vec![NonResourceRule { verbs: texts("get"), urls: texts("/api") }],
            incomplete: true,
            errors: vec!["one".to_owned(), "two".to_owned(), "one".to_owned()],
        };
        let expected = json!({
            "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/api"]}],
            "incomplete": true,
            "evaluationError": "[one, two]",
        });
        assert_eq!(status(&rules), expected);
    }
}
