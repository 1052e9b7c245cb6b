//! `DefaultTolerationSeconds`: lets pods tolerate a node that is not ready or unreachable for five minutes
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#defaulttolerationseconds>).

use super::pods::push;
use crate::{AdmissionPlugin, AdmissionRequest, Operation, PluginFlags, Steps};
use pintle_machinery::{Status, ValueExt, json};
use pintle_registry::BoxFuture;
use std::future::ready;

const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// The plugin.
#[derive(Debug, Clone, Copy)]
pub struct DefaultTolerationSeconds {
    /// The toleration seconds of the two taints.
    seconds: [i64; 2],
}

impl DefaultTolerationSeconds {
    /// Creates the plugin.
    pub fn new(flags: &PluginFlags) -> DefaultTolerationSeconds {
        DefaultTolerationSeconds {
            seconds: [
                flags.default_not_ready_toleration_seconds,
                flags.default_unreachable_toleration_seconds,
            ],
        }
    }
}

impl AdmissionPlugin for DefaultTolerationSeconds {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
    }

    fn steps(&self) -> Steps {
        Steps::Admit
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        matches!(request.operation, Operation::Create | Operation::Update) && request.is_for("", "pods")
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        let pod = request.object.to_mut();
        let tolerated = TAINTS.map(|taint| {
            pod.items_at("spec.tolerations").iter().any(|toleration| {
                matches!(toleration.str_at("effect"), "" | "NoExecute")
                    && (toleration.str_at("key").is_empty() || toleration.str_at("key") == taint)
            })
        });
        for ((taint, seconds), tolerated) in TAINTS.into_iter().zip(self.seconds).zip(tolerated) {
            if !tolerated {
                let toleration = json!({
                    "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds,
                });
                push(pod, "spec.tolerations", toleration);
            }
        }
        Box::pin(ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::Value;

    #[test]
    fn taints_that_are_not_tolerated_yet_are() {
        let check = |tolerations: Value, added: [bool; 2]| {
            let pod = json!({"metadata": {"name": "p"}, "spec": {"tolerations": tolerations}});
            let flags = PluginFlags { default_not_ready_toleration_seconds: 60, ..PluginFlags::default() };
            let plugin = DefaultTolerationSeconds::new(&flags);
            let pod = admit(&plugin, &Objects::default(), Operation::Create, "pods", "", pod, None).unwrap();
            let tolerations = pod.items_at("spec.tolerations");
            let found = [(TAINTS[0], 60), (TAINTS[1], 300)].map(|(taint, seconds)| {
                tolerations.iter().any(|toleration| {
                    toleration.str_at("key") == taint
                        && toleration.i64_at("tolerationSeconds") == Some(seconds)
                })
            });
            assert_eq!(found, added);
        };
        check(Value::Null, [true, true]);
        check(json!([{"key": TAINTS[0], "effect": "NoExecute", "tolerationSeconds": 10}]), [false, true]);
        check(json!([{"key": TAINTS[1], "effect": "NoSchedule"}]), [true, true]);
        check(json!([{"operator": "Exists"}]), [false, false]);
    }
}
