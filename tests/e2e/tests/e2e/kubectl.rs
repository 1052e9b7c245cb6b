//! Tests kubectl with the commands of a new user.

use crate::{Result, clients::MANIFESTS};
use pintle_e2e::{Cli, PATIENCE, config, start};
use pintle_harness::{Server, wait_for};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader},
    sync::mpsc,
};

/// A server with the manifests applied.
fn shop() -> Result<Server> {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    let applied = kubectl.feed(&["apply", "-f", "-"], MANIFESTS)?;
    assert_eq!(
        applied.lines().collect::<Vec<_>>(),
        [
            "namespace/shop created",
            "serviceaccount/web created",
            "serviceaccount/default created",
            "configmap/settings created",
            "secret/credentials created",
            "service/web created",
            "deployment.apps/web created",
            "pod/shell created",
            "job.batch/once created",
        ]
    );
    Ok(server)
}

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

/// The words of the first two lines: header and one row.
fn table(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn create_prints_what_it_made_and_refuses_a_second_one() -> Result {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    assert_eq!(kubectl.run(&["create", "namespace", "made"])?, "namespace/made created\n");
    contains(
        &kubectl.fails(&["create", "namespace", "made"])?,
        &["Error from server (AlreadyExists): namespaces \"made\" already exists"],
    );
    for (args, made) in [
        (vec!["configmap", "c", "--from-literal=k=v"], "configmap/c"),
        (vec!["secret", "generic", "s", "--from-literal=k=v"], "secret/s"),
        (vec!["serviceaccount", "a"], "serviceaccount/a"),
        (vec!["service", "clusterip", "v", "--tcp=80:8080"], "service/v"),
        (vec!["deployment", "d", "--image=registry.example.com/d:1"], "deployment.apps/d"),
        (vec!["job", "j", "--image=registry.example.com/j:1"], "job.batch/j"),
        (
            vec!["cronjob", "cj", "--image=registry.example.com/j:1", "--schedule=0 4 * * *"],
            "cronjob.batch/cj",
        ),
        (vec!["ingress", "i", "--rule=example.com/*=v:80"], "ingress.networking.k8s.io/i"),
        (vec!["role", "r", "--verb=get", "--resource=pods"], "role.rbac.authorization.k8s.io/r"),
        (vec!["quota", "q", "--hard=pods=5"], "resourcequota/q"),
        (
            vec!["poddisruptionbudget", "p", "--selector=app=d", "--min-available=1"],
            "poddisruptionbudget.policy/p",
        ),
    ] {
        let args: Vec<&str> = ["create", "-n", "made"].into_iter().chain(args).collect();
        assert_eq!(kubectl.run(&args)?, format!("{made} created\n"));
        assert_eq!(kubectl.run(&["get", "-n", "made", made, "-o", "name"])?, format!("{made}\n"));
    }
    Ok(())
}

#[test]
fn apply_changes_only_what_changed() -> Result {
    let server = shop()?;
    let kubectl = Cli::kubectl(&server)?;
    let again = kubectl.feed(&["apply", "-f", "-"], MANIFESTS)?;
    // A Secret's stringData is write-only, so kubectl's own comparison finds a difference each time.
    let unchanged = again.lines().filter(|line| line.ends_with(" unchanged")).count();
    assert!(unchanged >= 7, "{again}");
    let changed = kubectl.feed(&["apply", "-f", "-"], &MANIFESTS.replace("replicas: 2", "replicas: 3"))?;
    contains(&changed, &["deployment.apps/web configured", "configmap/settings unchanged"]);
    assert_eq!(kubectl.json(&["get", "-n", "shop", "deployment/web"])?["spec"]["replicas"], 3);
    Ok(())
}

#[test]
fn diff_shows_a_change_and_makes_none() -> Result {
    let server = shop()?;
    let kubectl = Cli::kubectl(&server)?;
    let file = kubectl.file("changed.yaml", &MANIFESTS.replace("replicas: 2", "replicas: 7"))?;
    let output = kubectl.command(&["diff", "-f", &file]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}{}", String::from_utf8_lossy(&output.stderr));
    contains(&text, &["-  replicas: 2", "+  replicas: 7"]);
    assert_eq!(kubectl.json(&["get", "-n", "shop", "deployment/web"])?["spec"]["replicas"], 2);
    Ok(())
}

#[test]
fn get_prints_tables_wide_tables_yaml_and_json() -> Result {
    let server = shop()?;
    let kubectl = Cli::kubectl(&server)?;
    let deployments = kubectl.run(&["get", "-n", "shop", "deployments"])?;
    let rows = table(&deployments);
    assert_eq!(rows[0], ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]);
    assert_eq!(rows[1][..4], ["web", "0/2", "0", "0"]);
    let wide = kubectl.run(&["get", "-n", "shop", "deployments", "-o", "wide"])?;
    assert_eq!(
        table(&wide)[0],
        ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    );
    contains(&wide, &["registry.example.com/web:1.0", "app=web"]);
    let pods = kubectl.run(&["get", "-n", "shop", "pods"])?;
    assert_eq!(table(&pods)[1][..4], ["shell", "0/1", "Pending", "0"]);
    let services = kubectl.run(&["get", "-n", "shop", "services"])?;
    let rows = table(&services);
    assert_eq!(rows[0], ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"]);
    assert_eq!((rows[1][1], rows[1][4]), ("ClusterIP", "80/TCP"));
    let yaml = kubectl.run(&["get", "-n", "shop", "configmap", "settings", "-o", "yaml"])?;
    contains(&yaml, &["apiVersion: v1\n", "kind: ConfigMap\n", "  greeting: hello\n", "    second line\n"]);
    let secret = kubectl.json(&["get", "-n", "shop", "secret", "credentials"])?;
    assert_eq!(secret["data"]["password"], "c3dvcmRmaXNo");
    let names = kubectl.run(&["get", "-n", "shop", "all", "-o", "name"])?;
    contains(&names, &["pod/shell\n", "service/web\n", "deployment.apps/web\n", "job.batch/once\n"]);
    let labelled =
        kubectl.run(&["get", "-n", "shop", "configmaps,services", "-l", "app=web", "-o", "name"])?;
    assert_eq!(labelled, "configmap/settings\nservice/web\n");
    let selected =
        kubectl.run(&["get", "pods", "-A", "--field-selector=metadata.name=shell", "--no-headers"])?;
    assert_eq!(table(&selected)[0][..2], ["shop", "shell"]);
    contains(
        &kubectl.fails(&["get", "-n", "shop", "pod", "nobody"])?,
        &["Error from server (NotFound): pods \"nobody\" not found"],
    );
    Ok(())
}

#[test]
fn describe_tells_about_each_kind() -> Result {
    let server = shop()?;
    let kubectl = Cli::kubectl(&server)?;
    for (what, parts) in [
        ("namespace/shop", vec!["Name:         shop", "Status:       Active"]),
        ("configmap/settings", vec!["greeting:", "hello", "second line"]),
        ("secret/credentials", vec!["Type:  Opaque", "password:  9 bytes"]),
        ("service/web", vec!["Selector:", "app=web", "TargetPort:", "8080/TCP"]),
        ("deployment/web", vec!["2 desired", "RollingUpdateStrategy:", "registry.example.com/web:1.0"]),
        ("pod/shell", vec!["Status:", "Pending", "QoS Class:", "BestEffort"]),
        ("job/once", vec!["Parallelism:", "Completions:"]),
        ("serviceaccount/web", vec!["Name:", "web"]),
    ] {
        contains(&kubectl.run(&["describe", "-n", "shop", what])?, &parts);
    }
    Ok(())
}

#[test]
fn edit_sends_what_the_editor_left() -> Result {
    let server = shop()?;
    let kubectl = Cli::kubectl(&server)?;
    for (what, script, path, value) in [
        ("configmap/settings", "s/greeting: hello/greeting: goodbye/", "/data/greeting", "goodbye"),
        (
            "deployment/web",
            "s/web:1.0/web:2.0/",
            "/spec/template/spec/containers/0/image",
            "registry.example.com/web:2.0",
        ),
    ] {
        let output = kubectl
            .command(&["edit", "-n", "shop", what])
            .env("KUBE_EDITOR", format!("sed -i '{script}'"))
            .output()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        contains(&String::from_utf8_lossy(&output.stdout), &["edited"]);
        let object = kubectl.json(&["get", "-n", "shop", what])?;
        assert_eq!(object.pointer(path).and_then(|value| value.as_str()), Some(value));
    }
    Ok(())
}

#[test]
fn label_annotate_and_patch_change_what_they_say() -> Result {
    let server = shop()?;
    let kubectl = Cli::kubectl(&server)?;
    let object = || kubectl.json(&["get", "-n", "shop", "deployment/web"]);
    kubectl.run(&["label", "-n", "shop", "deployment/web", "tier=front"])?;
    kubectl.run(&["annotate", "-n", "shop", "deployment/web", "example.com/owner=me"])?;
    let deployment = object()?;
    assert_eq!(deployment["metadata"]["labels"]["tier"], "front");
    assert_eq!(deployment["metadata"]["annotations"]["example.com/owner"], "me");
    contains(
        &kubectl.fails(&["label", "-n", "shop", "deployment/web", "tier=back"])?,
        &["already has a value"],
    );
    kubectl.run(&["label", "-n", "shop", "deployment/web", "tier-"])?;
    assert!(object()?["metadata"]["labels"].get("tier").is_none());

    let patch = |kind: &str, patch: &str| {
        kubectl.run(&["patch", "-n", "shop", "deployment/web", &format!("--type={kind}"), "-p", patch])
    };
    patch(
        "strategic",
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"registry.example.com/s:1"}]}}}}"#,
    )?;
    let containers = object()?["spec"]["template"]["spec"]["containers"].clone();
    let names: Vec<_> = containers.as_array().into_iter().flatten().map(|c| c["name"].clone()).collect();
    assert_eq!(names, ["side", "web"], "strategic merge keeps the other container");
    patch("merge", r#"{"spec":{"replicas":5,"paused":true}}"#)?;
    assert_eq!(object()?["spec"]["replicas"], 5);
    patch(
        "json",
        r#"[{"op":"remove","path":"/spec/paused"},{"op":"replace","path":"/spec/replicas","value":1}]"#,
    )?;
    let deployment = object()?;
    assert_eq!(deployment["spec"]["replicas"], 1);
    assert!(deployment["spec"].get("paused").is_none());
    contains(
        &kubectl.fails(&[
            "patch",
            "-n",
            "shop",
            "deployment/web",
            "--type=merge",
            "-p",
            r#"{"spec":{"replicas":-1}}"#,
        ])?,
        &["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
    );
    assert_eq!(object()?["spec"]["replicas"], 1);
    Ok(())
}

#[test]
fn explain_tells_what_fields_mean() -> Result {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    contains(
        &kubectl.run(&["explain", "pods.spec.containers.image"])?,
        &["KIND:       Pod", "FIELD: image <string>", "Container image name"],
    );
    contains(
        &kubectl.run(&["explain", "deployment.spec"])?,
        &["GROUP:      apps", "FIELD: spec <DeploymentSpec>", "replicas", "-required-"],
    );
    contains(&kubectl.run(&["explain", "services", "--recursive"])?, &["clusterIPs", "<[]string>"]);
    Ok(())
}

#[test]
fn validation_on_the_client_side_names_unknown_fields() -> Result {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    let file = kubectl
        .file("typo.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: typo}, dota: {a: b}}\n")?;
    contains(&kubectl.fails(&["create", "-f", &file])?, &["unknown field \"dota\""]);
    contains(&kubectl.fails(&["get", "configmap", "typo"])?, &["NotFound"]);
    Ok(())
}

#[test]
fn discovery_commands_list_resources_and_versions() -> Result {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    let resources = kubectl.run(&["api-resources"])?;
    let rows = table(&resources);
    assert_eq!(rows[0], ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]);
    assert!(rows.contains(&vec!["deployments", "deploy", "apps/v1", "true", "Deployment"]), "{resources}");
    assert!(rows.contains(&vec!["namespaces", "ns", "v1", "false", "Namespace"]), "{resources}");
    let versions = kubectl.run(&["api-versions"])?;
    for version in ["v1", "apps/v1", "batch/v1", "autoscaling/v2", "rbac.authorization.k8s.io/v1"] {
        assert!(versions.lines().any(|line| line == version), "no {version} in:\n{versions}");
    }
    contains(&kubectl.run(&["version"])?, &["Server Version: v1.36"]);
    contains(&kubectl.run(&["cluster-info"])?, &["is running at"]);
    Ok(())
}

#[test]
fn watch_prints_changes_as_they_come() -> Result {
    let server = shop()?;
    let kubectl = Cli::kubectl(&server)?;
    let mut child =
        kubectl.command(&["get", "-n", "shop", "configmaps", "-w", "--output-watch-events"]).spawn()?;
    let stdout = child.stdout.take().ok_or("no standard output")?;
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(stdout).lines().map_while(|line| line.ok()).all(|line| sender.send(line).is_ok())
    });
    let expect = |event: &str, name: &str| -> Result {
        loop {
            #[expect(clippy::disallowed_methods, reason = "no runtime owns the thread")]
            let line = lines.recv_timeout(PATIENCE)?;
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.starts_with(&[event, name]) {
                return Ok(());
            }
        }
    };
    let outcome = (|| {
        expect("ADDED", "settings")?;
        kubectl.run(&["create", "-n", "shop", "configmap", "late"])?;
        expect("ADDED", "late")?;
        kubectl.run(&["label", "-n", "shop", "configmap", "late", "a=b"])?;
        expect("MODIFIED", "late")?;
        kubectl.run(&["delete", "-n", "shop", "configmap", "late"])?;
        expect("DELETED", "late")
    })();
    child.kill()?;
    child.wait()?;
    outcome
}

#[test]
fn wait_returns_when_the_condition_holds() -> Result {
    let server = shop()?;
    let kubectl = Cli::kubectl(&server)?;
    let waiting = kubectl
        .command(&["wait", "-n", "shop", "pod/shell", "--for=condition=Ready", "--timeout=30s"])
        .spawn()?;
    kubectl.run(&[
        "patch",
        "-n",
        "shop",
        "pod/shell",
        "--subresource=status",
        "--type=merge",
        "-p",
        r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#,
    ])?;
    let output = waiting.wait_with_output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    contains(&String::from_utf8_lossy(&output.stdout), &["pod/shell condition met"]);
    kubectl.run(&["delete", "-n", "shop", "configmap", "settings", "--wait=true", "--timeout=30s"])?;
    kubectl.run(&["wait", "-n", "shop", "configmap/settings", "--for=delete", "--timeout=30s"])?;
    Ok(())
}

#[test]
fn delete_removes_one_many_and_those_of_a_file() -> Result {
    let server = shop()?;
    let kubectl = Cli::kubectl(&server)?;
    assert_eq!(
        kubectl.run(&["delete", "-n", "shop", "configmap", "settings"])?,
        "configmap \"settings\" deleted from shop namespace\n"
    );
    kubectl.run(&["delete", "-n", "shop", "services", "--all"])?;
    assert_eq!(kubectl.run(&["get", "-n", "shop", "services", "-o", "name"])?, "");
    kubectl.run(&["delete", "-n", "shop", "pods", "-l", "app=shell", "--grace-period=0", "--force"])?;
    assert_eq!(kubectl.run(&["get", "-n", "shop", "pods", "-o", "name"])?, "");
    let file = kubectl.file(
        "secret.yaml",
        "{apiVersion: v1, kind: Secret, metadata: {name: credentials, namespace: shop}}",
    )?;
    kubectl.run(&["delete", "-f", &file])?;
    contains(&kubectl.fails(&["get", "-n", "shop", "secret", "credentials"])?, &["NotFound"]);
    // No controller finalizes the namespace: it stays `Terminating`.
    kubectl.run(&["delete", "namespace", "shop", "--wait=false"])?;
    assert_eq!(kubectl.json(&["get", "namespace", "shop"])?["status"]["phase"], "Terminating");
    contains(
        &kubectl.fails(&["create", "-n", "shop", "configmap", "late"])?,
        &["because it is being terminated"],
    );
    Ok(())
}

#[test]
fn scale_and_replace_work_on_a_deployment() -> Result {
    let server = shop()?;
    let kubectl = Cli::kubectl(&server)?;
    assert_eq!(
        kubectl.run(&["scale", "-n", "shop", "deployment/web", "--replicas=4"])?,
        "deployment.apps/web scaled\n"
    );
    let deployment = kubectl.json(&["get", "-n", "shop", "deployment/web"])?;
    assert_eq!(
        (&deployment["spec"]["replicas"], &deployment["metadata"]["generation"]),
        (&4.into(), &2.into())
    );
    contains(
        &kubectl.run(&["get", "-n", "shop", "deployment/web", "--subresource=scale"])?,
        &["NAME   DESIRED   AVAILABLE   AGE\n", "web    4         0           "],
    );
    contains(
        &kubectl.fails(&["scale", "-n", "shop", "deployment/web", "--current-replicas=1", "--replicas=9"])?,
        &["Expected replicas to be 1, was 4"],
    );

    let file = server.directory().join("old.json");
    fs::write(&file, deployment.to_string())?;
    kubectl.run(&["scale", "-n", "shop", "deployment/web", "--replicas=5"])?;
    let file = file.display().to_string();
    contains(&kubectl.fails(&["replace", "-f", &file])?, &["the object has been modified"]);
    let current = kubectl.json(&["get", "-n", "shop", "deployment/web"])?;
    fs::write(&file, current.to_string().replace("web:1.0", "web:3.0"))?;
    assert_eq!(kubectl.run(&["replace", "-f", &file])?, "deployment.apps/web replaced\n");
    let image = &kubectl.json(&["get", "-n", "shop", "deployment/web"])?["spec"]["template"]["spec"]["containers"]
        [0]["image"];
    assert_eq!(image, "registry.example.com/web:3.0");
    Ok(())
}

#[test]
fn rollout_reads_the_history_that_a_controller_wrote() -> Result {
    let server = shop()?;
    let kubectl = Cli::kubectl(&server)?;
    let deployment = kubectl.json(&["get", "-n", "shop", "deployment/web"])?;
    // The replica set that a deployment controller would create.
    let mut set = serde_json::json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": "web-1", "namespace": "shop", "labels": {"app": "web", "pod-template-hash": "1"},
            "annotations": {"deployment.kubernetes.io/revision": "1"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": true,
                "uid": deployment["metadata"]["uid"],
            }],
        },
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web", "pod-template-hash": "1"}},
            "template": deployment["spec"]["template"],
        },
    });
    set["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] = "1".into();
    kubectl.feed(&["create", "-f", "-"], &set.to_string())?;
    let history = kubectl.run(&["rollout", "history", "-n", "shop", "deployment/web"])?;
    assert_eq!(table(&history)[2], ["1", "<none>"], "{history}");
    assert_eq!(
        kubectl.run(&["rollout", "restart", "-n", "shop", "deployment/web"])?,
        "deployment.apps/web restarted\n"
    );
    kubectl.run(&["rollout", "pause", "-n", "shop", "deployment/web"])?;
    assert_eq!(kubectl.json(&["get", "-n", "shop", "deployment/web"])?["spec"]["paused"], true);
    kubectl.run(&["set", "image", "-n", "shop", "deployment/web", "web=registry.example.com/web:4.0"])?;
    kubectl.run(&["rollout", "resume", "-n", "shop", "deployment/web"])?;
    Ok(())
}

#[test]
fn dry_run_on_the_server_keeps_nothing() -> Result {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    let file = kubectl.file(
        "manifests.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: dry, namespace: default}}",
    )?;
    assert_eq!(
        kubectl.run(&["apply", "--dry-run=server", "-f", &file])?,
        "configmap/dry created (server dry run)\n"
    );
    contains(&kubectl.fails(&["get", "configmap", "dry"])?, &["NotFound"]);
    Ok(())
}

#[test]
fn run_makes_a_pod_with_the_service_accounts_of_its_namespace() -> Result {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    kubectl.run(&["create", "serviceaccount", "default"])?;
    kubectl.run(&["run", "box", "--image=registry.example.com/box:1", "--restart=Never", "--env=A=b"])?;
    let pod = kubectl.json(&["get", "pod", "box"])?;
    assert_eq!(pod["spec"]["containers"][0]["env"][0]["value"], "b");
    assert_eq!(pod["status"]["phase"], "Pending");
    assert_eq!(kubectl.run(&["expose", "pod", "box", "--port=80"])?, "service/box exposed\n");
    kubectl.run(&["auth", "whoami"]).map(|who| contains(&who, &["system:masters"]))
}

#[test]
fn old_kubectl_works_too() -> Result {
    let server = start()?;
    let kubectl = Cli::old_kubectl(&server)?;
    let created = kubectl.feed(&["create", "-f", "-"], MANIFESTS)?;
    contains(&created, &["namespace/shop created", "deployment.apps/web created", "pod/shell created"]);
    assert_eq!(table(&kubectl.run(&["get", "-n", "shop", "deployments"])?)[1][..2], ["web", "0/2"]);
    contains(&kubectl.run(&["describe", "-n", "shop", "deployment/web"])?, &["2 desired"]);
    contains(&kubectl.run(&["explain", "pod.spec.containers"])?, &["image", "<string>"]);
    kubectl.feed(&["apply", "-f", "-"], &MANIFESTS.replace("greeting: hello", "greeting: bye"))?;
    assert_eq!(kubectl.json(&["get", "-n", "shop", "configmap/settings"])?["data"]["greeting"], "bye");
    kubectl.run(&["delete", "-n", "shop", "deployment", "web"])?;
    wait_for("the deployment's end", PATIENCE, || {
        kubectl.fails(&["get", "-n", "shop", "deployment", "web"]).ok()
    })?;
    Ok(())
}

#[test]
fn the_shards_of_a_list_are_disjoint_and_complete() -> Result {
    let server = Server::start(config()?.flag("--feature-gates=ShardedListAndWatch=true"))?;
    let kubectl = Cli::kubectl(&server)?;
    let names = |query: &str| -> Result<Vec<String>> {
        let uri = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles{query}");
        let list: Value = serde_json::from_str(&kubectl.run(&["get", "--raw", &uri])?)?;
        let items = list["items"].as_array().into_iter().flatten();
        Ok(items.filter_map(|item| item["metadata"]["name"].as_str()).map(str::to_owned).collect())
    };
    let mut shards = Vec::new();
    for (start, end) in [
        ("0x0000000000000000", "0x4000000000000000"),
        ("0x4000000000000000", "0xc000000000000000"),
        ("0xc000000000000000", "0x10000000000000000"),
    ] {
        let shard = names(&format!(
            "?shardSelector=shardRange(object.metadata.uid,%20%27{start}%27,%20%27{end}%27)"
        ))?;
        assert!(!shard.is_empty(), "a shard of all cluster roles");
        shards.extend(shard);
    }
    shards.sort();
    let mut all = names("")?;
    all.sort();
    assert_eq!(shards, all);
    let uri = "/api/v1/namespaces?shardSelector=shardRange(object.metadata.uid)";
    contains(
        &kubectl.fails(&["get", "--raw", uri])?,
        &["invalid shard selector: shardRange() requires exactly 3 arguments, got 1"],
    );
    Ok(())
}
