//! `ServiceAccount`: sets the service account of every pod, mounts its token, adds its image pull secrets, and may
//! restrict the pod to the account's secrets
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#serviceaccount>).

use super::pods::{self, ContainerKind};
use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_machinery::{
    GroupResource, Status, Value, ValueExt, generate_name::generate_name, json, meta::ObjectMeta,
};
use pintle_registry::BoxFuture;
use std::{collections::HashSet, sync::Arc, time::Duration};

const DEFAULT: &str = "default";
const TOKEN_VOLUME_PREFIX: &str = "kube-api-access-";
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The token lifetime in seconds, slightly above an hour: the server recognizes older clients, which expect an hour, by
/// it.
const TOKEN_SECONDS: i64 = 3607;
const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";
/// The number of attempts to find the default account, which a controller creates shortly after a new namespace.
const DEFAULT_ATTEMPTS: usize = 10;
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The plugin.
#[derive(Debug)]
pub struct ServiceAccount {
    accounts: GroupResource,
}

impl Default for ServiceAccount {
    fn default() -> ServiceAccount {
        ServiceAccount { accounts: GroupResource::new("", "serviceaccounts") }
    }
}

impl AdmissionPlugin for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn steps(&self) -> Steps {
        Steps::Both
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        match request.operation {
            Operation::Create => request.is_for("", "pods"),
            Operation::Update => request.is_of("", "pods") && request.subresource == "ephemeralcontainers",
            Operation::Delete | Operation::Connect => false,
        }
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if request.operation != Operation::Create {
                return Ok(());
            }
            if pods::is_mirror(&request.object) {
                return validate_mirror(request);
            }
            if request.object.str_at("spec.serviceAccountName").is_empty() {
                request.object.to_mut().set("spec.serviceAccountName", DEFAULT);
                request.object.to_mut().set("spec.serviceAccount", DEFAULT);
            }
            let account = self.account_of_pod(request).await?;
            let pod = request.object.to_mut();
            if automounts(&account, pod) {
                mount_token(pod);
            }
            let own = pod.items_at("spec.imagePullSecrets");
            let pull_secrets = account.items_at("imagePullSecrets");
            if own.is_empty() && !pull_secrets.is_empty() {
                let names = pull_secrets.iter().map(|secret| json!({"name": secret.str_at("name")}));
                pod.set("spec.imagePullSecrets", Value::Array(names.collect()));
            }
            limit_secrets(request, &account)
        })
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if request.operation == Operation::Create && pods::is_mirror(&request.object) {
                return validate_mirror(request);
            }
            if request.object.str_at("spec.serviceAccountName").is_empty() {
                let name = request.object.str_at("metadata.name");
                let why = format!("no service account specified for pod {}/{name}", request.namespace);
                return Err(request.forbidden(why));
            }
            let account = self.account_of_pod(request).await?;
            if request.operation == Operation::Create {
                return limit_secrets(request, &account);
            }
            if !enforces_secrets(&account) {
                return Ok(());
            }
            // Without the status of a refusal, as in the reference.
            limit_container_secrets(&account, &request.object, ContainerKind::Ephemeral)
                .map_err(Status::unknown)
        })
    }
}

impl ServiceAccount {
    async fn account_of_pod(&self, request: &AdmissionRequest<'_>) -> Result<Arc<Value>, Status> {
        let (namespace, name) = (request.namespace, request.object.str_at("spec.serviceAccountName"));
        let attempts = if name == DEFAULT { DEFAULT_ATTEMPTS } else { 1 };
        for attempt in 0..attempts {
            if attempt > 0 {
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            match request.find(&self.accounts, namespace, name).await {
                Ok(Some(account)) => return Ok(account),
                Ok(None) => {
                    if let Some(why) = AdmissionRequest::unusable_name(name) {
                        let why = format!("error looking up service account {namespace}/{name}: {why}");
                        return Err(request.forbidden(why));
                    }
                }
                Err(status) => {
                    let why = format!("error looking up service account {namespace}/{name}: {status}");
                    return Err(request.forbidden(why));
                }
            }
        }
        Err(request.forbidden(format!(
            "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
        )))
    }
}

/// Validates a mirror pod, which represents a static pod of a node and must not reference other objects.
fn validate_mirror(request: &AdmissionRequest<'_>) -> Result<(), Status> {
    let pod = &request.object;
    let forbidden = |what: &str| Err(request.forbidden(format!("a mirror pod may not {what}")));
    if !pod.str_at("spec.serviceAccountName").is_empty() {
        return forbidden("reference service accounts");
    }
    if pods::references_secrets(pod) {
        return forbidden("reference secrets");
    }
    let volumes = pod.items_at("spec.volumes").iter();
    let mut sources = volumes.flat_map(|volume| volume.items_at("projected.sources"));
    if sources.any(|source| source.at("serviceAccountToken").is_some()) {
        return forbidden("use ServiceAccountToken volume projections");
    }
    Ok(())
}

/// The pod's setting takes precedence over the account's.
fn automounts(account: &Value, pod: &Value) -> bool {
    let wish = |object: &Value, path: &str| object.at(path).and_then(Value::as_bool);
    wish(pod, "spec.automountServiceAccountToken")
        .or_else(|| wish(account, "automountServiceAccountToken"))
        .unwrap_or(true)
}

/// Mounts the token in each container without a mount at its path.
fn mount_token(pod: &mut Value) {
    let volumes = pod.items_at("spec.volumes").iter();
    let existing =
        volumes.map(|volume| volume.str_at("name")).find(|name| name.starts_with(TOKEN_VOLUME_PREFIX));
    let (name, exists) = match existing {
        Some(name) => (name.to_owned(), true),
        None => (generate_name(TOKEN_VOLUME_PREFIX), false),
    };
    let mut mounted = false;
    for path in ["spec.initContainers", "spec.containers"] {
        for container in pod.items_at_mut(path) {
            let mut mounts = container.items_at("volumeMounts").iter();
            if !mounts.any(|mount| mount.str_at("mountPath") == TOKEN_PATH) {
                let mount = json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH});
                pods::push(container, "volumeMounts", mount);
                mounted = true;
            }
        }
    }
    if mounted && !exists {
        pods::push(pod, "spec.volumes", token_volume(&name));
    }
}

fn token_volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "defaultMode": 0o644,
            "sources": [
                {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [
                    {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
                ]}},
            ],
        },
    })
}

/// Whether pods of the account may use only secrets that the account lists.
fn enforces_secrets(account: &Value) -> bool {
    let value = account.annotation(ENFORCE_MOUNTABLE_SECRETS).unwrap_or_default();
    matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

fn limit_secrets(request: &AdmissionRequest<'_>, account: &Value) -> Result<(), Status> {
    if !enforces_secrets(account) {
        return Ok(());
    }
    check_secrets(account, &request.object).map_err(|why| request.forbidden(why))
}

fn check_secrets(account: &Value, pod: &Value) -> Result<(), String> {
    let owner = account.name();
    let (secrets, pull_secrets) = (names(account, "secrets"), names(account, "imagePullSecrets"));
    for volume in pod.items_at("spec.volumes") {
        let Some(secret) = volume.at("secret").map(|secret| secret.str_at("secretName")) else {
            continue;
        };
        if !secrets.contains(secret) {
            return Err(format!(
                "volume with secret.secretName=\"{secret}\" is not allowed because service account {owner} does not \
                 reference that secret"
            ));
        }
    }
    limit_container_secrets(account, pod, ContainerKind::Init)?;
    limit_container_secrets(account, pod, ContainerKind::Regular)?;
    for (index, secret) in pod.items_at("spec.imagePullSecrets").iter().enumerate() {
        let secret = secret.str_at("name");
        if !pull_secrets.contains(secret) {
            return Err(format!(
                "imagePullSecrets[{index}].name=\"{secret}\" is not allowed because service account {owner} does not \
                 reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}

fn limit_container_secrets(account: &Value, pod: &Value, kind: ContainerKind) -> Result<(), String> {
    let secrets = names(account, "secrets");
    for container in pod.items_at(kind.path()) {
        let refuse = |source: String, secret: &str| {
            Err(format!(
                "{} {} with {source} referencing secret.secretName=\"{secret}\" is not allowed because service account \
                 {} does not reference that secret",
                kind.noun(),
                container.str_at("name"),
                account.name()
            ))
        };
        for variable in container.items_at("env") {
            let Some(reference) = variable.at("valueFrom.secretKeyRef") else { continue };
            let secret = reference.str_at("name");
            if !secrets.contains(secret) {
                return refuse(format!("envVar {}", variable.str_at("name")), secret);
            }
        }
        for source in container.items_at("envFrom") {
            let Some(reference) = source.at("secretRef") else { continue };
            let secret = reference.str_at("name");
            if !secrets.contains(secret) {
                return refuse("envFrom".to_owned(), secret);
            }
        }
    }
    Ok(())
}

/// The names of a list of an account's secrets. Pods may reference very many, each of which is looked up.
fn names<'a>(account: &'a Value, list: &str) -> HashSet<&'a str> {
    account.items_at(list).iter().map(|reference| reference.str_at("name")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use std::time::Instant;

    fn objects() -> Objects {
        Objects::new([
            ("serviceaccounts", json!({"metadata": {"name": "default", "namespace": "n"}})),
            (
                "serviceaccounts",
                json!({
                    "metadata": {
                        "name": "strict", "namespace": "n",
                        "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"},
                    },
                    "automountServiceAccountToken": false,
                    "secrets": [{"name": "allowed"}],
                    "imagePullSecrets": [{"name": "registry"}],
                }),
            ),
        ])
    }

    fn create(spec: Value) -> Result<Value, String> {
        let pod = json!({"metadata": {"name": "p", "namespace": "n"}, "spec": spec});
        admit(&ServiceAccount::default(), &objects(), Operation::Create, "pods", "", pod, None)
    }

    #[test]
    fn tokens_are_mounted_where_nothing_else_is() {
        let pod = create(json!({"containers": [
            {"name": "a"},
            {"name": "b", "volumeMounts": [{"name": "mine", "mountPath": TOKEN_PATH}]},
        ]}))
        .unwrap();
        assert_eq!(pod["spec"]["serviceAccountName"], json!("default"));
        assert_eq!(pod["spec"]["serviceAccount"], json!("default"));
        let volume = pod["spec"]["volumes"][0]["name"].as_str().unwrap();
        assert!(volume.starts_with(TOKEN_VOLUME_PREFIX));
        let mount = &pod["spec"]["containers"][0]["volumeMounts"][0];
        assert_eq!(*mount, json!({"name": volume, "readOnly": true, "mountPath": TOKEN_PATH}));
        assert_eq!(pod["spec"]["containers"][1]["volumeMounts"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn accounts_decide_on_mounts_and_pull_secrets() {
        let pod = create(json!({"serviceAccountName": "strict", "containers": [{"name": "a"}]})).unwrap();
        assert_eq!(pod["spec"]["imagePullSecrets"], json!([{"name": "registry"}]));
        assert_eq!(pod["spec"].get("volumes"), None);
        let pod =
            create(json!({"automountServiceAccountToken": false, "containers": [{"name": "a"}]})).unwrap();
        assert_eq!(pod["spec"].get("volumes"), None);
    }

    #[test]
    fn pods_of_strict_accounts_use_its_secrets_only() {
        let check = |member: &str, value: Value, message: &str| {
            let mut spec = json!({"serviceAccountName": "strict", "containers": []});
            spec[member] = value;
            assert_eq!(create(spec).err().unwrap_or_default(), message);
        };
        check("volumes", json!([{"name": "s", "secret": {"secretName": "allowed"}}]), "");
        check(
            "volumes",
            json!([{"name": "s", "secret": {"secretName": "other"}}]),
            "pods \"p\" is forbidden: volume with secret.secretName=\"other\" is not allowed because service account \
             strict does not reference that secret",
        );
        check(
            "initContainers",
            json!([{"name": "i", "envFrom": [{"secretRef": {"name": "other"}}]}]),
            "pods \"p\" is forbidden: init container i with envFrom referencing secret.secretName=\"other\" is not \
             allowed because service account strict does not reference that secret",
        );
        check(
            "containers",
            json!([{"name": "c", "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "other"}}}]}]),
            "pods \"p\" is forbidden: container c with envVar A referencing secret.secretName=\"other\" is not \
             allowed because service account strict does not reference that secret",
        );
        check(
            "imagePullSecrets",
            json!([{"name": "other"}]),
            "pods \"p\" is forbidden: imagePullSecrets[0].name=\"other\" is not allowed because service account \
             strict does not reference that imagePullSecret",
        );
    }

    #[test]
    fn missing_accounts_and_mirror_pods_are_refused() {
        assert_eq!(
            create(json!({"serviceAccountName": "nobody"})).unwrap_err(),
            "pods \"p\" is forbidden: error looking up service account n/nobody: serviceaccount \"nobody\" not found"
        );
        assert_eq!(
            create(json!({"serviceAccountName": "a/b%"})).unwrap_err(),
            "pods \"p\" is forbidden: error looking up service account n/a/b%: invalid resource name \"a/b%\": \
             [may not contain '/' may not contain '%']"
        );
        let mirror = json!({
            "metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}},
            "spec": {"volumes": [{"secret": {"secretName": "s"}}]},
        });
        let refused =
            admit(&ServiceAccount::default(), &objects(), Operation::Create, "pods", "", mirror, None);
        assert_eq!(refused.unwrap_err(), "pods \"p\" is forbidden: a mirror pod may not reference secrets");
    }

    #[test]
    fn very_many_secrets_are_looked_up() {
        const MANY: usize = 20_000;
        let named = |number: usize| json!({"name": format!("s{number}")});
        let account =
            json!({"metadata": {"name": "a"}, "secrets": (0..=MANY).map(named).collect::<Vec<_>>()});
        let last = json!({"valueFrom": {"secretKeyRef": {"name": format!("s{MANY}"), "key": "k"}}});
        let pod = json!({"spec": {"containers": [{"name": "c", "env": vec![last; MANY]}]}});
        let started = Instant::now();
        assert_eq!(check_secrets(&account, &pod), Ok(()));
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }
}
