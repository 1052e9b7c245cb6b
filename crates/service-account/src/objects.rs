//! The objects that tokens are about.

use bytes::Bytes;
use jiff::Timestamp;
use pintle_auth::BoxFuture;
use pintle_machinery::{GroupResource, Status, meta::parse_time};
use serde::Deserialize;
use std::{borrow::Cow, collections::BTreeMap};

/// The kinds that tokens are bound to.
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

/// An object as it was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// Another one after each change of the object.
    pub revision: u64,
    /// The object.
    pub json: Bytes,
}

/// Finds objects.
pub trait ObjectGetter: Send + Sync {
    /// The object as the cache has it, which may be a little behind, or, when `is_consistent`, as it was when this was
    /// called. The first costs no question to the store.
    ///
    /// # Errors
    /// When it cannot be read.
    fn find<'a>(
        &'a self,
        kind: ObjectKind,
        namespace: &'a str,
        name: &'a str,
        is_consistent: bool,
    ) -> BoxFuture<'a, Result<Option<Found>, Status>>;

    /// Sets a label of a secret, if it is still that with this uid. It may fail, and nobody hears of it.
    fn label_secret<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        uid: &'a str,
        label: (&'static str, String),
    ) -> BoxFuture<'a, ()>;
}

/// As much of an object as decides on tokens.
#[derive(Deserialize)]
pub(crate) struct Object<'a> {
    #[serde(borrow, default)]
    pub(crate) metadata: Metadata<'a>,
    /// Of a secret.
    #[serde(borrow, default, rename = "type")]
    pub(crate) secret_type: Cow<'a, str>,
    /// Of a secret.
    #[serde(borrow)]
    pub(crate) data: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
    /// Of a service account.
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

/// The same of an object of any kind.
#[derive(Deserialize)]
pub(crate) struct AnyObject<'a> {
    #[serde(borrow, default)]
    pub(crate) metadata: Metadata<'a>,
}

impl Metadata<'_> {
    /// Since when it is being deleted. A time that cannot be read is long ago.
    pub(crate) fn deleted_at(&self) -> Option<Timestamp> {
        let text = self.deletion_timestamp.as_deref()?;
        Some(parse_time(text).unwrap_or(Timestamp::UNIX_EPOCH))
    }

    pub(crate) fn label(&self, key: &str) -> &str {
        self.labels.as_ref().and_then(|labels| labels.get(key)).map(|value| &**value).unwrap_or_default()
    }
}

/// A cached object that cannot be read, which would be a defect.
pub(crate) fn unreadable(error: &serde_json::Error) -> Status {
    Status::internal_error(format!("a cached object cannot be read: {error}"))
}
