//! Serves deletes of collections: a list, and a delete of each listed object.

use super::{
    admission::Admission,
    delete,
    list_body::{ListBody, ListForm, Objects},
    page::Page,
    request_scope::RequestScope,
    selection::Selection,
};
use crate::base::{
    body::RequestBody,
    deadline::RequestDeadline,
    negotiation::Offers,
    response::{Response, with_content_type},
};
use crate::metrics::BodyVerb;
use futures_util::future::join_all;
use pintle_admission::{Operation, RequestOptions};
use pintle_machinery::{FieldError, FieldPath, GroupKind, Status, options::IGNORE_STORE_READ_ERROR};
use pintle_offload::weigh;
use pintle_registry::RequestContext;
use std::sync::Arc;
use tokio::time::Instant;

/// Serves a DELETE of a collection. The response is the list of the selected objects, as they were.
///
/// # Errors
/// The `Status` for the client; objects deleted before a failure stay deleted.
pub(super) async fn delete_collection(
    scope: &RequestScope<'_>,
    body: RequestBody,
) -> Result<Response, Status> {
    let (accepted, include_object) = scope.form(Offers::List)?;
    let form = ListForm {
        resource: scope.resource_arc(),
        accepted,
        include_object,
        now: scope.now,
        may_compress: false,
    };
    // The options of the list are checked before the body is read.
    let mut list_options = scope.list_options()?;
    if list_options.limit == 0 {
        // The collection is read in pages, of which all are deleted: a resourceVersion is that of exactly one state.
        list_options.limit = usize::MAX;
    }
    let selection = Arc::new(Selection::parse_with_shards(scope, &list_options)?);
    let options = delete::options(scope, body, BodyVerb::DeleteCollection).await?;
    if options.ignore_store_read_error {
        let path = FieldPath::new(IGNORE_STORE_READ_ERROR);
        let detail = "is not allowed with DELETECOLLECTION, try again after removing the option";
        let kind = GroupKind::new("meta.k8s.io", "DeleteOptions");
        return Err(Status::invalid(&kind, "", &vec![FieldError::invalid(&path, true, detail)]));
    }
    let store = scope.store()?;
    scope.warnings.extend(scope.resource.resource.strategy.warnings_on_delete(&options));
    let page = Page::select(store, scope, &list_options, selection).await?;
    let kind = scope.resource.resource.group_version_kind();
    let mut items = Vec::new();
    let deadline = scope.deadline.map(RequestDeadline::at);
    let objects: Vec<_> = page.objects(None).cloned().collect();
    for together in objects.chunks(scope.server.delete_collection_workers.max(1)) {
        // The request has timed out: the rest of the collection is left to the client's next request.
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Status::allotted_timeout());
        }
        let deletes = together.iter().map(|object| async {
            // The namespace is that of the path: nothing is deleted without one.
            let context = RequestContext { name: object.name(), ..scope.context(options.dry_run) };
            let admission = Admission {
                scope,
                operation: Operation::Delete,
                name: &scope.info.name,
                kind: &kind,
                context: &context,
                options: RequestOptions::Delete(&options),
            };
            match store.delete(&context, &options, &admission).await {
                Err(status) if status.code != 404 => Err(status),
                _ => Ok(()),
            }
        });
        join_all(deletes).await.into_iter().collect::<Result<(), Status>>()?;
        items.extend_from_slice(together);
    }
    // The namespace controller would take the collection for empty otherwise.
    store.require_readable(&page.snapshot, &page.prefix)?;
    weigh(items.iter().map(|object| object.size()).sum()).await;
    form.encoder().convert(&items).await?;
    let media_type = form.accepted.media_type;
    let ListBody { body, .. } =
        form.body(Objects::Items { items: items.into(), of: page.state().clone() }, &page.metadata).await?;
    Ok(with_content_type(200, media_type.as_str(), body))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{CONFIG_MAPS, TestServer};
    use pintle_machinery::json;

    #[tokio::test]
    async fn the_selected_objects_are_deleted_and_returned() {
        let server = TestServer::start().await;
        for (name, app) in [("a", "x"), ("b", "y"), ("c", "x")] {
            server.create_config_map(name, app).await;
        }
        let names = |list: &pintle_machinery::Value| -> Vec<String> {
            let items = list["items"].as_array().unwrap().iter();
            items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
        };
        let uri = format!("{CONFIG_MAPS}?labelSelector=app%3Dx");
        let (code, deleted) = server.send("DELETE", &uri, json!(null)).await;
        assert_eq!((code, names(&deleted)), (200, vec!["a".to_owned(), "c".to_owned()]));
        let (_, rest) = server.send("GET", CONFIG_MAPS, json!(null)).await;
        assert_eq!(names(&rest), ["b"]);
    }

    #[tokio::test]
    async fn a_resource_version_selects_exactly_one_state() {
        let server = TestServer::start().await;
        let (_, empty) = server.send("GET", CONFIG_MAPS, json!(null)).await;
        let empty = empty["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        server.create_config_map("a", "x").await;
        let uri = format!("{CONFIG_MAPS}?resourceVersion={empty}");
        let (code, list) = server.send("DELETE", &uri, json!(null)).await;
        assert_eq!(
            (code, &list["items"], &list["metadata"]["resourceVersion"]),
            (200, &json!([]), &json!(empty))
        );
        assert_eq!(server.send("GET", &format!("{CONFIG_MAPS}/a"), json!(null)).await.0, 200);
    }

    #[tokio::test]
    async fn a_dry_run_and_an_option_for_single_objects_delete_nothing() {
        let server = TestServer::start().await;
        server.create_config_map("a", "x").await;
        let (code, list) = server.send("DELETE", &format!("{CONFIG_MAPS}?dryRun=All"), json!(null)).await;
        assert_eq!((code, list["items"].as_array().unwrap().len()), (200, 1));
        let (code, status) =
            server.send("DELETE", CONFIG_MAPS, json!({"preconditions": {"uid": "other"}})).await;
        assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
        assert_eq!(server.send("GET", &format!("{CONFIG_MAPS}/a"), json!(null)).await.0, 200);
    }

    #[tokio::test]
    async fn the_options_of_the_list_are_checked_before_those_of_the_deletion() {
        let server = TestServer::start().await;
        let uri = format!("{CONFIG_MAPS}?resourceVersionMatch=Exact&dryRun=None");
        let (code, status) = server.send("DELETE", &uri, json!(null)).await;
        assert_eq!((code, &status["details"]["kind"]), (422, &json!("ListOptions")));
        let uri = format!("{CONFIG_MAPS}?limit=x");
        let (_, status) = server.send("DELETE", &uri, json!({"gracePeriodSeconds": 1.5})).await;
        assert_eq!(status["message"], "strconv.ParseInt: parsing \"x\": invalid syntax");
    }
}
