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

    fn out_of_storage<'a>(
        &'a self,
        _: &'a Key,
        stored: Bytes,
    ) -> BoxFuture<'a, Result<Transformed, TransformError>> {
        let opened = open(&stored).map_err(TransformError::from);
        Box::pin(std::future::ready(opened.map(|value| Transformed { value, stale: false })))
    }

    fn stores_values_as_they_are(&self) -> bool {
        true
    }

    fn is_plain(&self, stored: &[u8]) -> bool {
        is_plain(stored)
    }
}

/// Whether the value is not an encrypted one. JSON begins with `{` and protobuf with `k8s` and a zero byte, so that nothing
/// else begins like this.
pub(crate) fn is_plain(stored: &[u8]) -> bool {
    !stored.starts_with(ENCRYPTED)
}

/// The value, unless it is an encrypted one.
pub(crate) fn open(stored: &Bytes) -> Result<Bytes, Failure> {
    match is_plain(stored) {
        true => Ok(stored.clone()),
        false => Err(Failure::new("identity transformer tried to read encrypted data")),
    }
}
