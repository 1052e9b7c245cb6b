//! Values as they are: for resources that no rule names, and for the `identity` provider.

use crate::failure::Failure;
use bytes::Bytes;
use pintle_storage::{BoxFuture, Key, TransformError, Transformed, ValueTransformer};
use std::sync::Arc;

const ENCRYPTED: &[u8] = b"k8s:enc:";

/// The transformer that encrypts nothing. It refuses to read what was encrypted, which would be taken for a damaged
/// object otherwise.
pub fn identity() -> Arc<dyn ValueTransformer> {
    Arc::new(Identity)
}

struct Identity;

impl ValueTransformer for Identity {
    fn to_storage<'a>(&'a self, _: &'a Key, value: Bytes) -> BoxFuture<'a, Result<Bytes, TransformError>> {
        Box::pin(std::future::ready(Ok(value)))
    }

    fn from_storage<'a>(
        &'a self,
        _: &'a Key,
        stored: Bytes,
    ) -> BoxFuture<'a, Result<Transformed, TransformError>> {
        let opened = open(&stored).map_err(TransformError::from);
        Box::pin(std::future::ready(opened.map(|value| Transformed { value, stale: false })))
    }
}

/// The value, unless it is an encrypted one. JSON begins with `{` and protobuf with `k8s` and a zero byte, so that
/// nothing else begins like this.
pub(crate) fn open(stored: &Bytes) -> Result<Bytes, Failure> {
    match stored.starts_with(ENCRYPTED) {
        true => Err(Failure::new("identity transformer tried to read encrypted data")),
        false => Ok(stored.clone()),
    }
}
