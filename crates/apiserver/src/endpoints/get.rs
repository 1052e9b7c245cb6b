//! Serves reads of one object.

use super::{encoder::Encoder, request_scope::RequestScope};
use crate::{
    base::response::{Response, with_content_type},
    registry::Store,
};
use pintle_cacher::Freshness;
use pintle_machinery::{
    Status,
    options::{parse_list_resource_version, parse_resource_version},
};
use pintle_offload::weigh;
use pintle_storage::Revision;
use pintle_telemetry::event;
use std::sync::Arc;

/// Serves a GET of an object, or of a subresource that reads as the whole object.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn get(scope: &RequestScope<'_>) -> Result<Response, Status> {
    let (accepted, include_object) = scope.form(scope.object_forms())?;
    scope.check_export()?;
    let store = scope.store()?;
    let freshness = freshness(scope, store)?;
    let namespace = if store.resource().is_namespaced() { scope.info.namespace.as_str() } else { "" };
    let key = store.object_key(namespace, &scope.info.name)?;
    event!("About to Get from storage");
    let object = store.find(&key, freshness).await?;
    let object = object
        .ok_or_else(|| Status::not_found(&scope.resource.resource.group_resource(), &scope.info.name))?;
    let encoder = Encoder { resource: scope.resource, accepted, include_object, now: scope.now };
    if !encoder.is_cached_json() {
        weigh(object.size()).await;
    }
    let object = match scope.resource.resource.converter {
        Some(_) => Arc::new(object.opened()),
        None => object,
    };
    encoder.convert([&object]).await?;
    let content_type = encoder.accepted.media_type.as_str();
    Ok(with_content_type(200, content_type, encoder.object(&object)?))
}

/// The state that the query asks for.
///
/// # Errors
/// 400 or 500 for a resourceVersion that is no number.
pub(super) fn freshness(scope: &RequestScope<'_>, store: &Store) -> Result<Freshness, Status> {
    let version = scope.query.first("resourceVersion").unwrap_or_default();
    let parsed = match store.cacher().is_read_cached() {
        true => parse_resource_version(version)?,
        false => parse_list_resource_version(version)?,
    };
    Ok(match version {
        "" => Freshness::Consistent,
        "0" => Freshness::Any,
        _ => Freshness::NotOlderThan(Revision(parsed)),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{CONFIG_MAPS, TestServer};
    use pintle_machinery::json;

    #[tokio::test]
    async fn objects_are_read_by_name_and_revision() {
        let server = TestServer::start().await;
        let created = server.create_config_map("a", "x").await;
        let get =
            async |suffix: &str| server.send("GET", &format!("{CONFIG_MAPS}/{suffix}"), json!(null)).await;
        assert_eq!(get("a").await, (200, created.clone()));
        assert_eq!(get("a?resourceVersion=0").await, (200, created));
        let (code, status) = get("b").await;
        assert_eq!((code, &status["message"]), (404, &json!("configmaps \"b\" not found")));
        let (code, status) = get("a?resourceVersion=x").await;
        let message =
            "resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax";
        assert_eq!((code, &status["message"]), (500, &json!(message)));
    }
}
