//! Serves lists. [`super::page`] selects the objects, [`super::list_body`] writes the response.

use super::{
    encoder::IncludeObject,
    list_body::{ListForm, Objects},
    page::Page,
    request_scope::RequestScope,
    selection::Selection,
};
use crate::base::{
    negotiation::Offers,
    response::{Response, with_content_type},
};
use pintle_machinery::{Status, options::ListOptions};
use pintle_offload::weigh;
use std::sync::{Arc, atomic::Ordering};

/// Serves a GET of a collection.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn list(scope: &RequestScope<'_>) -> Result<Response, Status> {
    let accepted = scope.accepted(Offers::List)?;
    let include_object = IncludeObject::parse(scope.query.first("includeObject"))?;
    let mut options = ListOptions::parse(scope.query.pairs())?;
    if !scope.info.name.is_empty() {
        options.select_name(&scope.info.name)?;
    }
    let store = scope.store()?;
    let selection = Arc::new(Selection::parse(scope, &options)?);
    let page = Page::select(store, scope, &options, selection).await?;
    if store.cacher().is_read_cached() {
        store.cacher().metrics().lists.fetch_add(1, Ordering::Relaxed);
    }
    let unreadable = page.unreadable();
    if unreadable > 0 {
        // Kube-apiserver fails the whole list then. Here the readable objects are listed, with a warning.
        let resource = scope.resource.resource.group_resource();
        scope.warnings.add(format!(
            "{unreadable} {resource} could not be read from storage and are missing from this list"
        ));
    }
    let content_type = accepted.media_type;
    let form = ListForm { resource: scope.resource_arc(), accepted, include_object, now: scope.now };
    let encoder = form.encoder();
    if !encoder.is_cached_json() || scope.resource.resource.converter.is_some() {
        weigh(page.size()).await;
    }
    encoder.convert(page.objects(None)).await?;
    drop(encoder);
    let metadata = page.metadata.clone();
    let body = form.body(Objects::Page { page, after: None }, &metadata).await?;
    Ok(with_content_type(200, content_type.as_str(), body))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{CONFIG_MAPS, TestServer, WIDGETS, widget};
    use serde_json::json;

    #[tokio::test]
    async fn a_list_is_selected_and_paged() {
        let server = TestServer::start().await;
        for (name, app) in [("a", "x"), ("b", "y"), ("c", "x")] {
            server.create_config_map(name, app).await;
        }
        let list = async |query: &str| {
            let (code, list) = server.send("GET", &format!("{CONFIG_MAPS}?{query}"), json!(null)).await;
            assert_eq!(code, 200, "{list}");
            let items = list["items"].as_array().unwrap().iter();
            let names: Vec<_> = items.map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
            (names.join(","), list["metadata"].clone())
        };
        assert_eq!(list("labelSelector=app%3Dx").await.0, "a,c");
        assert_eq!(list("fieldSelector=metadata.name%3Db").await.0, "b");
        let (names, metadata) = list("limit=2").await;
        assert_eq!((names.as_str(), &metadata["remainingItemCount"]), ("a,b", &json!(1)));
        let (names, metadata) = list(&format!("continue={}", metadata["continue"].as_str().unwrap())).await;
        assert_eq!((names.as_str(), &metadata["continue"]), ("c", &json!(null)));
        let uri = format!("{CONFIG_MAPS}?fieldSelector=data%3Db");
        let (code, status) = server.send("GET", &uri, json!(null)).await;
        let message =
            "\"data\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
        assert_eq!((code, &status["message"]), (400, &json!(message)));
    }

    #[tokio::test]
    async fn a_list_of_maps_has_sorted_members_and_items_with_type_metadata() {
        let server = TestServer::start().await;
        assert_eq!(server.send("POST", WIDGETS, widget("a")).await.0, 201);
        let (_, object) = server.send("GET", &format!("{WIDGETS}/a"), json!(null)).await;
        let (_, list) = server.send("GET", WIDGETS, json!(null)).await;
        assert_eq!(list["items"], json!([object]));
        assert_eq!(list["metadata"]["continue"], "");
        let text = server.text(WIDGETS).await;
        assert!(
            text.starts_with(r#"{"apiVersion":"example.com/v1","items":[{"apiVersion":"example.com/v1","#)
        );
        assert!(text.contains(r#"}],"kind":"WidgetList","metadata":{"#), "{text}");
        let text = server.text(CONFIG_MAPS).await;
        assert!(text.starts_with(r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"#), "{text}");
        let (code, status) =
            server.send("GET", &format!("{WIDGETS}?fieldSelector=spec.size%3D1"), json!(null)).await;
        assert_eq!((code, &status["message"]), (400, &json!("field label not supported: spec.size")));
    }
}
