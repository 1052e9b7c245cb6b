//! Matches requests with the rules and selectors of one webhook or policy.

use super::{Rule, Selectors, Targets};
use pintle_admission::{AdmissionRequest, Endpoint};
use pintle_machinery::{Status, Value, ValueExt};

/// The rules and selectors of one webhook, policy or binding.
#[derive(Debug, Clone)]
pub struct Matcher {
    /// `None` for all requests.
    rules: Option<Vec<Rule>>,
    exclude: Vec<Rule>,
    /// `matchPolicy: Equivalent`: rules also match by the equivalents of the requested resource.
    with_equivalents: bool,
    selectors: Selectors,
}

impl Matcher {
    /// The matcher of a webhook. A webhook without rules matches nothing.
    pub fn of_webhook(webhook: &Value) -> Matcher {
        Matcher {
            rules: Some(rules(webhook, "rules")),
            exclude: Vec::new(),
            with_equivalents: webhook.str_at("matchPolicy") == "Equivalent",
            selectors: Selectors::new(webhook),
        }
    }

    /// The matcher of a policy's `matchConstraints` or a binding's `matchResources`. Without rules it matches every
    /// resource.
    pub fn of_match_resources(match_resources: &Value) -> Matcher {
        let rules = rules(match_resources, "resourceRules");
        Matcher {
            rules: (!rules.is_empty()).then_some(rules),
            exclude: self::rules(match_resources, "excludeResourceRules"),
            with_equivalents: match_resources.str_at("matchPolicy") == "Equivalent",
            selectors: Selectors::new(match_resources),
        }
    }

    /// The endpoint by which the rules match a request: the requested one, or else the first equivalent that a rule
    /// names. It reads neither objects nor namespaces.
    pub fn endpoint<'a>(
        &self,
        request: &AdmissionRequest<'_>,
        targets: &'a Targets<'_>,
    ) -> Option<&'a Endpoint> {
        if self.find(&self.exclude, request, targets).is_some() {
            return None;
        }
        match &self.rules {
            None => Some(targets.requested()),
            Some(rules) => self.find(rules, request, targets),
        }
    }

    /// Whether the selectors select a request whose endpoint matches.
    ///
    /// # Errors
    /// As [`Selectors::select`].
    pub async fn selects(&self, request: &AdmissionRequest<'_>) -> Result<bool, Status> {
        self.selectors.select(request).await
    }

    /// Matches a request by rules and selectors: [`Matcher::endpoint`] and [`Matcher::selects`].
    ///
    /// # Errors
    /// As [`Selectors::select`].
    pub async fn matches<'a>(
        &self,
        request: &AdmissionRequest<'_>,
        targets: &'a Targets<'_>,
    ) -> Result<Option<&'a Endpoint>, Status> {
        let Some(endpoint) = self.endpoint(request, targets) else { return Ok(None) };
        Ok(self.selects(request).await?.then_some(endpoint))
    }

    fn find<'a>(
        &self,
        rules: &[Rule],
        request: &AdmissionRequest<'_>,
        targets: &'a Targets<'_>,
    ) -> Option<&'a Endpoint> {
        let requested = targets.requested();
        if rules.iter().any(|rule| rule.matches(request, requested)) {
            return Some(requested);
        }
        if !self.with_equivalents {
            return None;
        }
        // Earlier rules win over preferred equivalents.
        let mut rules = rules.iter();
        rules.find_map(|rule| targets.equivalents().find(|equivalent| rule.matches(request, equivalent)))
    }
}

fn rules(configuration: &Value, path: &str) -> Vec<Rule> {
    configuration.items_at(path).iter().map(Rule::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_admission::{
        Operation,
        testing::{Objects, Request, endpoint},
    };
    use pintle_machinery::json;

    /// The version of the endpoint that matches, "" when none does, or the error.
    fn matched(matcher: &Matcher, request: &Request) -> String {
        let equivalents =
            || ["v1beta1", "v1", "v2"].map(|version| endpoint("apps", version, "things")).to_vec();
        let requested = request.endpoint();
        let targets = Targets::new(&requested, &equivalents);
        request.with(async |request| match matcher.matches(request, &targets).await {
            Ok(Some(endpoint)) => endpoint.resource.version.clone(),
            Ok(None) => String::new(),
            Err(status) => status.message,
        })
    }

    fn webhook(rule: Value, more: Value) -> Matcher {
        let mut webhook = json!({"rules": [rule], "namespaceSelector": {}, "objectSelector": {}});
        for (key, value) in more.as_object().unwrap() {
            webhook.set(key, value.clone());
        }
        Matcher::of_webhook(&webhook)
    }

    #[test]
    fn rules_match_by_each_of_their_lists() {
        let check = |rule: Value, expected: bool| {
            let mut whole = json!({"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"],
                "resources": ["things"]});
            for (key, value) in rule.as_object().unwrap() {
                whole.set(key, value.clone());
            }
            let request = Request::new(Operation::Create, "apps", "v1", "things", "ns");
            let found = matched(&webhook(whole.clone(), json!({})), &request);
            assert_eq!(found == "v1", expected, "{whole}: {found}");
        };
        check(json!({}), true);
        check(json!({"operations": ["UPDATE", "*"], "apiGroups": ["*"], "apiVersions": ["*"]}), true);
        check(json!({"operations": ["UPDATE", "DELETE", "CONNECT"]}), false);
        check(json!({"apiGroups": ["", "other"]}), false);
        check(json!({"apiVersions": ["v2"]}), false);
        check(json!({"resources": ["*"]}), true);
        check(json!({"resources": ["*/*"]}), true);
        check(json!({"resources": ["things/*"]}), true);
        check(json!({"resources": ["things/status", "others"]}), false);
        check(json!({"resources": ["*/status"]}), false);
        check(json!({"scope": "Namespaced"}), true);
        check(json!({"scope": "*"}), true);
        check(json!({"scope": "Cluster"}), false);
    }

    #[test]
    fn subresources_match_only_if_a_rule_names_them() {
        let check = |resources: &[&str], expected: bool| {
            let rule = json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources});
            let mut request = Request::new(Operation::Update, "apps", "v1", "things", "ns");
            request.subresource = "status".to_owned();
            assert_eq!(matched(&webhook(rule, json!({})), &request) == "v1", expected, "{resources:?}");
        };
        check(&["*"], false);
        check(&["things"], false);
        check(&["things/status"], true);
        check(&["*/status"], true);
        check(&["things/*"], true);
        check(&["*/*"], true);
        check(&["things/scale"], false);
    }

    #[test]
    fn namespaces_are_cluster_scoped() {
        let check = |scope: &str, resource: &str, expected: bool| {
            let rule = json!({"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["*"],
                "scope": scope});
            let request = Request::new(Operation::Create, "", "v1", resource, "ns");
            assert_eq!(matched(&webhook(rule, json!({})), &request) == "v1", expected, "{scope} {resource}");
        };
        check("Cluster", "namespaces", true);
        check("Namespaced", "namespaces", false);
        check("Cluster", "pods", false);
        check("Namespaced", "pods", true);
    }

    #[test]
    fn equivalents_match_if_the_policy_says_so() {
        let rules = |versions: &[&str]| json!({"operations": ["*"], "apiGroups": ["apps"], "apiVersions": versions, "resources": ["things"]});
        let check = |policy: &str, versions: &[&str], expected: &str| {
            let matcher = webhook(rules(versions), json!({"matchPolicy": policy}));
            let request = Request::new(Operation::Create, "apps", "v1", "things", "ns");
            assert_eq!(matched(&matcher, &request), expected, "{policy} {versions:?}");
        };
        check("Exact", &["v2"], "");
        check("Equivalent", &["v2"], "v2");
        check("Equivalent", &["v2", "v1beta1"], "v1beta1");
        check("Equivalent", &["v1", "v2"], "v1");
        check("Equivalent", &["v3"], "");
    }

    #[test]
    fn a_policy_may_exclude_and_name_resources() {
        let rule = |more: Value| {
            let mut rule =
                json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]});
            for (key, value) in more.as_object().unwrap() {
                rule.set(key, value.clone());
            }
            rule
        };
        let check = |constraints: Value, expected: bool| {
            let mut constraints = constraints;
            constraints.set("namespaceSelector", json!({}));
            constraints.set("objectSelector", json!({}));
            let mut request = Request::new(Operation::Create, "apps", "v1", "things", "ns");
            request.name = "a".to_owned();
            let found = matched(&Matcher::of_match_resources(&constraints), &request);
            assert_eq!(found == "v1", expected, "{constraints}");
        };
        check(json!({}), true);
        check(json!({"resourceRules": [rule(json!({"resourceNames": ["a", "b"]}))]}), true);
        check(json!({"resourceRules": [rule(json!({"resourceNames": ["b"]}))]}), false);
        check(json!({"excludeResourceRules": [rule(json!({}))]}), false);
        check(json!({"excludeResourceRules": [rule(json!({"resourceNames": ["b"]}))]}), true);
        let other = rule(json!({"apiVersions": ["v2"]}));
        check(json!({"excludeResourceRules": [other], "matchPolicy": "Exact"}), true);
        check(json!({"excludeResourceRules": [other], "matchPolicy": "Equivalent"}), false);
    }

    #[test]
    fn selectors_select_namespaces_and_objects() {
        let all = json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]});
        let labels = |value: &str| json!({"matchLabels": {"a": value}});
        let mut request = Request::new(Operation::Update, "apps", "v1", "things", "ns");
        request.object = json!({"metadata": {"labels": {"a": "new"}}});
        request.old_object = Some(json!({"metadata": {"labels": {"a": "old"}}}));
        let namespace = json!({"metadata": {"name": "ns", "labels": {"a": "namespace"}}});
        request.objects = Objects::new([("namespaces", namespace)]);
        let check = |request: &Request, more: Value, expected: &str| {
            assert_eq!(matched(&webhook(all.clone(), more.clone()), request), expected, "{more}");
        };
        check(&request, json!({"objectSelector": labels("new")}), "v1");
        check(&request, json!({"objectSelector": labels("old")}), "v1");
        check(&request, json!({"objectSelector": labels("other")}), "");
        check(&request, json!({"namespaceSelector": labels("namespace")}), "v1");
        check(&request, json!({"namespaceSelector": labels("new")}), "");

        request.objects = Objects::default();
        check(&request, json!({"namespaceSelector": labels("x")}), "namespaces \"ns\" not found");
        check(&request, json!({"namespaceSelector": labels("x"), "objectSelector": labels("other")}), "");

        let mut namespace = Request::new(Operation::Create, "", "v1", "namespaces", "ns");
        namespace.object = json!({"metadata": {"name": "ns", "labels": {"a": "own"}}});
        check(&namespace, json!({"namespaceSelector": labels("own")}), "v1");
        check(&namespace, json!({"namespaceSelector": labels("namespace")}), "");

        let cluster_scoped = Request::new(Operation::Create, "", "v1", "nodes", "");
        check(&cluster_scoped, json!({"namespaceSelector": labels("x")}), "v1");

        let mut connection = Request::new(Operation::Connect, "", "v1", "pods", "ns");
        connection.object = json!({"kind": "PodExecOptions"});
        let without = json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]});
        check(&connection, json!({"objectSelector": without}), "");
    }
}
