//! The objects that tokens refer to.

use bytes::Bytes;
use jiff::Timestamp;
use pintle_auth::BoxFuture;
use pintle_machinery::{GroupResource, Status, meta::parse_time};
use serde::Deserialize;
use std::{borrow::Cow, collections::BTreeMap};

/// The kinds of objects that tokens are bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the kinds' own and say it")]
pub enum ObjectKind {
    ServiceAccount,
    Secret,
    Pod,
    Node,
}

impl ObjectKind {
    /// The resource of the kind.
    pub fn resource(self) -> GroupResource {
        GroupResource::new(
            "",
            match self {
                ObjectKind::ServiceAccount => "serviceaccounts",
                ObjectKind::Secret => "secrets",
                ObjectKind::Pod => "pods",
                ObjectKind::Node => "nodes",
            },
        )
    }
}

/// An object that was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// Changes with each change of the object.
    pub revision: u64,
    /// The object's JSON.
    pub json: Bytes,
}

/// Looks up objects.
pub trait ObjectGetter: Send + Sync {
    /// The object from the cache, which may be slightly behind, or, with `is_consistent`, its state at the time of
    /// the call. Without it the store is not read.
    ///
    /// # Errors
    /// When the object cannot be read.
    /// When it cannot be read.
    fn find<'a>(
        &'a self,
        kind: ObjectKind,
        namespace: &'a str,
        name: &'a str,
        is_consistent: bool,
    ) -> BoxFuture<'a, Result<Option<Found>, Status>>;

    /// Sets a label of a secret, if it still has this uid. Failures are ignored.
    fn label_secret<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        uid: &'a str,
        label: (&'static str, String),
    ) -> BoxFuture<'a, ()>;
}

/// The parts of an object that decide on tokens.
#[derive(Deserialize)]
pub(crate) struct Object<'a> {
    #[serde(borrow, default)]
    pub(crate) metadata: Metadata<'a>,
    /// Only of a secret.
    #[serde(borrow, default, rename = "type")]
    pub(crate) secret_type: Cow<'a, str>,
    /// Only of a secret.
    #[serde(borrow)]
    pub(crate) data: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
    /// Only of a service account.
    #[serde(borrow)]
    pub(crate) secrets: Option<Vec<SecretReference<'a>>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Metadata<'a> {
    #[serde(borrow)]
    pub(crate) uid: Cow<'a, str>,
    #[serde(borrow, rename = "deletionTimestamp")]
    deletion_timestamp: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) labels: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct SecretReference<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
}

/// The metadata of an object of any kind.
#[derive(Deserialize)]
pub(crate) struct AnyObject<'a> {
    #[serde(borrow, default)]
    pub(crate) metadata: Metadata<'a>,
}

impl Metadata<'_> {
    /// The deletion timestamp; a malformed one counts as long past.
    pub(crate) fn deleted_at(&self) -> Option<Timestamp> {
        let text = self.deletion_timestamp.as_deref()?;
        Some(parse_time(text).unwrap_or(Timestamp::UNIX_EPOCH))
    }

    pub(crate) fn label(&self, key: &str) -> &str {
        self.labels.as_ref().and_then(|labels| labels.get(key)).map(|value| &**value).unwrap_or_default()
    }
}

/// The error for an undecodable cached object, which would be a defect.
pub(crate) fn unreadable(error: &serde_json::Error) -> Status {
    Status::internal_error(format!("a cached object cannot be read: {error}"))
}
