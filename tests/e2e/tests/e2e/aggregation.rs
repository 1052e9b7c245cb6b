//! Tests kubectl with an extension API server behind the aggregator, in a network of its own.

use crate::{Result, own_network};
use pintle_e2e::{Cli, PATIENCE, config, variable};
use pintle_harness::{ExtensionServer, Server, wait_for};
use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
};

fn in_network(test: &str, body: fn() -> Result) -> Result {
    own_network::in_network(&format!("aggregation::{test}"), body)
}

/// A server with an extension API server behind it. The server runs with the front-proxy certificates that it generates.
fn start() -> Result<(Server, ExtensionServer)> {
    let server = Server::start(config()?.flag("--enable-aggregator-routing"))?;
    let binary = PathBuf::from(variable("PINTLE_EXTENSION_SERVER")?);
    let extension = ExtensionServer::start(&binary, &server, &[])?;
    Ok((server, extension))
}

const FLUNDER: &str = "
apiVersion: example.pintle.dev/v1
kind: Flunder
metadata: {name: one}
spec: {size: 3}
";

#[test]
fn kubectl_uses_the_kinds_of_an_extension_server() -> Result {
    in_network("kubectl_uses_the_kinds_of_an_extension_server", || {
        let (server, _extension) = start()?;
        let kubectl = Cli::kubectl(&server)?;
        let run = |args: &str| kubectl.run(&args.split(' ').collect::<Vec<_>>());
        let resources = wait_for("the group in discovery", PATIENCE, || {
            run("api-resources --api-group example.pintle.dev").ok().filter(|text| text.contains("Flunder"))
        })?;
        assert!(resources.contains("fl "), "{resources}");
        let explained = wait_for("the documents", PATIENCE, || run("explain flunder.spec.size").ok())?;
        assert!(explained.contains("How large it is."), "{explained}");
        assert_eq!(kubectl.feed(&["apply", "-f", "-"], FLUNDER)?, "flunder.example.pintle.dev/one created\n");
        assert_eq!(
            kubectl.feed(&["apply", "-f", "-"], FLUNDER)?,
            "flunder.example.pintle.dev/one unchanged\n"
        );
        assert_eq!(
            run("get fl --no-headers -o custom-columns=NAME:.metadata.name,SIZE:.spec.size")?,
            "one   3\n"
        );
        let table = run("get flunders")?;
        assert!(table.starts_with("NAME   SIZE\none    3"), "{table}");

        let mut watch = kubectl.command(&["get", "flunder", "one", "--watch", "-o", "name"]).spawn()?;
        let stdout = watch.stdout.take().ok_or("no output")?;
        let mut lines = BufReader::new(stdout).lines();
        assert_eq!(lines.next().ok_or("no line")??, "flunder.example.pintle.dev/one");
        run("label flunder one a=b")?;
        assert_eq!(lines.next().ok_or("no line")??, "flunder.example.pintle.dev/one");
        watch.kill()?;
        watch.wait()?;

        let refused =
            kubectl.fails(&["patch", "flunder", "one", "--type=merge", "-p", r#"{"spec":{"size":0}}"#])?;
        assert!(refused.contains("spec.size in body should be greater than or equal to 1"), "{refused}");
        let forbidden = kubectl.fails(&["get", "flunders", "--as=stranger"])?;
        assert!(forbidden.contains(r#"User "stranger" cannot list resource "flunders""#), "{forbidden}");
        run("delete flunder one")?;
        Ok(())
    })
}

#[test]
fn a_dead_extension_server_keeps_nothing_else_from_working() -> Result {
    in_network("a_dead_extension_server_keeps_nothing_else_from_working", || {
        let (server, mut extension) = start()?;
        extension.kill()?;
        let kubectl = Cli::kubectl(&server)?;
        // A change of the API service has it checked at once.
        kubectl.run(&["label", "apiservice", ExtensionServer::API_SERVICE, "a=b"])?;
        let waited = kubectl.run(&[
            "wait",
            "apiservice",
            ExtensionServer::API_SERVICE,
            "--for=condition=Available=False",
            "--timeout=60s",
        ])?;
        assert!(waited.contains("condition met"), "{waited}");
        let failed = kubectl.fails(&["get", "--raw", "/apis/example.pintle.dev/v1/flunders"])?;
        assert!(failed.contains("(ServiceUnavailable)"), "{failed}");
        kubectl.run(&["create", "namespace", "other"])?;
        kubectl.run(&["create", "configmap", "one", "--from-literal=a=b", "-n", "other"])?;
        let listed = kubectl.run(&["get", "configmaps", "-n", "other", "-o", "name"])?;
        assert!(listed.contains("configmap/one"), "{listed}");
        Ok(())
    })
}

#[test]
fn an_extension_server_may_take_the_core_group() -> Result {
    in_network("an_extension_server_may_take_the_core_group", || {
        let (server, _extension) = start()?;
        let client = server.client()?;
        let set_service = |service: &str| -> Result {
            let patch = format!(
                r#"{{"spec":{{"insecureSkipTLSVerify":{},"service":{service}}}}}"#,
                service != "null"
            );
            let headers = [("content-type", "application/merge-patch+json")];
            let path = "/apis/apiregistration.k8s.io/v1/apiservices/v1.";
            let response = client.request("PATCH", path, &headers, patch.as_bytes())?;
            assert_eq!(response.status, 200, "{}", response.text());
            Ok(())
        };
        let wait_for_status = |status: u16| {
            wait_for("the status", PATIENCE, || {
                client.get("/api/v1/namespaces/default").ok().filter(|response| response.status == status)
            })
        };
        wait_for_status(200)?;
        // It does not serve the group, so the API service becomes unavailable.
        set_service(r#"{"namespace":"default","name":"extension"}"#)?;
        wait_for_status(503)?;
        assert_eq!(client.get("/apis/apps/v1/deployments")?.status, 200);
        set_service("null")?;
        wait_for_status(200)?;
        Ok(())
    })
}
