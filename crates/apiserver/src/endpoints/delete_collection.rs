//! Deletes of collections: a list, and a delete of each object on it.

use super::{Exchange, create::AdmissionValidation, delete, list, selection::Selection};
use crate::{
    body::{Body, RequestBody},
    endpoints::encoding::{Encoder, IncludeObject, partial, partial_list},
    negotiation::{MediaType, Offers, Transform},
    response::{Response, with_content_type},
};
use pintle_admission::Operation;
use pintle_machinery::{
    FieldError, FieldPath, GroupKind, Status, Value,
    options::{IGNORE_STORE_READ_ERROR, ListOptions},
};
use pintle_registry::RequestContext;
use std::sync::Arc;

/// Serves a DELETE of a collection. The answer is the list of what was selected, as it was.
///
/// # Errors
/// The `Status` for the client; objects deleted before a failure stay deleted.
pub(super) async fn delete_collection(
    exchange: &Exchange<'_>,
    body: RequestBody,
) -> Result<Response, Status> {
    let encoder = Encoder {
        resource: exchange.resource,
        accepted: exchange.accepted(Offers::List)?,
        include_object: IncludeObject::parse(exchange.query.first("includeObject"))?,
        now: exchange.now,
    };
    let options = delete::options(exchange, body).await?;
    if options.ignore_store_read_error {
        let path = FieldPath::new(IGNORE_STORE_READ_ERROR);
        let detail = "is not allowed with DELETECOLLECTION, try again after removing the option";
        let kind = GroupKind::new("meta.k8s.io", "DeleteOptions");
        return Err(Status::invalid(&kind, "", &vec![FieldError::invalid(&path, true, detail)]));
    }
    exchange.warnings.extend(exchange.resource.resource.strategy.warnings_on_delete(&options));
    let list_options = ListOptions::parse(exchange.query.pairs())?;
    let store = exchange.store()?;
    let selection = Arc::new(Selection::parse(exchange, &list_options)?);
    let page = list::select(store, exchange, &list_options, selection).await?;
    let kind = exchange.resource.resource.group_version_kind();
    let mut items = Vec::new();
    for object in page.objects(None) {
        let context = RequestContext {
            name: object.name(),
            namespace: object.namespace(),
            ..exchange.context(options.dry_run)
        };
        exchange.admit(Operation::Delete, &kind, &context, Value::Null, None).await?;
        let validation =
            AdmissionValidation { exchange, operation: Operation::Delete, kind: &kind, context: &context };
        match store.delete(&context, &options, &validation).await {
            Ok(_) => {}
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
        }
        items.push(object.clone());
    }
    // Who deletes a namespace takes this for an empty one otherwise.
    store.require_readable(&page.snapshot, &page.prefix)?;
    encoder.convert(&items).await?;
    let bytes = match &encoder.accepted.transform {
        Some((Transform::PartialObjectMetadata, version)) => {
            let mut rows = Vec::new();
            for item in &items {
                rows.push(partial(&encoder.tree(item)?, version));
            }
            partial_list(version, &page.metadata, rows.into(), &encoder.accepted)?
        }
        _ if encoder.accepted.media_type == MediaType::Protobuf => {
            list::protobuf_list(&encoder, items.iter(), &page.metadata)?
        }
        _ => encoder.finish_json(list::json_list(&encoder, items.iter(), &page.metadata)?)?,
    };
    Ok(with_content_type(200, encoder.accepted.media_type.as_str(), Body::from(bytes)))
}
