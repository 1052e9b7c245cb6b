//! Defaults webhooks, policies and bindings.

use pintle_machinery::{Value, ValueExt, json};

/// Defaults the webhooks of a configuration.
pub(super) fn set_webhook_defaults(configuration: &mut Value) {
    for webhook in configuration.items_at_mut("webhooks") {
        webhook.set_default("failurePolicy", "Fail");
        set_match_defaults(webhook);
        webhook.set_default("timeoutSeconds", 10);
        if let Some(service) = webhook.at_mut("clientConfig.service") {
            service.set_default("port", 443);
        }
        set_rule_defaults(webhook.items_at_mut("rules"));
    }
}

/// Defaults the mutating webhooks of a configuration.
pub(super) fn set_mutating_webhook_defaults(configuration: &mut Value) {
    set_webhook_defaults(configuration);
    for webhook in configuration.items_at_mut("webhooks") {
        webhook.set_default("reinvocationPolicy", "Never");
    }
}

/// Defaults a policy.
pub(super) fn set_policy_defaults(policy: &mut Value) {
    policy.set_default("spec.failurePolicy", "Fail");
    if let Some(constraints) = policy.at_mut("spec.matchConstraints") {
        set_resource_match_defaults(constraints);
    }
}

/// Defaults a policy's binding.
pub(super) fn set_binding_defaults(binding: &mut Value) {
    if let Some(resources) = binding.at_mut("spec.matchResources") {
        set_resource_match_defaults(resources);
    }
}

fn set_resource_match_defaults(resources: &mut Value) {
    set_match_defaults(resources);
    for rules in ["resourceRules", "excludeResourceRules"] {
        set_rule_defaults(resources.items_at_mut(rules));
    }
}

fn set_match_defaults(matcher: &mut Value) {
    matcher.set_default("matchPolicy", "Equivalent");
    matcher.set_default("namespaceSelector", json!({}));
    matcher.set_default("objectSelector", json!({}));
}

fn set_rule_defaults(rules: &mut [Value]) {
    for rule in rules {
        rule.set_default("scope", "*");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhooks_get_what_they_do_not_say() {
        let mut configuration = json!({"webhooks": [{
            "clientConfig": {"service": {"name": "s"}}, "timeoutSeconds": 3, "rules": [{"scope": "Cluster"}, {}],
        }]});
        set_mutating_webhook_defaults(&mut configuration);
        assert_eq!(
            configuration,
            json!({"webhooks": [{
                "clientConfig": {"service": {"name": "s", "port": 443}},
                "failurePolicy": "Fail",
                "matchPolicy": "Equivalent",
                "namespaceSelector": {},
                "objectSelector": {},
                "reinvocationPolicy": "Never",
                "rules": [{"scope": "Cluster"}, {"scope": "*"}],
                "timeoutSeconds": 3,
            }]})
        );
    }
}
