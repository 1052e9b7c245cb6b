//! Serves reads of objects that are computed, and not stored.

use super::{
    encoder::Encoder,
    list_body::{ListBody, ListForm, Objects},
    request_scope::RequestScope,
    selection::Selection,
};
use crate::base::{
    negotiation::Offers,
    response::{Response, with_content_type},
};
use pintle_cacher::{CachedObject, DecodedObject, Snapshot};
use pintle_machinery::{Status, Value, codec::json, json, meta::ObjectMeta};
use pintle_registry::ComputedObjects;
use pintle_storage::{Key, Revision};
use std::sync::Arc;

/// Serves a GET of an object.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn get(
    scope: &RequestScope<'_>,
    computed: &dyn ComputedObjects,
) -> Result<Response, Status> {
    let (accepted, include_object) = scope.form(Offers::Object)?;
    scope.check_export()?;
    let object = as_cached(scope, &computed.get(&scope.info.name).await?);
    let encoder = Encoder { resource: scope.resource, accepted, include_object, now: scope.now };
    Ok(with_content_type(200, encoder.accepted.media_type.as_str(), encoder.object(&object)?))
}

/// Serves a GET of the collection, which has no revision and no pages.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn list(
    scope: &RequestScope<'_>,
    computed: &dyn ComputedObjects,
) -> Result<Response, Status> {
    let (accepted, include_object) = scope.form(Offers::List)?;
    let options = scope.list_options()?;
    let selection = Selection::parse(scope, &options)?;
    let objects = computed.list().await;
    let items: Vec<_> = objects
        .iter()
        .map(|object| as_cached(scope, object))
        .filter(|object| selection.matches(object))
        .collect();
    let content_type = accepted.media_type;
    let form = ListForm {
        resource: scope.resource_arc(),
        accepted,
        include_object,
        now: scope.now,
        may_compress: false,
    };
    let ListBody { body, .. } =
        form.body(Objects::Items { items: items.into(), of: Snapshot::default() }, &json!({})).await?;
    Ok(with_content_type(200, content_type.as_str(), body))
}

/// Refuses a watch, since nothing tells of changes. Errors of the options come first.
///
/// # Errors
/// Always.
pub(super) fn refuse_watch(scope: &RequestScope<'_>) -> Result<Response, Status> {
    scope.form(Offers::List)?;
    let options = scope.list_options()?;
    Selection::parse(scope, &options)?;
    Err(Status::method_not_supported(&scope.resource.resource.group_resource(), "watch"))
}

/// The object in the form in which encoders read stored ones.
fn as_cached(scope: &RequestScope<'_>, object: &Value) -> Arc<CachedObject> {
    let mut json = json::encode(object, scope.resource.schema.get());
    json.push(b'\n');
    let decoded = DecodedObject {
        json: json.into(),
        packed: None,
        namespace: "".into(),
        name: object.name().into(),
        selectable: Arc::default(),
    };
    Arc::new(CachedObject::new(Key::new(format!("/{}", object.name())), Revision(0), decoded))
}

#[cfg(test)]
mod tests {
    use super::super::testing::TestServer;
    use pintle_machinery::json;

    const STATUSES: &str = "/api/v1/componentstatuses";

    #[tokio::test]
    async fn computed_objects_are_read_and_selected() {
        let server = TestServer::start().await;
        let object = |name: &str| {
            json!({"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name},
                "conditions": [{"type": "Healthy", "status": "True"}]})
        };
        let send = async |suffix: &str| server.send("GET", &format!("{STATUSES}{suffix}"), json!(null)).await;
        assert_eq!(send("/a").await, (200, object("a")));
        assert_eq!(send("/x").await.0, 404);
        let names = async |query: &str| {
            let (code, list) = send(query).await;
            assert_eq!((code, &list["metadata"]), (200, &json!({})), "{list}");
            let items = list["items"].as_array().unwrap().iter();
            items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("").await, ["a", "b"]);
        assert_eq!(names("?fieldSelector=metadata.name%3Db").await, ["b"]);
        assert!(names("?labelSelector=x").await.is_empty());
        let (code, status) = send("?watch=1").await;
        let message = "watch is not supported on resources of kind \"componentstatuses\"";
        assert_eq!((code, &status["message"]), (405, &json!(message)));
        assert_eq!(send("?watch=1&fieldSelector=spec.x%3D1").await.0, 400);
    }
}
