//! Evaluates the existing pods of a namespace when its enforced level becomes stricter.

use super::exemptions::Exemptions;
use crate::AdmissionRequest;
use pintle_machinery::{GroupResource, Value, ValueExt, meta::ObjectMeta};
use pintle_pod_security::{LevelVersion, Pod, evaluate};
use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// The maximum of pods that warnings take into account.
const MAX_PODS: usize = 3000;
/// The number of pods that are read and evaluated at once.
const PAGE: usize = 50;

/// The warnings for the client: the pods that violate the level, grouped by their violations.
pub(super) async fn warnings(
    request: &AdmissionRequest<'_>,
    enforce: LevelVersion,
    exemptions: &Exemptions,
    timeout: Duration,
) -> Vec<String> {
    let Some(judged) = judge(request, enforce, exemptions, timeout).await else {
        return vec!["failed to list pods while checking new PodSecurity enforce level".to_owned()];
    };
    let evaluated = judged.first.len() + judged.replicas.len();
    let total = evaluated + judged.others;
    let limit = MAX_PODS.min(evaluated);
    let mut groups: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    for pod in judged.first.iter().chain(&judged.replicas).take(limit) {
        if let Some(reasons) = &pod.reasons {
            let (name, count) = groups.entry(reasons).or_insert((&pod.name, 0));
            *name = (*name).min(&pod.name);
            *count += 1;
        }
    }
    let mut warnings = Vec::new();
    if limit < total {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {limit} of {total} existing pods"
        ));
    }
    if !groups.is_empty() {
        let name = request.object.name();
        warnings.push(format!(
            "existing pods in namespace \"{name}\" violate the new PodSecurity enforce level \"{enforce}\""
        ));
    }
    let mut of_pods: Vec<String> = groups
        .into_iter()
        .map(|(reasons, (name, count))| match count {
            1 => format!("{name}: {reasons}"),
            2 => format!("{name} (and 1 other pod): {reasons}"),
            _ => format!("{name} (and {} other pods): {reasons}", count - 1),
        })
        .collect();
    of_pods.sort_unstable();
    warnings.extend(of_pods);
    warnings
}

/// The pods of a namespace.
#[derive(Default)]
struct JudgedPods {
    /// Pods without a controller, and the first pod of each controller.
    first: Vec<JudgedPod>,
    /// The other pods of controllers, which mostly repeat the first.
    replicas: Vec<JudgedPod>,
    /// The number of pods that were not evaluated in time.
    others: usize,
}

struct JudgedPod {
    name: String,
    /// The rules that the pod violates, if any.
    reasons: Option<String>,
}

/// Evaluates the pods of the namespace within the time limit; `None` when they are not cached. Pods that were created before
/// the request count, unless the cache is behind for all of that time.
async fn judge(
    request: &AdmissionRequest<'_>,
    enforce: LevelVersion,
    exemptions: &Exemptions,
    timeout: Duration,
) -> Option<JudgedPods> {
    let deadline = Instant::now() + timeout;
    let pods = GroupResource::new("", "pods");
    let namespace = request.object.name();
    // A cache that is still behind then is judged as it is.
    let _ = timeout_at(deadline, request.lister.catch_up(&pods)).await;
    let mut judged = JudgedPods::default();
    let mut controllers = HashSet::new();
    let mut after = String::new();
    loop {
        let page = request.lister.page(&pods, namespace, &after, PAGE)?;
        for pod in &page {
            let Some(spec) = Pod::new(pod) else { continue };
            if exemptions.runtime_classes.contains(spec.runtime_class()) {
                continue;
            }
            let violations = evaluate(enforce, &spec);
            let reasons = (!violations.is_empty()).then(|| violations.reasons());
            let own = JudgedPod { name: pod.name().to_owned(), reasons };
            let is_first = controller_of(pod).is_none_or(|uid| controllers.insert(uid.to_owned()));
            if is_first { judged.first.push(own) } else { judged.replicas.push(own) }
        }
        let Some(last) = page.last().filter(|_| page.len() == PAGE) else { return Some(judged) };
        after = last.name().to_owned();
        if Instant::now() >= deadline {
            judged.others = request.lister.count(&pods, namespace, &after)?;
            return Some(judged);
        }
        tokio::task::yield_now().await;
    }
}

/// The uid of the controller that owns a pod.
fn controller_of(pod: &Value) -> Option<&str> {
    let owners = pod.items_at("metadata.ownerReferences");
    owners.iter().find(|owner| owner.bool_at("controller")).map(|owner| owner.str_at("uid"))
}
