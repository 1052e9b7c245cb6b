//! Tests kubectl and helm as users with limited permissions.

use crate::{Result, helm::write_chart};
use pintle_e2e::{Cli, PATIENCE, start};
use pintle_harness::wait_for;

/// A role in a namespace, and its binding.
const READER: &str = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: shop}
rules:
- {apiGroups: [\"\"], resources: [pods, pods/log], verbs: [get, list]}
- {apiGroups: [\"\"], resources: [secrets], resourceNames: [one], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: developers}
- {kind: ServiceAccount, name: bot, namespace: shop}
";

fn words(table: &str) -> Vec<Vec<&str>> {
    table.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn kubectl_tells_what_somebody_may_do() -> Result {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    kubectl.run(&["create", "namespace", "shop"])?;
    // By default, reconcile adds missing permissions and removes none.
    let reconciled = "role.rbac.authorization.k8s.io/reader reconciled\nrolebinding.rbac.authorization.k8s.io/reader reconciled\n";
    assert_eq!(kubectl.feed(&["auth", "reconcile", "-f", "-"], READER)?, reconciled);
    let changed = READER.replace("[get, list]", "[watch]").replace("name: jane", "name: joe");
    assert_eq!(kubectl.feed(&["auth", "reconcile", "-f", "-"], &changed)?, reconciled);
    let role = kubectl.json(&["get", "role", "reader", "-n", "shop"])?;
    assert_eq!(role["rules"].as_array().map(Vec::len), Some(4));
    let all = ["auth", "reconcile", "--remove-extra-permissions", "--remove-extra-subjects", "-f", "-"];
    kubectl.feed(&all, READER)?;
    let binding = kubectl.json(&["get", "rolebinding", "reader", "-n", "shop"])?;
    assert_eq!(binding["subjects"][0]["name"], "jane");

    let can = |args: &[&str]| -> Result<bool> {
        let args: Vec<&str> = ["auth", "can-i", "-n", "shop"].iter().chain(args).copied().collect();
        let output = kubectl.command(&args).output()?;
        let answer = String::from_utf8(output.stdout)?;
        assert_eq!(output.status.success(), answer == "yes\n", "{args:?}: {answer}");
        Ok(answer == "yes\n")
    };
    wait_for("the role", PATIENCE, || can(&["get", "pods", "--as=jane"]).ok()?.then_some(()))?;
    for (args, expected) in [
        (vec!["*", "*"], true),
        (vec!["list", "pods", "--as=jane"], true),
        (vec!["delete", "pods", "--as=jane"], false),
        (vec!["get", "pods", "--subresource=log", "--as=jane"], true),
        (vec!["get", "pods", "--subresource=exec", "--as=jane"], false),
        (vec!["get", "secrets/one", "--as=jane"], true),
        (vec!["get", "secrets/two", "--as=jane"], false),
        (vec!["list", "pods", "--as=joe"], false),
        (vec!["list", "pods", "--as=joe", "--as-group=developers"], true),
        (vec!["list", "pods", "--as=system:serviceaccount:shop:bot"], true),
        (vec!["list", "pods", "--as=system:serviceaccount:default:bot"], false),
        (vec!["list", "pods", "--all-namespaces", "--as=jane"], false),
        (vec!["get", "/version", "--as=jane"], true),
        (vec!["get", "/metrics", "--as=jane"], false),
    ] {
        assert_eq!(can(&args)?, expected, "{args:?}");
    }
    let list = kubectl.run(&["auth", "can-i", "--list", "-n", "shop", "--as=jane"])?;
    let list = words(&list);
    for row in [
        vec!["pods", "[]", "[]", "[get", "list]"],
        vec!["secrets", "[]", "[one]", "[get]"],
        vec!["selfsubjectreviews.authentication.k8s.io", "[]", "[]", "[create]"],
        vec!["[/openapi/*]", "[]", "[get]"],
    ] {
        assert!(list.contains(&row), "{row:?} in {list:?}");
    }
    let who = kubectl.run(&["auth", "whoami", "--as=jane", "--as-group=developers"])?;
    assert_eq!(
        words(&who)[1..],
        [vec!["Username", "jane"], vec!["Groups", "[developers", "system:authenticated]"]]
    );
    Ok(())
}

#[test]
fn kubectl_is_refused_in_the_words_of_kubernetes() -> Result {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    kubectl.run(&["create", "namespace", "shop"])?;
    kubectl.feed(&["apply", "-f", "-"], READER)?;
    let author =
        ["create", "role", "author", "-n", "shop", "--verb=create,get", "--resource=roles,rolebindings"];
    kubectl.run(&author)?;
    kubectl.run(&["create", "rolebinding", "author", "-n", "shop", "--role=author", "--user=jane"])?;
    let as_jane = |args: &[&'static str]| -> Vec<&'static str> {
        args.iter().copied().chain(["-n", "shop", "--as=jane"]).collect()
    };
    let create = as_jane(&["create", "role", "mine", "--verb=get", "--resource=pods"]);
    wait_for("the roles", PATIENCE, || kubectl.run(&create).ok())?;
    let refused = |args: &[&'static str], message: &str| -> Result {
        // Each command of kubectl prefixes the server's message with a text of its own.
        let told = kubectl.fails(&as_jane(args))?;
        assert!(told.trim_end().ends_with(message), "{told}");
        Ok(())
    };
    refused(
        &["get", "configmaps"],
        "Error from server (Forbidden): configmaps is forbidden: User \"jane\" cannot list resource \"configmaps\" in API \
         group \"\" in the namespace \"shop\"",
    )?;
    refused(
        &["delete", "deployment", "web"],
        "Error from server (Forbidden): deployments.apps \"web\" is forbidden: User \"jane\" cannot delete resource \
         \"deployments\" in API group \"apps\" in the namespace \"shop\"",
    )?;
    refused(
        &["create", "role", "more", "--verb=get,delete", "--resource=pods,secrets"],
        "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"jane\" \
         (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\"]}\n\
         {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"delete\"]}",
    )?;
    refused(
        &["create", "rolebinding", "more", "--clusterrole=cluster-admin", "--user=jane"],
        "rolebindings.rbac.authorization.k8s.io \"more\" is forbidden: user \"jane\" \
         (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}",
    )?;
    let held = as_jane(&["create", "rolebinding", "held", "--role=mine", "--user=joe"]);
    assert_eq!(kubectl.run(&held)?, "rolebinding.rbac.authorization.k8s.io/held created\n");
    Ok(())
}

#[test]
fn helm_reads_releases_for_who_may_read_them() -> Result {
    let server = start()?;
    let (kubectl, helm) = (Cli::kubectl(&server)?, Cli::helm(&server)?);
    write_chart(&helm)?;
    helm.run(&["install", "web", "./chart", "--namespace", "shop", "--create-namespace"])?;
    kubectl.run(&["create", "role", "releases", "-n", "shop", "--verb=get,list", "--resource=secrets"])?;
    kubectl.run(&["create", "rolebinding", "releases", "-n", "shop", "--role=releases", "--user=jane"])?;
    let list = ["list", "--namespace", "shop", "--kube-as-user", "jane", "--short"];
    let listed = wait_for("the role", PATIENCE, || helm.run(&list).ok())?;
    assert_eq!(listed, "web\n");
    let why = helm.fails(&["uninstall", "web", "--namespace", "shop", "--kube-as-user", "jane"])?;
    assert!(why.contains("failed to delete release: web"), "{why}");
    assert_eq!(helm.run(&list)?, "web\n");
    let why = helm.fails(&["list", "--namespace", "default", "--kube-as-user", "jane"])?;
    assert!(why.contains("User \"jane\" cannot list resource \"secrets\""), "{why}");
    Ok(())
}
