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
    offload::weigh,
    response::{Response, with_content_type},
};
use pintle_machinery::{Status, options::ListOptions};
use std::sync::Arc;

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
