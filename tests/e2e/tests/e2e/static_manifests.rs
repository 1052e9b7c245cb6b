//! Tests policies and webhooks that files of the server declare.

use crate::Result;
use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_e2e::{Cli, config};
use pintle_harness::{AdmittingWebhook, Config, Server, wait_for};
use serde_json::{Value, json};
use std::{fs, time::Duration};
use tempfile::TempDir;

/// Longer than a changed directory needs to be noticed.
const RELOAD: Duration = Duration::from_secs(30);

const GROUP: &str = "admissionregistration.k8s.io/v1";

/// The directories of the manifests of each plugin, and the file that names them.
struct Files(TempDir);

impl Files {
    fn new() -> Result<Files> {
        let files = Files(tempfile::tempdir()?);
        let mut plugins = Vec::new();
        for plugin in [
            "MutatingAdmissionPolicy",
            "MutatingAdmissionWebhook",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionWebhook",
        ] {
            let directory = files.0.path().join(plugin);
            fs::create_dir(&directory)?;
            let kind = if plugin.ends_with("Webhook") { "WebhookAdmission" } else { plugin };
            let configuration = json!({
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": format!("{kind}Configuration"),
                "staticManifestsDir": directory,
            });
            plugins.push(json!({"name": plugin, "configuration": configuration}));
        }
        let configuration = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins,
        });
        fs::write(files.0.path().join("admission.json"), configuration.to_string())?;
        Ok(files)
    }

    fn write(&self, plugin: &str, name: &str, objects: &[Value]) -> Result {
        // One file with several documents.
        let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
        Ok(fs::write(self.0.path().join(plugin).join(name), texts.join("\n---\n"))?)
    }

    fn config(&self) -> Result<Config> {
        let path = self.0.path().join("admission.json");
        Ok(config()?
            .flag("--feature-gates=ManifestBasedAdmissionControlConfig=true")
            .flag(format!("--admission-control-config-file={}", path.display())))
    }
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn rule(group: &str, resource: &str, operation: &str) -> Value {
    json!({"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": [operation]})
}

/// A policy that refuses what its expression does not hold for, and its binding.
fn refusing(name: &str, rule: &Value, expression: &str) -> [Value; 2] {
    let policy = json!({
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": format!("refused by {name}")}],
    });
    let binding = json!({"policyName": name, "validationActions": ["Deny"]});
    [
        object("ValidatingAdmissionPolicy", name, &policy),
        object("ValidatingAdmissionPolicyBinding", name, &binding),
    ]
}

/// A configuration with a webhook that is called for config maps, and for configurations of webhooks.
fn calling(kind: &str, name: &str, webhook: &AdmittingWebhook) -> Value {
    json!({"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "webhooks": [{
        "name": "hook.example.com",
        "clientConfig": {"url": webhook.url(), "caBundle": STANDARD.encode(webhook.certificate())},
        "rules": [rule("", "configmaps", "CREATE"), rule("admissionregistration.k8s.io", "*", "CREATE")],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }]})
}

fn create(server: &Server, name: &str) -> std::result::Result<String, pintle_harness::Error> {
    Cli::kubectl(server)?.run(&["create", "configmap", name])
}

/// The value of a metric of a plugin's manifests.
fn metric(server: &Server, name: &str, labels: &str) -> Result<Option<String>> {
    let metrics = server.client()?.get("/metrics")?.text();
    let prefix = format!("apiserver_manifest_admission_config_controller_{name}{{");
    let is_wanted = |line: &&str| line.starts_with(&prefix) && line.contains(labels);
    Ok(metrics.lines().find(is_wanted).and_then(|line| line.split_whitespace().last()).map(str::to_owned))
}

#[test]
fn policies_and_webhooks_of_files_are_in_force_from_the_start_and_for_those_of_the_api() -> Result {
    let (files, webhook) = (Files::new()?, AdmittingWebhook::start()?);
    let policies = refusing(
        "named.static.k8s.io",
        &rule("", "configmaps", "CREATE"),
        "object.metadata.namespace != 'default' || object.metadata.name.startsWith('a')",
    );
    files.write("ValidatingAdmissionPolicy", "names.yaml", &policies)?;
    let guard = refusing(
        "guard.static.k8s.io",
        &rule("admissionregistration.k8s.io", "*", "DELETE"),
        "oldObject.metadata.name != 'guarded'",
    );
    files.write(
        "ValidatingAdmissionPolicy",
        "guard.json",
        &[json!({
            "apiVersion": "v1", "kind": "List", "items": guard,
        })],
    )?;
    let mutation = json!({
        "matchConstraints": {"resourceRules": [rule("", "configmaps", "CREATE")]},
        "reinvocationPolicy": "Never",
        "mutations": [{
            "patchType": "ApplyConfiguration",
            "applyConfiguration": {"expression": "Object{data: {'from': 'a file'}}"},
        }],
    });
    let binding = json!({"policyName": "mark.static.k8s.io"});
    files.write(
        "MutatingAdmissionPolicy",
        "mark.yml",
        &[
            object("MutatingAdmissionPolicyBinding", "mark.static.k8s.io", &binding),
            object("MutatingAdmissionPolicy", "mark.static.k8s.io", &mutation),
        ],
    )?;
    for kind in ["Mutating", "Validating"] {
        let configuration = calling(&format!("{kind}WebhookConfiguration"), "call.static.k8s.io", &webhook);
        files.write(&format!("{kind}AdmissionWebhook"), "call.yaml", &[configuration])?;
    }

    let server = Server::start(files.config()?)?;
    let kubectl = Cli::kubectl(&server)?;
    let calls = webhook.calls();
    create(&server, "a")?;
    assert_eq!(webhook.calls(), calls + 2);
    assert_eq!(kubectl.json(&["get", "configmap", "a", "-o", "json"])?["data"]["from"], "a file");
    let refusal = create(&server, "b").unwrap_err().to_string();
    assert!(
        refusal.contains(
            "ValidatingAdmissionPolicy 'named.static.k8s.io' with binding 'named.static.k8s.io' denied request: refused by \
             named.static.k8s.io"
        ),
        "{refusal}"
    );
    // Declarations of files are no objects, and apply to the objects that configure admission, too.
    let listed = kubectl.run(&["get", "validatingadmissionpolicies,validatingwebhookconfigurations"])?;
    assert_eq!(listed, "");
    let guarded = object("ValidatingAdmissionPolicy", "guarded", &policies[0]["spec"]);
    let calls = webhook.calls();
    kubectl.feed(&["create", "-f", "-"], &guarded.to_string())?;
    assert_eq!(webhook.calls(), calls + 2);
    let refusal = kubectl.fails(&["delete", "validatingadmissionpolicy", "guarded"])?;
    assert!(refusal.contains("refused by guard.static.k8s.io"), "{refusal}");
    // Clients cannot have such names.
    let reserved = object("ValidatingAdmissionPolicy", "x.static.k8s.io", &policies[0]["spec"]);
    let refusal = kubectl.feed(&["create", "-f", "-"], &reserved.to_string()).unwrap_err().to_string();
    assert!(
        refusal.contains("names ending with \".static.k8s.io\" are reserved for static manifest-based"),
        "{refusal}"
    );
    Ok(())
}

#[test]
fn changed_files_are_in_force_soon_and_broken_ones_never() -> Result {
    let files = Files::new()?;
    let plugin = "ValidatingAdmissionPolicy";
    let refusing = |expression: &str| {
        refusing(
            "p.static.k8s.io",
            &rule("", "configmaps", "CREATE"),
            &format!("object.metadata.namespace != 'default' || {expression}"),
        )
    };
    files.write(plugin, "p.yaml", &refusing("object.metadata.name == 'a'"))?;
    let server = Server::start(files.config()?)?;
    let of_plugin = format!("plugin=\"{plugin}\"");
    let outcomes = |status: &str| {
        metric(&server, "automatic_reloads_total", &format!("{of_plugin},status=\"{status}\""))
    };
    let hash = || metric(&server, "last_config_info", &of_plugin);
    assert_eq!(outcomes("success")?.as_deref(), Some("1"));
    assert_eq!(hash()?.as_deref(), Some("1"));
    create(&server, "a")?;
    create(&server, "b").unwrap_err();

    files.write(plugin, "p.yaml", &refusing("object.metadata.name == 'b'"))?;
    wait_for("the changed file", RELOAD, || create(&server, "b").ok())?;
    assert_eq!(outcomes("success")?.as_deref(), Some("2"));
    create(&server, "c").unwrap_err();

    files.write(plugin, "q.yaml", &[json!({"apiVersion": GROUP, "kind": "Unknown"})])?;
    wait_for("a failure", RELOAD, || outcomes("failure").ok().flatten())?;
    create(&server, "c").unwrap_err();
    assert!(server.log()?.contains("admission manifests cannot be used"));

    // Without files nothing is refused.
    for name in ["q.yaml", "p.yaml"] {
        fs::remove_file(files.0.path().join(plugin).join(name))?;
    }
    wait_for("the empty directory", RELOAD, || create(&server, "c").ok())?;
    Ok(())
}

#[test]
fn a_server_does_not_start_with_files_that_it_cannot_use() -> Result {
    let cases = [
        (
            "ValidatingAdmissionPolicy",
            json!({"apiVersion": GROUP, "kind": "Unknown"}),
            "no kind \"Unknown\" is registered",
        ),
        (
            "ValidatingAdmissionWebhook",
            object("ValidatingAdmissionPolicy", "p.static.k8s.io", &json!({})),
            "unsupported resource type *v1.ValidatingAdmissionPolicy",
        ),
        (
            "MutatingAdmissionPolicy",
            object(
                "MutatingAdmissionPolicyBinding",
                "b.static.k8s.io",
                &json!({"policyName": "p.static.k8s.io"}),
            ),
            "binding \"b.static.k8s.io\" references policy \"p.static.k8s.io\" which does not exist in the manifest directory",
        ),
    ];
    for (plugin, object, why) in cases {
        let files = Files::new()?;
        files.write(plugin, "p.json", &[object])?;
        let Err(error) = Server::start(files.config()?) else { panic!("started: {why}") };
        // The log quotes the error.
        assert!(error.to_string().replace('\\', "").contains(why), "{error}");
    }
    let files = Files::new()?;
    let path = files.0.path().join("admission.json");
    let without_gate = config()?.flag(format!("--admission-control-config-file={}", path.display()));
    let Err(error) = Server::start(without_gate) else { panic!("started") };
    assert!(
        error.to_string().contains("requires the ManifestBasedAdmissionControlConfig feature gate"),
        "{error}"
    );
    Ok(())
}
