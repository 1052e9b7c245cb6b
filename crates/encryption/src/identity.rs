//! Unencrypted values: for resources without a rule, and for the `identity` provider.

use crate::failure::Failure;
use bytes::Bytes;
use pintle_storage::{BoxFuture, Key, TransformError, Transformed, ValueTransformer};
use std::sync::Arc;

const ENCRYPTED: &[u8] = b"k8s:enc:";

/// The transformer without encryption. It refuses to read encrypted values, which would otherwise be treated as
/// damaged objects.
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
        Box::pin(std::future::ready(opened.map(|value| Transformed { value: value.into(), stale: false })))
    }

    fn stores_values_as_they_are(&self) -> bool {
        true
    }

    fn is_plain(&self, stored: &[u8]) -> bool {
        is_plain(stored)
    }
}

/// Whether the value is unencrypted. JSON begins with `{` and protobuf with `k8s` and a zero byte, so only encrypted
/// values have this prefix.
pub(crate) fn is_plain(stored: &[u8]) -> bool {
    !stored.starts_with(ENCRYPTED)
}

/// The value, unless it is encrypted.
pub(crate) fn open(stored: &Bytes) -> Result<Bytes, Failure> {
    match is_plain(stored) {
        true => Ok(stored.clone()),
        false => Err(Failure::new("identity transformer tried to read encrypted data")),
    }
}
