//! `PodTolerationRestriction`: merges the tolerations of a pod with the defaults of its namespace, and limits them
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#podtolerationrestriction>).

mod configuration;

use super::tolerations::{self, Toleration};
use crate::{AdmissionPlugin, AdmissionRequest, Operation, PluginError, PluginSettings, Steps};
use configuration::Configuration;
use pintle_machinery::{
    GroupResource, Quantity, Status, Value, ValueExt, codec::json, meta::ObjectMeta, text::go_json_type,
};
use pintle_registry::BoxFuture;

/// The annotations of a namespace: the tolerations that its pods get, and those that its pods may have.
const DEFAULTS: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
const ALLOWED: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";
/// The taint of nodes that are short of memory. Only best-effort pods stay away from them.
const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";
/// The largest number of tolerations in an annotation that is used.
const MAX_TOLERATIONS: usize = 1000;

/// The plugin.
#[derive(Debug)]
pub struct PodTolerationRestriction {
    /// The tolerations of namespaces without annotations.
    cluster: Configuration,
    namespaces: GroupResource,
}

impl PodTolerationRestriction {
    /// Creates the plugin.
    ///
    /// # Errors
    /// When the configuration is malformed.
    pub fn new(settings: &PluginSettings<'_>) -> Result<PodTolerationRestriction, PluginError> {
        let cluster = configuration::read(settings.configuration).map_err(PluginError::Configuration)?;
        Ok(PodTolerationRestriction { cluster, namespaces: GroupResource::new("", "namespaces") })
    }

    /// The tolerations in an annotation of the namespace; `None` without the annotation.
    async fn of_namespace(
        &self,
        request: &AdmissionRequest<'_>,
        annotation: &str,
    ) -> Result<Option<Vec<Toleration>>, Status> {
        let namespace = request.get(&self.namespaces, "", request.namespace).await?;
        let Some(text) = namespace.annotation(annotation) else { return Ok(None) };
        if text.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let malformed = |why: String| Status::unknown(why);
        let tree = json::decode_any(text.as_bytes()).map_err(|error| malformed(error.to_string()))?;
        match &tree {
            Value::Null => Ok(Some(Vec::new())),
            Value::Array(items) if items.len() <= MAX_TOLERATIONS => {
                let items: Vec<Value> = items.iter().map(with_field_names).collect();
                match items.iter().find_map(type_error) {
                    Some(why) => Err(malformed(why)),
                    None => Ok(Some(items.iter().map(Toleration::of).collect())),
                }
            }
            Value::Array(items) => Err(malformed(format!(
                "annotation {annotation} has {} tolerations, more than {MAX_TOLERATIONS}",
                items.len()
            ))),
            other => Err(malformed(format!(
                "json: cannot unmarshal {} into Go value of type []v1.Toleration",
                go_json_type(other)
            ))),
        }
    }

    async fn check(&self, request: &AdmissionRequest<'_>) -> Result<(), Status> {
        let own = tolerations::of_pod(&request.object);
        if own.is_empty() {
            return Ok(());
        }
        let of_namespace = self.of_namespace(request, ALLOWED).await?;
        let (allowed, scope) = match &of_namespace {
            Some(allowed) => (allowed, "namespace"),
            None => (&self.cluster.allowed, "cluster"),
        };
        match tolerations::are_allowed(&own, allowed) {
            true => Ok(()),
            false => Err(Status::unknown(format!(
                "pod tolerations (possibly merged with namespace default tolerations) conflict with its {scope} whitelist"
            ))),
        }
    }
}

impl AdmissionPlugin for PodTolerationRestriction {
    fn name(&self) -> &'static str {
        "PodTolerationRestriction"
    }

    fn steps(&self) -> Steps {
        Steps::Both
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        matches!(request.operation, Operation::Create | Operation::Update) && request.is_for("", "pods")
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let mut further = Vec::new();
            if request.operation == Operation::Create {
                let of_namespace = self.of_namespace(request, DEFAULTS).await?;
                further = of_namespace.unwrap_or_else(|| self.cluster.defaults.clone());
            }
            if !is_best_effort(&request.object) {
                further.push(Toleration::exists(MEMORY_PRESSURE, "NoSchedule"));
            }
            if !further.is_empty() {
                let merged = tolerations::merge(&tolerations::of_pod(&request.object), &further);
                tolerations::set(request.object.to_mut(), &merged);
            }
            self.check(request).await
        })
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.check(request))
    }
}

/// The fields of a toleration, with their types in Go.
const FIELDS: [(&str, &str); 5] = [
    ("key", "string"),
    ("operator", "v1.TolerationOperator"),
    ("value", "string"),
    ("effect", "v1.TaintEffect"),
    ("tolerationSeconds", "int64"),
];

/// A toleration by the names of its fields, which Go's decoder finds in any case.
fn with_field_names(item: &Value) -> Value {
    let Value::Object(members) = item else { return item.clone() };
    let named = members.iter().map(|(key, value)| {
        let field = FIELDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(key));
        (field.map_or(key.to_string(), |(name, _)| (*name).to_owned()), value.clone())
    });
    Value::Object(named.collect())
}

/// The error of Go for a value that is no toleration.
fn type_error(item: &Value) -> Option<String> {
    let members = match item {
        Value::Null => return None,
        Value::Object(members) => members,
        other => {
            let found = go_json_type(other);
            return Some(format!("json: cannot unmarshal {found} into Go value of type v1.Toleration"));
        }
    };
    FIELDS.into_iter().find_map(|(name, go_type)| {
        let value = members.get(name).filter(|value| !value.is_null())?;
        let found = match (go_type, value) {
            ("int64", Value::Number(number)) if number.as_i64().is_some() => return None,
            ("int64", Value::Number(number)) => format!("number {number}"),
            ("int64", other) => go_json_type(other).to_owned(),
            (_, Value::String(_)) => return None,
            (_, other) => go_json_type(other).to_owned(),
        };
        Some(format!(
            "json: cannot unmarshal {found} into Go struct field Toleration.{name} of type {go_type}"
        ))
    })
}

/// Whether the pod is of the QoS class `BestEffort`: nothing of it requests CPU or memory. A new pod does not have its
/// class yet (<https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/>).
fn is_best_effort(pod: &Value) -> bool {
    match pod.str_at("status.qosClass") {
        "" => {}
        class => return class == "BestEffort",
    }
    let requests_something = |holder: &Value| {
        ["resources.requests", "resources.limits"].into_iter().any(|list| {
            let list = holder.map_at(list);
            ["cpu", "memory"].into_iter().any(|name| {
                list.get(name)
                    .and_then(|amount| Quantity::from_tree(amount).ok())
                    .is_some_and(|own| own.sign() > 0)
            })
        })
    };
    match pod.at("spec").filter(|spec| spec.at("resources").is_some()) {
        Some(spec) => !requests_something(spec),
        None => {
            let lists = ["spec.containers", "spec.initContainers"];
            !lists.into_iter().flat_map(|path| pod.items_at(path)).any(requests_something)
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

    const CONFIGURATION: &str = "apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1\nkind: Configuration\ndefault: [{key: d, operator: Exists}]\nwhitelist: [{key: d, operator: Exists}, {key: a, operator: Exists}]\n";

    fn run(operation: Operation, annotations: Value, spec: Value) -> Result<Value, String> {
        let flags = PluginFlags::default();
        let settings = PluginSettings { configuration: Some(CONFIGURATION.as_bytes()), flags: &flags };
        let plugin = PodTolerationRestriction::new(&settings).unwrap();
        let namespace = json!({"metadata": {"name": "n", "annotations": annotations}});
        let objects = Objects::new([("namespaces", namespace)]);
        let pod = json!({"metadata": {"name": "p", "namespace": "n"}, "spec": spec});
        let old = pod.clone();
        let old = (operation == Operation::Update).then_some(&old);
        let pod = admit(&plugin, &objects, operation, "pods", "", pod, old)?;
        Ok(pod.at("spec.tolerations").cloned().unwrap_or_default())
    }

    #[test]
    fn pods_get_the_tolerations_of_the_namespace_or_the_cluster() {
        let create = |annotations, spec| run(Operation::Create, annotations, spec);
        let default = json!({"key": "d", "operator": "Exists"});
        assert_eq!(create(json!({}), json!({})), Ok(json!([default])));
        assert_eq!(create(json!({(DEFAULTS): ""}), json!({})), Ok(Value::Null));
        let own = json!({(DEFAULTS): "[{\"key\": \"a\", \"value\": \"b\"}]"});
        let cluster = "pod tolerations (possibly merged with namespace default tolerations) conflict with its cluster whitelist";
        assert_eq!(create(own, json!({})), Ok(json!([{"key": "a", "value": "b"}])));
        let capital = json!({(DEFAULTS): "[{\"Key\": \"a\", \"OPERATOR\": \"Exists\"}]"});
        assert_eq!(create(capital, json!({})), Ok(json!([{"key": "a", "operator": "Exists"}])));
        assert_eq!(create(json!({}), json!({"tolerations": [{"key": "x"}]})).unwrap_err(), cluster);
        let namespace = json!({(ALLOWED): "[{\"key\": \"x\", \"operator\": \"Exists\"}]", (DEFAULTS): ""});
        assert!(create(namespace.clone(), json!({"tolerations": [{"key": "x"}]})).is_ok());
        let refused = create(namespace, json!({"tolerations": [{"key": "a"}]})).unwrap_err();
        assert_eq!(refused, cluster.replace("cluster", "namespace"));
        assert!(create(json!({(ALLOWED): ""}), json!({"tolerations": [{"key": "x"}]})).is_ok());
    }

    #[test]
    fn an_annotation_without_tolerations_is_an_error_of_its_type() {
        let check = |annotation: &str, expected: &str| {
            let found = run(Operation::Create, json!({(DEFAULTS): annotation}), json!({}));
            assert_eq!(found.unwrap_err(), format!("json: cannot unmarshal {expected}"), "{annotation}");
        };
        check("{}", "object into Go value of type []v1.Toleration");
        check("[\"x\"]", "string into Go value of type v1.Toleration");
        check("[{\"key\": 5}]", "number into Go struct field Toleration.key of type string");
        let seconds = "Go struct field Toleration.tolerationSeconds of type int64";
        check("[{\"tolerationSeconds\": 1.5}]", &format!("number 1.5 into {seconds}"));
        check("[{\"tolerationSeconds\": \"1\"}]", &format!("string into {seconds}"));
    }

    #[test]
    fn pods_that_request_something_tolerate_memory_pressure() {
        let annotations = json!({(ALLOWED): ""});
        let container = json!({"resources": {"limits": {"memory": "1Mi"}}});
        let pressure = json!({"key": MEMORY_PRESSURE, "operator": "Exists", "effect": "NoSchedule"});
        let spec = json!({"containers": [container]});
        assert_eq!(run(Operation::Update, annotations.clone(), spec), Ok(json!([pressure])));
        let spec = json!({"containers": [{"resources": {"limits": {"x/y": 1, "memory": 0}}}]});
        assert_eq!(run(Operation::Update, annotations, spec), Ok(Value::Null));
    }

    #[test]
    fn malformed_annotations_are_errors() {
        let error = |text: &str| run(Operation::Create, json!({(DEFAULTS): text}), json!({})).unwrap_err();
        assert_eq!(error("{}"), "json: cannot unmarshal object into Go value of type []v1.Toleration");
        assert!(!error("[").is_empty());
        let many = format!("[{}]", vec!["{}"; MAX_TOLERATIONS + 1].join(","));
        assert!(error(&many).ends_with("has 1001 tolerations, more than 1000"));
    }
}
