//! Lists the kinds that a server serves, and builds a valid object of each.

use pintle_harness::{Client, Error};
use serde_json::{Value, json};

/// A resource or subresource with a kind that clients write.
#[derive(Debug, Clone)]
pub struct Served {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind of the body.
    pub kind: String,
    /// Resource with subresource, such as `pods/status`.
    pub resource: String,
    /// Whether the resource is namespaced.
    pub namespaced: bool,
    /// Verbs.
    pub verbs: Vec<String>,
}

impl Served {
    /// Whether the resource has a verb.
    pub fn has(&self, verb: &str) -> bool {
        self.verbs.iter().any(|own| own == verb)
    }

    /// `apps/v1`, or `v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The path of the collection, of an object, or of a subresource.
    pub fn path(&self, name: &str) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let namespace = if self.namespaced { "/namespaces/default" } else { "" };
        let (resource, part) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        let mut path = format!("{root}/{}{namespace}/{resource}", self.api_version());
        for more in [name, part] {
            if !more.is_empty() {
                path = format!("{path}/{more}");
            }
        }
        path
    }
}

/// All resources of a server's discovery.
///
/// # Errors
/// When discovery cannot be read.
pub fn served(client: &Client) -> Result<Vec<Served>, Error> {
    let mut paths = vec![("/api/v1".to_owned(), String::new(), "v1".to_owned())];
    let groups = client.get("/apis")?.json()?;
    for group in members(&groups, "groups") {
        for version in members(group, "versions") {
            let path = format!("/apis/{}", text(version, "groupVersion"));
            paths.push((path, text(group, "name"), text(version, "version")));
        }
    }
    let mut all = Vec::new();
    for (path, group, version) in paths {
        let list = client.get(&path)?.json()?;
        for resource in members(&list, "resources") {
            let own = |name: &str, default: &str| match text(resource, name) {
                own if own.is_empty() => default.to_owned(),
                own => own,
            };
            all.push(Served {
                group: own("group", &group),
                version: own("version", &version),
                kind: own("kind", ""),
                resource: own("name", ""),
                namespaced: resource.get("namespaced") == Some(&json!(true)),
                verbs: members(resource, "verbs").filter_map(Value::as_str).map(str::to_owned).collect(),
            });
        }
    }
    Ok(all)
}

fn members<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn text(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A certificate signing request (PKCS#10, in PEM) for the common name `a`, as base64.
const SIGNING_REQUEST: &str = "\
    LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIR01HNENBUUF3RERFS01BZ0dBMVVFQXd3QllUQlpNQk1HQnlx\
    R1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCRmZXdi9xc3gyVlduVGFGV2t2bkg2VnJEMHh3eHB1L2IyL0ZDUTBjc2FzOVUvOWI3\
    clpBM29za0RhU211cStZCjV3VzQwWWYyTnFGd2VjL0tDMEFueGQ2Z0FEQUtCZ2dxaGtqT1BRUURBZ05JQURCRkFpRUF0TCtNZkFv\
    K3MvcTQKQWJqcnNGQjg5akU4bnRNeDlQdlBSSjNBTFhjYUpFY0NJQ1lEVXA5dFZGbkZ2dGp2T2w2YlFTWjdCY1RBS2l1cQoyejJw\
    bEJ1Q2xLVTAKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

/// A small valid object of a kind; without a spec for kinds that need none.
pub fn base_object(api_version: &str, kind: &str, name: &str) -> Value {
    let labels = json!({"app": "a"});
    let selector = json!({"matchLabels": labels});
    let pod = json!({"containers": [{"name": "c", "image": "i"}]});
    let job_pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]});
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}});
    let webhook = json!([{
        "name": "a.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Ignore",
        "clientConfig": {"url": "https://127.0.0.1:1/"}, "rules": [],
    }]);
    let backend = json!({"service": {"name": "s", "port": {"number": 1}}});
    let match_all = json!({"resourceRules": [{
        "apiGroups": ["a.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}]});
    let binding = json!({"policyName": "p", "validationActions": ["Warn"]});
    let role_ref = |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"});
    let review = json!({"resourceAttributes": {"verb": "get", "resource": "pods"}});
    let fields = match kind {
        "Pod" => json!({"spec": pod}),
        "PodTemplate" => json!({"template": template}),
        "ReplicationController" => json!({"spec": {"selector": labels, "template": template}}),
        "Deployment" | "ReplicaSet" | "DaemonSet" => {
            json!({"spec": {"selector": selector, "template": template}})
        }
        "StatefulSet" => json!({"spec": {"serviceName": "s", "selector": selector, "template": template}}),
        "ControllerRevision" => json!({"revision": 1, "data": {"a": 1}}),
        "Job" => json!({"spec": {"template": {"spec": job_pod}}}),
        "CronJob" => {
            json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": job_pod}}}}})
        }
        "Service" => json!({"spec": {"ports": [{"port": 1}]}}),
        "PersistentVolume" => json!({"spec": {
            "capacity": {"storage": "1"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}}),
        "PersistentVolumeClaim" => json!({"spec": claim}),
        "Event" if api_version == "v1" => {
            json!({"involvedObject": {"namespace": "default", "name": "a", "kind": "Pod"}})
        }
        "Event" => json!({
            "regarding": {"namespace": "default", "name": "a", "kind": "Pod"}, "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "a.example.com/c", "reportingInstance": "i", "action": "a", "reason": "r",
            "type": "Normal"}),
        "EndpointSlice" => json!({"addressType": "IPv4", "endpoints": []}),
        "Ingress" => json!({"spec": {"defaultBackend": backend}}),
        "IngressClass" => json!({"spec": {"controller": "example.com/c"}}),
        "NetworkPolicy" => json!({"spec": {"podSelector": {}}}),
        "ServiceCIDR" => json!({"spec": {"cidrs": ["10.99.0.0/24"]}}),
        "IPAddress" => {
            json!({"spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "s"}}})
        }
        "HorizontalPodAutoscaler" => json!({"spec": {
            "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}}),
        "CertificateSigningRequest" => {
            json!({"spec": {
            "signerName": "example.com/s", "usages": ["client auth"], "request": SIGNING_REQUEST}})
        }
        "ClusterTrustBundle" => json!({"spec": {}}),
        "FlowSchema" => json!({"spec": {"priorityLevelConfiguration": {"name": "catch-all"}}}),
        "PriorityLevelConfiguration" => json!({"spec": {
            "type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}),
        "RuntimeClass" => json!({"handler": "h"}),
        "PriorityClass" => json!({"value": 1}),
        "RoleBinding" => json!({"roleRef": role_ref("Role")}),
        "ClusterRoleBinding" => json!({"roleRef": role_ref("ClusterRole")}),
        "StorageClass" => json!({"provisioner": "example.com/p"}),
        "CSINode" => json!({"spec": {"drivers": []}}),
        "VolumeAttachment" => json!({"spec": {
            "attacher": "a.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}),
        "VolumeAttributesClass" => json!({"driverName": "example.com", "parameters": {"a": "b"}}),
        "CSIStorageCapacity" => json!({"storageClassName": "s"}),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => json!({"webhooks": webhook}),
        "ValidatingAdmissionPolicy" => {
            json!({"spec": {"matchConstraints": match_all, "validations": [{"expression": "true"}]}})
        }
        "ValidatingAdmissionPolicyBinding" => json!({"spec": binding}),
        "MutatingAdmissionPolicyBinding" => json!({"spec": {"policyName": "p"}}),
        "MutatingAdmissionPolicy" => json!({"spec": {
            "matchConstraints": match_all, "reinvocationPolicy": "Never", "failurePolicy": "Ignore",
            "mutations": [{"patchType": "ApplyConfiguration",
                "applyConfiguration": {"expression": "Object{}"}}]}}),
        "ResourceSlice" => json!({"spec": {
            "driver": "d.example.com", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}}),
        "ResourceClaim" => json!({"spec": {}}),
        "ResourceClaimTemplate" => json!({"spec": {"spec": {}}}),
        "APIService" => json!({"spec": {
            "group": "a.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
            "insecureSkipTLSVerify": true, "service": {"namespace": "default", "name": "s"}}}),
        "CustomResourceDefinition" => json!({"spec": {
            "group": "b.example.com", "scope": "Namespaced", "names": {"plural": "swept", "kind": "Swept"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}}),
        "SelfSubjectAccessReview" => json!({"spec": review}),
        "SubjectAccessReview" | "LocalSubjectAccessReview" => json!({"spec": {
            "user": "a", "resourceAttributes": {"namespace": "default", "verb": "get", "resource": "pods"}}}),
        "SelfSubjectRulesReview" => json!({"spec": {"namespace": "default"}}),
        "TokenReview" => json!({"spec": {"token": "t"}}),
        "TokenRequest" => json!({"spec": {"audiences": ["a"]}}),
        "Binding" => json!({"target": {"name": "n"}}),
        _ => json!({}),
    };
    let mut object =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": object_name(kind, name)}});
    if let (Some(object), Some(fields)) = (object.as_object_mut(), fields.as_object()) {
        object.extend(fields.clone());
    }
    object
}

/// The name of [`base_object`]: for some kinds it follows from the rest of the object.
fn object_name(kind: &str, name: &str) -> String {
    match kind {
        "CustomResourceDefinition" => "swept.b.example.com".to_owned(),
        "APIService" => "v1.a.example.com".to_owned(),
        "IPAddress" => "10.99.1.1".to_owned(),
        _ => name.to_owned(),
    }
}
