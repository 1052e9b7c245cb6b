//! Records the day since which the last use of tokens in secrets is tracked
//! (<https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#auto-generated-legacy-serviceaccount-token-clean-up>).

use crate::controller::{Controller, OBJECTS_INTERVAL};
use crate::objects::{core, create_or_change};
use crate::system_namespaces::KUBE_SYSTEM;
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use pintle_machinery::{Status, Value, ValueExt, json};
use pintle_registry::Registry;
use std::time::Duration;

const NAME: &str = "kube-apiserver-legacy-service-account-token-tracking";
const SINCE: &str = "data.since";

/// Maintains the ConfigMap of the day.
pub struct LegacyTokenTracking;

impl Controller for LegacyTokenTracking {
    const NAME: &'static str = "legacy token tracking";
    const INTERVAL: Duration = OBJECTS_INTERVAL;

    async fn reconcile(&self, registry: &dyn Registry) -> Result<(), Status> {
        reconcile(registry, Timestamp::now()).await
    }
}

/// Records the day of the first call. A malformed day is replaced by that of the call.
async fn reconcile(registry: &dyn Registry, now: Timestamp) -> Result<(), Status> {
    // An object with a valid day is not rewritten, not even into another stored form.
    if let Ok(object) = registry.get(&core("configmaps"), KUBE_SYSTEM, NAME).await
        && has_day(&object)
    {
        return Ok(());
    }
    let today = now.to_zoned(TimeZone::UTC).date().to_string();
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": KUBE_SYSTEM},
        "data": {"since": today},
    });
    create_or_change(registry, &core("configmaps"), KUBE_SYSTEM, object, |object| {
        if !has_day(object) {
            object.set(SINCE, today.as_str());
        }
    })
    .await
}

fn has_day(object: &Value) -> bool {
    object.str_at(SINCE).parse::<Date>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_registry::testing::{MemoryRegistry, now};

    #[test]
    fn the_first_day_stays() {
        let registry = MemoryRegistry::default();
        let run = |time: &str| now(reconcile(&registry, time.parse().unwrap())).unwrap();
        let since = |registry: &MemoryRegistry| {
            let object: Value = registry.stored(&core("configmaps"), KUBE_SYSTEM, NAME).unwrap();
            object.str_at(SINCE).to_owned()
        };
        run("2026-11-21T23:59:59Z");
        assert_eq!(since(&registry), "2026-11-21");
        run("2026-11-22T00:00:00Z");
        assert_eq!(since(&registry), "2026-11-21");
    }
}
