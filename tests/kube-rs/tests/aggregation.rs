//! Tests kube-rs with a kind of an extension API server behind the aggregator, in a network of its own.

use futures_util::TryStreamExt;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{
        DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams, WatchEvent,
        WatchParams,
    },
    config::{KubeConfigOptions, Kubeconfig},
    discovery,
};
use pintle_harness::{ExtensionServer, Server, in_own_network, is_in_own_network};
use serde_json::json;
use std::{path::PathBuf, pin::pin, time::Duration};
use tokio::time::timeout;

type Result<T = ()> = std::result::Result<T, pintle_harness::Error>;

const PATIENCE: Duration = Duration::from_secs(30);

fn variable(name: &str) -> Result<PathBuf> {
    let value =
        std::env::var_os(name).ok_or_else(|| format!("{name} is not set: run `cargo xtask test e2e`"))?;
    Ok(value.into())
}

#[test]
fn a_kind_of_an_extension_server_is_used_like_any_other() -> Result {
    if !is_in_own_network() {
        let output = in_own_network(std::env::current_exe()?).arg("--nocapture").output()?;
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return Ok(());
    }
    let server = Server::start(
        pintle_harness::Config::new(variable("PINTLE_SERVER")?).flag("--enable-aggregator-routing"),
    )?;
    let _extension = ExtensionServer::start(&variable("PINTLE_EXTENSION_SERVER")?, &server, &[])?;
    tokio::runtime::Runtime::new()?.block_on(use_kind(&server))
}

async fn use_kind(server: &Server) -> Result {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig())?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let kind = GroupVersionKind::gvk("example.pintle.dev", "v1", "Flunder");
    let (resource, _) = discovery::pinned_kind(&client, &kind).await?;
    assert_eq!(resource.plural, "flunders");
    let flunders: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    let flunder = DynamicObject::new("one", &resource).data(json!({"spec": {"size": 1}}));
    let created = flunders.create(&PostParams::default(), &flunder).await?;
    let from = created.resource_version().ok_or("no resource version")?;
    let mut events = pin!(flunders.watch(&WatchParams::default(), &from).await?);
    let patch =
        Patch::Apply(json!({"apiVersion": "example.pintle.dev/v1", "kind": "Flunder", "spec": {"size": 2}}));
    let patched = flunders.patch("one", &PatchParams::apply("test").force(), &patch).await?;
    assert_eq!(patched.data["spec"]["size"], 2);
    flunders.delete("one", &DeleteParams::default()).await?;
    let mut seen = Vec::new();
    while let Some(event) = timeout(PATIENCE, events.try_next()).await?? {
        match event {
            WatchEvent::Modified(object) => seen.push(format!("modified to {}", object.data["spec"]["size"])),
            WatchEvent::Deleted(_) => {
                seen.push("deleted".to_owned());
                break;
            }
            other => seen.push(format!("{other:?}")),
        }
    }
    assert_eq!(seen, ["modified to 2", "deleted"]);
    Ok(())
}
