//! `EventRateLimit`: limits the rate of events by server, namespace, user, or source and object
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#eventratelimit>).

mod configuration;
mod rate_limiters;

use crate::{AdmissionPlugin, AdmissionRequest, Operation, PluginError, PluginSettings, Steps};
use configuration::LimitType;
use pintle_machinery::{Status, StatusReason, ValueExt, status::aggregate};
use pintle_registry::BoxFuture;
use rate_limiters::RateLimiters;
use std::future::ready;

/// The plugin.
pub struct EventRateLimit {
    limits: Vec<(LimitType, RateLimiters)>,
}

impl EventRateLimit {
    /// Creates the plugin.
    ///
    /// # Errors
    /// When the configuration is absent, malformed or has no limits.
    pub fn new(settings: &PluginSettings<'_>) -> Result<EventRateLimit, PluginError> {
        let limits = configuration::read(settings.configuration).map_err(PluginError::Configuration)?;
        let limiters = limits.into_iter().map(|limit| {
            (limit.limit_type, RateLimiters::new(limit.queries_per_second, limit.burst, limit.cache_size))
        });
        Ok(EventRateLimit { limits: limiters.collect() })
    }
}

impl AdmissionPlugin for EventRateLimit {
    fn name(&self) -> &'static str {
        "EventRateLimit"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    /// Dry runs do not reach the store. Events of the group `events.k8s.io` are not limited, as in kube-apiserver.
    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        matches!(request.operation, Operation::Create | Operation::Update)
            && request.is_of("", "events")
            && !request.context.dry_run
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        let mut refused = Vec::new();
        // Every limit counts the event, even one that another limit refuses.
        for (limit_type, limiters) in &self.limits {
            let key = key(*limit_type, request);
            if !limiters.try_accept(&key, request.context.now) {
                refused.push(format!("limit reached on type {} for key {key}", limit_type.as_str()));
            }
        }
        Box::pin(ready(match refused.is_empty() {
            true => Ok(()),
            false => {
                let why = format!("Too many requests: {}", aggregate(refused.into_iter()));
                Err(Status::failure(429, StatusReason::TooManyRequests, why))
            }
        }))
    }
}

/// The events with the same key share a limit.
fn key(limit_type: LimitType, request: &AdmissionRequest<'_>) -> String {
    match limit_type {
        LimitType::Server => String::new(),
        LimitType::Namespace => request.namespace.to_owned(),
        LimitType::User => request.context.user.name.clone(),
        LimitType::SourceAndObject => [
            "source.component",
            "source.host",
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
        ]
        .into_iter()
        .map(|path| request.object.str_at(path))
        .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        PluginFlags,
        testing::{Objects, admit},
    };
    use pintle_machinery::json;

    #[test]
    fn every_limit_counts_every_event() {
        let flags = PluginFlags::default();
        let text = br#"{"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration", "limits": [
            {"type": "Server", "qps": 1, "burst": 2}, {"type": "SourceAndObject", "qps": 1, "burst": 1}]}"#;
        let settings = PluginSettings { configuration: Some(text), flags: &flags };
        let plugin = EventRateLimit::new(&settings).unwrap();
        let create = |object: &str| {
            let event = json!({"metadata": {"name": "e", "namespace": "n"}, "source": {"component": "c"},
                "involvedObject": {"kind": "Pod", "name": object}});
            let operation = Operation::Create;
            admit(&plugin, &Objects::default(), operation, "events", "", event, None).map(drop)
        };
        assert_eq!(create("a"), Ok(()));
        let refused = "Too many requests: limit reached on type SourceAndObject for key cPoda";
        assert_eq!(create("a").unwrap_err(), refused);
        let refused = "Too many requests: limit reached on type Server for key ";
        assert_eq!(create("b").unwrap_err(), refused);
        let refused = "Too many requests: [limit reached on type Server for key , limit reached on type SourceAndObject for key \
                       cPodb]";
        assert_eq!(create("b").unwrap_err(), refused);
    }
}
