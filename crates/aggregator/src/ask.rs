//! The questions that the aggregator asks the servers behind API services on its own behalf.

use crate::backend::{Backend, Fetched};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT, IF_NONE_MATCH},
};
use pintle_registry::BoxFuture;
use std::time::Duration;

/// A question to a backend: a GET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// The path, with a leading slash.
    pub(crate) path: String,
    pub(crate) user: OwnUser,
    pub(crate) accept: Option<&'static str>,
    /// The entity tag of the document that is known.
    pub(crate) etag: Option<String>,
    pub(crate) timeout: Duration,
    /// The maximum size of the answer, in bytes.
    pub(crate) limit: usize,
}

/// The users that the aggregator is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnUser {
    KubeAggregator,
    KubeAggregatorOfMasters,
    Aggregator,
}

/// Asks backends.
pub(crate) trait Ask: Send + Sync {
    /// Asks a question.
    ///
    /// # Errors
    /// The reason why there is no complete answer.
    fn ask<'a>(&'a self, backend: &'a Backend, question: Question) -> BoxFuture<'a, Result<Fetched, String>>;
}

/// Asks over the network. The address of a service is resolved for each question.
pub(crate) struct Network;

impl Ask for Network {
    fn ask<'a>(&'a self, backend: &'a Backend, question: Question) -> BoxFuture<'a, Result<Fetched, String>> {
        Box::pin(async move {
            let host = backend.locate().await?;
            let url = format!("https://{host}{}", question.path);
            backend.fetch(&url, question.headers(), question.timeout, question.limit).await
        })
    }
}

impl Question {
    fn headers(&self) -> HeaderMap {
        let (name, group) = match self.user {
            OwnUser::KubeAggregator => ("system:kube-aggregator", None),
            OwnUser::KubeAggregatorOfMasters => ("system:kube-aggregator", Some("system:masters")),
            OwnUser::Aggregator => ("system:aggregator", None),
        };
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static("x-remote-user"), HeaderValue::from_static(name));
        if let Some(group) = group {
            headers.insert(HeaderName::from_static("x-remote-group"), HeaderValue::from_static(group));
        }
        if let Some(accept) = self.accept {
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
        }
        if let Some(etag) = self.etag.as_ref().and_then(|etag| HeaderValue::from_str(etag).ok()) {
            headers.insert(IF_NONE_MATCH, etag);
        }
        headers
    }
}

/// The entity tag of an answer.
pub(crate) fn etag_of(fetched: &Fetched) -> Option<String> {
    let etag = fetched.headers.get(http::header::ETAG)?.to_str().ok()?;
    (!etag.is_empty()).then(|| etag.to_owned())
}
