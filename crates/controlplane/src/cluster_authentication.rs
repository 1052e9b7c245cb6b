//! What extension servers read to authenticate requests that this server forwards
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/#original-request-username-and-group>),
//! and since when the use of legacy service account tokens is tracked.

use crate::Config;
use crate::objects::{core, create_if_missing, create_or_change};
use crate::system_namespaces::KUBE_SYSTEM;
use jiff::Timestamp;
use pintle_machinery::{Map, Status, ValueExt};
use pintle_registry::Registry;
use serde_json::json;

const AUTHENTICATION: &str = "extension-apiserver-authentication";
const TOKEN_TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";

pub(crate) async fn reconcile(
    registry: &dyn Registry,
    config: &Config,
    now: Timestamp,
) -> Result<(), Status> {
    tokio::try_join!(publish_authentication(registry, config), mark_token_tracking(registry, now))?;
    Ok(())
}

async fn publish_authentication(registry: &dyn Registry, config: &Config) -> Result<(), Status> {
    let data: Map = config
        .cluster_authentication
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| (key.clone(), value.clone().into()))
        .collect();
    if data.is_empty() {
        return Ok(());
    }
    let object = config_map(AUTHENTICATION, &data);
    create_or_change(registry, &core("configmaps"), KUBE_SYSTEM, object, |config_map| {
        config_map.object_at_mut("data").extend(data.clone());
    })
    .await
}

async fn mark_token_tracking(registry: &dyn Registry, now: Timestamp) -> Result<(), Status> {
    let mut since = Map::new();
    since.insert("since".to_owned(), now.strftime("%Y-%m-%d").to_string().into());
    let object = config_map(TOKEN_TRACKING, &since);
    create_if_missing(registry, &core("configmaps"), KUBE_SYSTEM, object).await?;
    Ok(())
}

fn config_map(name: &str, data: &Map) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": KUBE_SYSTEM},
        "data": data,
    })
}
