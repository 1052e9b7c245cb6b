//! Tests that servers of one etcd publish their storage versions beside each other (gate `StorageVersionAPI`).

use crate::Result;
use pintle_e2e::{Cli, config};
use pintle_harness::{Etcd, Server};
use serde_json::Value;
use std::{collections::BTreeSet, thread};

#[test]
fn servers_that_start_at_once_have_an_entry_each() -> Result {
    let etcd = Etcd::start(1)?;
    let urls = etcd.urls();
    let start = |name: &str| -> Result<Server> {
        let config = config()?
            .hostname(name)
            .flag(format!("--etcd-servers={urls}"))
            .flag("--feature-gates=StorageVersionAPI=true")
            .flag("--runtime-config=internal.apiserver.k8s.io/v1alpha1=true");
        Server::start(config)
    };
    let (one, two) = thread::scope(|scope| {
        let one = scope.spawn(|| start("one"));
        let two = start("two");
        (one.join().unwrap(), two)
    });
    let (one, two) = (one?, two?);

    let kubectl = Cli::kubectl(&one)?;
    let leases =
        kubectl.json(&["get", "leases", "-n", "kube-system", "-l", "apiserver.kubernetes.io/identity"])?;
    let items = |list: &Value| list["items"].as_array().cloned().unwrap_or_default();
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let servers: BTreeSet<String> = items(&leases).iter().map(name).collect();
    assert_eq!(servers.len(), 2);
    let versions = kubectl.json(&["get", "storageversions"])?;
    assert!(items(&versions).len() > 50);
    for version in items(&versions) {
        let status = &version["status"];
        let entries = status["storageVersions"].as_array().ok_or("no servers")?;
        let of = |entry: &Value| entry["apiServerID"].as_str().unwrap_or_default().to_owned();
        assert_eq!(entries.iter().map(of).collect::<BTreeSet<_>>(), servers, "{version}");
        assert_eq!(status["commonEncodingVersion"], entries[0]["encodingVersion"], "{version}");
        assert_eq!(status["conditions"][0]["status"], "True", "{version}");
    }
    drop((one, two));
    Ok(())
}
