//! `PodNodeSelector`: adds the node selector of the namespace to its pods, and limits the node selectors of pods
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#podnodeselector>).

use crate::{AdmissionPlugin, AdmissionRequest, Operation, PluginSettings, Steps};
use pintle_machinery::{
    FieldError, FieldPath, GroupResource, Map, Status, Text, Value, ValueExt,
    codec::{json, yaml},
    validation::{is_qualified_name, is_valid_label_value},
};
use pintle_registry::BoxFuture;
use std::collections::BTreeMap;

/// The annotation of a namespace with its node selector.
const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";
/// The name of the selector of namespaces without the annotation, in the configuration.
const CLUSTER_DEFAULT: &str = "clusterDefaultNodeSelector";

/// The plugin.
#[derive(Debug)]
pub struct PodNodeSelector {
    /// By namespace, the labels that selectors of its pods may have; under [`CLUSTER_DEFAULT`], the default selector.
    selectors: BTreeMap<String, String>,
    namespaces: GroupResource,
}

type Labels = BTreeMap<String, String>;

impl PodNodeSelector {
    /// Creates the plugin. An unreadable configuration is an empty one, as in kube-apiserver.
    pub fn new(settings: &PluginSettings<'_>) -> PodNodeSelector {
        let tree = settings.configuration.and_then(|text| {
            let converted = yaml::to_json(text).ok()?;
            json::decode_any(&converted.json).ok()
        });
        let selectors = tree.iter().flat_map(|tree| tree.map_at("podNodeSelectorPluginConfig"));
        let selectors =
            selectors.filter_map(|(name, selector)| Some((name.to_string(), selector.as_str()?.to_owned())));
        PodNodeSelector { selectors: selectors.collect(), namespaces: GroupResource::new("", "namespaces") }
    }

    fn configured(&self, name: &str) -> Result<Labels, Status> {
        labels(self.selectors.get(name).map_or("", String::as_str))
    }

    /// The node selector of the request's namespace.
    async fn of_namespace(&self, request: &AdmissionRequest<'_>) -> Result<Labels, Status> {
        let namespace = request
            .get(&self.namespaces, "", request.namespace)
            .await
            .map_err(|_| Status::internal_error(format!("namespace {} does not exist", request.namespace)))?;
        match namespace.at("metadata.annotations").and_then(|annotations| annotations.get(ANNOTATION)) {
            Some(selector) => labels(selector.as_str().unwrap_or_default()),
            None => self.configured(CLUSTER_DEFAULT),
        }
    }

    /// Refuses a selector that contradicts that of the namespace, or that has labels the namespace may not use.
    fn check(&self, request: &AdmissionRequest<'_>, of_namespace: &Labels) -> Result<(), Status> {
        let own = request.object.map_at("spec.nodeSelector");
        let refused = |why: &str| {
            Err(Status::forbidden(
                &request.resource.group_resource(),
                request.object.str_at("metadata.name"),
                why,
            ))
        };
        if conflicts(of_namespace, own) {
            return refused("pod node label selector conflicts with its namespace node label selector");
        }
        let allowed = self.configured(request.namespace)?;
        let is_allowed = |(key, value): (&Text, &Value)| {
            allowed.get(key.as_str()).is_some_and(|allowed| value.as_str() == Some(allowed))
        };
        if !allowed.is_empty() && !own.iter().all(is_allowed) {
            return refused("pod node label selector labels conflict with its namespace whitelist");
        }
        Ok(())
    }
}

impl AdmissionPlugin for PodNodeSelector {
    fn name(&self) -> &'static str {
        "PodNodeSelector"
    }

    fn steps(&self) -> Steps {
        Steps::Both
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        request.operation == Operation::Create && request.is_for("", "pods")
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let of_namespace = self.of_namespace(request).await?;
            if !of_namespace.is_empty()
                && !conflicts(&of_namespace, request.object.map_at("spec.nodeSelector"))
            {
                let mut merged: Map =
                    of_namespace.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
                merged.extend(request.object.map_at("spec.nodeSelector").clone());
                request.object.to_mut().set("spec.nodeSelector", merged);
            }
            self.check(request, &of_namespace)
        })
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let of_namespace = self.of_namespace(request).await?;
            self.check(request, &of_namespace)
        })
    }
}

/// Whether the two sets have different values for a label.
fn conflicts(one: &Labels, other: &Map) -> bool {
    one.iter().any(|(key, value)| other.get(key).is_some_and(|other| other.as_str() != Some(value)))
}

/// Reads `key=value,key=value`.
fn labels(text: &str) -> Result<Labels, Status> {
    let mut labels = Labels::new();
    if text.is_empty() {
        return Ok(labels);
    }
    for label in text.split(',') {
        let parts: Vec<&str> = label.split('=').collect();
        let [key, value] = parts.as_slice() else {
            return Err(Status::unknown(format!("invalid selector: [{}]", parts.join(" "))));
        };
        let (key, value) = (key.trim(), value.trim());
        check_part("<nil>", key, &is_qualified_name(key))?;
        check_part(&format!("[{key}]"), value, &is_valid_label_value(value))?;
        labels.insert(key.to_owned(), value.to_owned());
    }
    Ok(labels)
}

fn check_part(path: &str, text: &str, errors: &[String]) -> Result<(), Status> {
    match errors.is_empty() {
        true => Ok(()),
        false => {
            let error = FieldError::invalid(&FieldPath::new(""), text, errors.join("; "));
            Err(Status::unknown(format!("{path}: {}", error.body())))
        }
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

    fn create(configuration: &str, annotation: Value, selector: Value) -> Result<Value, String> {
        let flags = PluginFlags::default();
        let settings = PluginSettings { configuration: Some(configuration.as_bytes()), flags: &flags };
        let mut namespace = json!({"metadata": {"name": "n"}});
        if !annotation.is_null() {
            namespace["metadata"]["annotations"] = json!({(ANNOTATION): annotation});
        }
        let pod = json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {"nodeSelector": selector}});
        let objects = Objects::new([("namespaces", namespace)]);
        let plugin = PodNodeSelector::new(&settings);
        let pod = admit(&plugin, &objects, Operation::Create, "pods", "", pod, None)?;
        Ok(pod.at("spec.nodeSelector").cloned().unwrap_or_default())
    }

    #[test]
    fn the_selector_of_the_namespace_is_added() {
        let configuration = "podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: pool=default}";
        let check = |annotation: Value, own: Value, expected: Value| {
            assert_eq!(create(configuration, annotation, own), Ok(expected));
        };
        check(Value::Null, Value::Null, json!({"pool": "default"}));
        check(json!("env = test, zone=a"), json!({"b": "c"}), json!({"b": "c", "env": "test", "zone": "a"}));
        check(json!(""), Value::Null, Value::Null);
        let conflict = "pods \"p\" is forbidden: pod node label selector conflicts with its namespace node label selector";
        assert_eq!(create(configuration, Value::Null, json!({"pool": "x"})).unwrap_err(), conflict);
    }

    #[test]
    fn the_labels_of_a_namespace_may_be_limited() {
        let configuration = "{\"podNodeSelectorPluginConfig\": {\"n\": \"env=test,zone=a\", \"m\": 5}}";
        assert!(create(configuration, Value::Null, json!({"env": "test"})).is_ok());
        let refused =
            "pods \"p\" is forbidden: pod node label selector labels conflict with its namespace whitelist";
        for own in [json!({"env": "prod"}), json!({"other": "a"})] {
            assert_eq!(create(configuration, Value::Null, own).unwrap_err(), refused);
        }
        assert_eq!(create(configuration, json!("other=b"), Value::Null).unwrap_err(), refused);
    }

    #[test]
    fn malformed_selectors_are_errors() {
        for (selector, expected) in [
            ("not a selector", "invalid selector: [not a selector]"),
            ("a=b=c", "invalid selector: [a b c]"),
            ("a=b,", "invalid selector: []"),
        ] {
            assert_eq!(create("", json!(selector), Value::Null).unwrap_err(), expected);
        }
        let error = create("", json!("a b=c"), Value::Null).unwrap_err();
        assert!(error.starts_with("<nil>: Invalid value: \"a b\": name part must consist of"), "{error}");
        let error = create("", json!("a=b c"), Value::Null).unwrap_err();
        assert!(error.starts_with("[a]: Invalid value: \"b c\": "), "{error}");
    }
}
