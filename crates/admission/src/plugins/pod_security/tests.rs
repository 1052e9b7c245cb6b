use super::*;
use crate::testing::{Objects, admit, warnings_on_update};
use pintle_machinery::json;

fn labels(enforce: &str) -> Value {
    json!({"pod-security.kubernetes.io/enforce": enforce})
}

fn namespace(name: &str, labels: Value) -> Value {
    json!({"kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

fn privileged_pod(name: &str) -> Value {
    let container = json!({"name": "c", "image": "i", "securityContext": {"privileged": true}});
    json!({"metadata": {"name": name, "namespace": "n"}, "spec": {"containers": [container]}})
}

fn update(plugin: &PodSecurity, objects: &Objects, now: Value, old: &Value) -> Result<Value, String> {
    admit(plugin, objects, Operation::Update, "pods", "", now, Some(old))
}

#[test]
fn pods_that_violate_the_enforced_level_are_refused() {
    let plugin = PodSecurity::default();
    let objects = Objects::new([("namespaces", namespace("n", labels("baseline")))]);
    let create = |pod: Value| admit(&plugin, &objects, Operation::Create, "pods", "", pod, None);
    assert_eq!(
        create(privileged_pod("p")).unwrap_err(),
        "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": privileged (container \"c\" must not set \
         securityContext.privileged=true)"
    );
    let plain = json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [{"name": "c"}]}});
    assert!(create(plain).is_ok());
}

#[test]
fn updates_are_judged_when_they_change_images() {
    let plugin = PodSecurity::default();
    let objects = Objects::new([("namespaces", namespace("n", labels("restricted")))]);
    let old = privileged_pod("p");
    let mut labelled = old.clone();
    labelled.set("metadata.labels", json!({"a": "b"}));
    assert!(update(&plugin, &objects, labelled, &old).is_ok());
    let mut other = old.clone();
    other.items_at_mut("spec.containers")[0].set("image", "j");
    assert!(update(&plugin, &objects, other, &old).is_err());
}

#[test]
fn exempt_namespaces_are_not_judged() {
    let exemptions = Exemptions { namespaces: ["n".to_owned()].into(), ..Exemptions::default() };
    let plugin = PodSecurity { exemptions, ..PodSecurity::default() };
    let objects = Objects::new([("namespaces", namespace("n", labels("restricted")))]);
    assert!(admit(&plugin, &objects, Operation::Create, "pods", "", privileged_pod("p"), None).is_ok());
}

#[test]
fn namespaces_need_valid_labels_unless_they_had_invalid_ones() {
    let plugin = PodSecurity::default();
    let objects = Objects::default();
    let invalid = namespace("n", labels("strict"));
    let create = admit(&plugin, &objects, Operation::Create, "namespaces", "", invalid.clone(), None);
    assert_eq!(
        create.unwrap_err(),
        " \"n\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"strict\": must be one \
         of privileged, baseline, restricted"
            .replacen(' ', "Namespace ", 1)
    );
    let relabelled =
        admit(&plugin, &objects, Operation::Update, "namespaces", "", invalid.clone(), Some(&invalid));
    assert!(relabelled.is_ok());
}

/// The warnings when the namespace `n`, which has these pods, begins to enforce the baseline level.
fn warnings(pods: impl IntoIterator<Item = Value>) -> Vec<String> {
    warnings_of(&PodSecurity::default(), pods)
}

fn warnings_of(plugin: &PodSecurity, pods: impl IntoIterator<Item = Value>) -> Vec<String> {
    let objects = Objects::new(pods.into_iter().map(|pod| ("pods", pod)));
    let old = namespace("n", json!({}));
    warnings_on_update(plugin, &objects, "namespaces", namespace("n", labels("baseline")), &old)
}

#[test]
fn existing_pods_are_grouped_by_their_violations() {
    let mut ported = privileged_pod("b");
    ported.items_at_mut("spec.containers")[0].set("ports", json!([{"hostPort": 80}]));
    assert_eq!(
        warnings([privileged_pod("z"), privileged_pod("a"), ported]),
        [
            "existing pods in namespace \"n\" violate the new PodSecurity enforce level \"baseline:latest\"",
            "a (and 1 other pod): privileged",
            "b: hostPort, privileged",
        ]
    );
    assert!(warnings([]).is_empty());
}

#[test]
fn pods_count_that_the_cache_does_not_have_yet() {
    let objects = Objects::new([("pods", privileged_pod("new"))]).behind();
    let old = namespace("n", json!({}));
    let now = namespace("n", labels("baseline"));
    let warnings = warnings_on_update(&PodSecurity::default(), &objects, "namespaces", now, &old);
    assert_eq!(warnings.last().map(String::as_str), Some("new: privileged"));
}

#[test]
fn a_cache_that_never_catches_up_is_awaited_for_a_limited_time() {
    let plugin = PodSecurity { existing_pods_timeout: Duration::from_millis(10), ..PodSecurity::default() };
    let objects = Objects::new([("pods", privileged_pod("old"))]).stuck();
    let old = namespace("n", json!({}));
    let now = namespace("n", labels("baseline"));
    let warnings = warnings_on_update(&plugin, &objects, "namespaces", now, &old);
    assert_eq!(warnings.last().map(String::as_str), Some("old: privileged"));
}

#[test]
fn many_pods_are_read_page_by_page() {
    let pods = (0..3100).map(|number| {
        let mut pod = privileged_pod(&format!("p{number:04}"));
        // The pods of one controller come last, but for the first of them.
        if number < 200 {
            pod.set("metadata.ownerReferences", json!([{"controller": true, "uid": "u"}]));
        }
        pod
    });
    let warnings = warnings(pods);
    let limited = "new PodSecurity enforce level only checked against the first ";
    let checked = warnings[0].strip_prefix(limited).and_then(|rest| rest.split(' ').next()).unwrap();
    // A slow machine evaluates fewer within the time limit.
    assert!(checked.parse::<usize>().unwrap() <= 3000, "{warnings:?}");
    assert!(warnings[0].ends_with(" of 3100 existing pods"), "{warnings:?}");
    assert!(warnings[2].starts_with("p0000 (and "), "{warnings:?}");
}

/// One page is evaluated at least; the rest is counted and not decoded.
#[test]
fn pods_beyond_the_time_limit_are_counted_only() {
    let plugin = PodSecurity { existing_pods_timeout: Duration::ZERO, ..PodSecurity::default() };
    let warnings = warnings_of(&plugin, (0..120).map(|number| privileged_pod(&format!("p{number:04}"))));
    assert_eq!(
        warnings,
        [
            "new PodSecurity enforce level only checked against the first 50 of 120 existing pods",
            "existing pods in namespace \"n\" violate the new PodSecurity enforce level \"baseline:latest\"",
            "p0000 (and 49 other pods): privileged",
        ]
    );
}

#[test]
fn evaluations_and_exemptions_are_counted() {
    let exemptions = Exemptions { namespaces: ["exempt".to_owned()].into(), ..Exemptions::default() };
    let plugin = PodSecurity { exemptions, ..PodSecurity::default() };
    let objects = Objects::new([
        ("namespaces", namespace("n", labels("baseline"))),
        ("namespaces", namespace("m", json!({}))),
    ]);
    for (name, is_allowed) in [("n", false), ("n", false), ("m", true), ("exempt", true), ("gone", false)] {
        let mut pod = privileged_pod("p");
        pod["metadata"]["namespace"] = json!(name);
        let result = admit(&plugin, &objects, Operation::Create, "pods", "", pod, None);
        assert_eq!(result.is_ok(), is_allowed, "{name}");
    }
    let mut counted: Vec<String> = Vec::new();
    for family in plugin.collectors().iter().flat_map(|collector| collector.collect()) {
        for metric in family.get_metric() {
            let labels: Vec<&str> = metric.get_label().iter().map(|label| label.value()).collect();
            counted.push(format!(
                "{} {} {}",
                family.name(),
                labels.join(","),
                metric.get_counter().get_value()
            ));
        }
    }
    counted.sort();
    assert_eq!(
        counted,
        [
            "pod_security_errors_total true,create,pod, 1",
            "pod_security_evaluations_total allow,enforce,privileged,latest,create,pod, 1",
            "pod_security_evaluations_total allow,enforce,privileged,latest,update,pod, 0",
            "pod_security_evaluations_total deny,enforce,baseline,latest,create,pod, 2",
            "pod_security_exemptions_total create,controller, 0",
            "pod_security_exemptions_total create,pod, 1",
            "pod_security_exemptions_total update,controller, 0",
            "pod_security_exemptions_total update,pod, 0",
        ]
    );
}
