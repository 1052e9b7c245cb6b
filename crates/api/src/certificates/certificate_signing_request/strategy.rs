//! The strategies of certificate signing requests: the server sets the requesting user, and approval and issue have
//! subresources.

use super::metrics::{Issued, IssuedCertificateMetrics};
use super::validation::{Part, validate, validate_update};
use crate::rules::keep;
use pintle_machinery::{
    ErrorList, Status, Value, ValueExt, json, meta, validation::validate_path_segment_name,
};
use pintle_registry::{BoxFuture, FinishFn, RequestContext, Strategy};
use std::collections::HashMap;

/// The conditions that only the `approval` subresource sets.
const APPROVALS: [&str; 2] = ["Approved", "Denied"];

/// The strategy of the request itself, which is immutable after creation.
#[derive(Debug, Clone, Copy)]
pub(super) struct CertificateSigningRequestStrategy;

impl Strategy for CertificateSigningRequestStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec", "status"]
    }

    fn prepare_for_create(&self, context: &RequestContext<'_>, object: &mut Value) {
        let user = context.user;
        let known = [
            ("username", json!(user.name), user.name.is_empty()),
            ("uid", json!(user.uid), user.uid.is_empty()),
            ("groups", json!(user.groups), user.groups.is_empty()),
            ("extra", json!(user.extra), user.extra.is_empty()),
        ];
        let spec = object.object_at_mut("spec");
        for (member, value, is_empty) in known {
            match is_empty {
                true => _ = spec.remove(member),
                false => _ = spec.insert(member.to_owned(), value),
            }
        }
        object.remove_at("status");
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
        keep(object, old, "status");
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validate_update(object, old, Part::Main)
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        validate_path_segment_name(name, prefix)
    }
}

/// The strategy of the `status` subresource: the certificate and conditions other than approval.
#[derive(Debug, Clone, Copy)]
pub(super) struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec", "status.conditions"]
    }

    fn begin_update<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        object: &'a mut Value,
        old: &'a Value,
    ) -> BoxFuture<'a, Result<Option<FinishFn>, Status>> {
        let issued = Issued::by(object, old).filter(|_| !context.dry_run);
        let finish = issued.map(|issued| -> FinishFn {
            Box::new(move |stored, _registry| {
                if let Some(metrics) = IssuedCertificateMetrics::of_process().filter(|_| stored) {
                    metrics.issued(&issued);
                }
                Box::pin(std::future::ready(()))
            })
        });
        Box::pin(std::future::ready(Ok(finish)))
    }

    fn prepare_for_update(&self, context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
        for approval in APPROVALS {
            let is_approval = |condition: &&Value| condition.str_at("type") == approval;
            let mut stored = old.items_at("status.conditions").iter().filter(is_approval);
            for condition in object.items_at_mut("status.conditions") {
                if condition.str_at("type") == approval
                    && let Some(stored) = stored.next()
                {
                    *condition = stored.clone();
                }
            }
        }
        set_times(context, object, old);
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validate_update(object, old, Part::Status)
    }
}

/// The strategy of the `approval` subresource: conditions only.
#[derive(Debug, Clone, Copy)]
pub(super) struct ApprovalStrategy;

impl Strategy for ApprovalStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec", "status.certificate"]
    }

    fn prepare_for_update(&self, context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        set_times(context, object, old);
        let conditions = object.remove_at("status.conditions");
        keep(object, old, "spec");
        keep(object, old, "status");
        match conditions {
            Some(conditions) => object.set("status.conditions", conditions),
            None => _ = object.remove_at("status.conditions"),
        }
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validate_update(object, old, Part::Approval)
    }
}

/// Sets missing times of conditions to now; a condition that already had its status keeps its transition time.
fn set_times(context: &RequestContext<'_>, object: &mut Value, old: &Value) {
    let now = meta::format_time(context.now);
    // Of several conditions with the same type and status the first counts.
    let mut held: HashMap<(&str, &str), &str> = HashMap::new();
    for condition in old.items_at("status.conditions") {
        let key = (condition.str_at("type"), condition.str_at("status"));
        held.entry(key).or_insert(condition.str_at("lastTransitionTime"));
    }
    for condition in object.items_at_mut("status.conditions") {
        condition.set_default("lastUpdateTime", now.as_str());
        if condition.at("lastTransitionTime").is_none() {
            let key = (condition.str_at("type"), condition.str_at("status"));
            let since = held.get(&key).copied().filter(|since| !since.is_empty());
            let since = since.unwrap_or(&now).to_owned();
            condition.set("lastTransitionTime", since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_registry::testing::{MemoryRegistry, with_context};

    fn context<T>(test: impl FnOnce(&RequestContext<'_>) -> T) -> T {
        with_context(&MemoryRegistry::default(), "", false, test)
    }

    #[test]
    fn nobody_asks_in_the_name_of_others() {
        let mut request = json!({
            "spec": {"signerName": "s", "username": "admin", "groups": ["system:masters"]},
            "status": {"conditions": [{"type": "Approved"}]},
        });
        context(|context| CertificateSigningRequestStrategy.prepare_for_create(context, &mut request));
        assert_eq!(request, json!({"spec": {"signerName": "s"}}));
    }

    #[test]
    fn approvals_are_written_through_their_own_path_only() {
        let approved = |message: &str| {
            json!({"type": "Approved", "status": "True", "message": message,
                "lastUpdateTime": "2020-01-01T00:00:00Z", "lastTransitionTime": "2020-01-01T00:00:00Z"})
        };
        let old = json!({"spec": {"a": 1}, "status": {"conditions": [approved("old")]}});
        let new = json!({"spec": {"a": 2}, "status": {"certificate": "x", "conditions": [approved("new")]}});
        let mut object = new.clone();
        context(|context| StatusStrategy.prepare_for_update(context, &mut object, &old));
        assert_eq!(
            object,
            json!({"spec": {"a": 1}, "status": {"certificate": "x", "conditions": [approved("old")]}})
        );
        let mut object = new;
        context(|context| ApprovalStrategy.prepare_for_update(context, &mut object, &old));
        assert_eq!(object, json!({"spec": {"a": 1}, "status": {"conditions": [approved("new")]}}));
    }

    #[test]
    fn conditions_get_times() {
        let old = json!({"status": {"conditions": [
            {"type": "Approved", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}});
        let mut object = json!({"status": {"conditions": [
            {"type": "Approved", "status": "True"}, {"type": "Failed", "status": "True"}]}});
        context(|context| set_times(context, &mut object, &old));
        let times: Vec<&str> = object
            .items_at("status.conditions")
            .iter()
            .flat_map(|condition| ["lastTransitionTime", "lastUpdateTime"].map(|time| condition.str_at(time)))
            .collect();
        let now = "1970-01-01T00:00:00Z";
        assert_eq!(times, ["2020-01-01T00:00:00Z", now, now, now]);
    }
}
