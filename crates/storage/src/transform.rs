//! Transforms values between the registry and the engine: other encodings, encryption.

use crate::{BoxFuture, Key, Payload};
use bytes::Bytes;

/// Transforms values into their stored form and back, such as JSON into protobuf, or plaintext into ciphertext.
///
/// Transformers form a chain ([`crate::TransformedStorage`]): the registry's value passes through them first to last,
/// and stored bytes last to first. Transformers that encrypt use the key as authenticated data, so that a stored
/// value is valid under its own key only.
pub trait ValueTransformer: Send + Sync + 'static {
    /// Transforms `value` into its stored form.
    ///
    /// # Errors
    /// When the value has no such form, or a service that the transformation needs (a KMS plugin) does not answer.
    fn to_storage<'a>(&'a self, key: &'a Key, value: Bytes) -> BoxFuture<'a, Result<Bytes, TransformError>>;

    /// Transforms stored bytes back into the value.
    ///
    /// # Errors
    /// When the stored bytes have no known form, are damaged, or were stored under another key.
    #[expect(
        clippy::wrong_self_convention,
        reason = "Kubernetes' name for it; the other way is `to_storage`"
    )]
    fn from_storage<'a>(
        &'a self,
        key: &'a Key,
        stored: Bytes,
    ) -> BoxFuture<'a, Result<Transformed, TransformError>>;

    /// The kind of failure that an error of [`ValueTransformer::from_storage`] is. Clients get different messages for
    /// the two kinds.
    fn read_error(&self, error: TransformError) -> ReadError {
        ReadError::Transform(error)
    }

    /// Whether [`ValueTransformer::to_storage`] stores every value unchanged. Writes skip a chain of only such
    /// transformers.
    fn stores_values_as_they_are(&self) -> bool {
        false
    }

    /// Whether these stored bytes are the unchanged value and not stale, by a cheap check: a fast path around
    /// [`ValueTransformer::from_storage`].
    fn is_plain(&self, _stored: &[u8]) -> bool {
        false
    }
}

/// A value transformed back from its stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transformed {
    /// The value. A transformer that has decoded the object carries its contents along.
    pub value: Payload,
    /// Whether writing the same value now would store different bytes (an older key, another encoding), so that an
    /// update without changes has to be written as well.
    pub stale: bool,
}

/// The reason why a value could not be transformed. The text contains no secret and no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TransformError(pub String);

/// The state of a [`crate::KeyValue`]'s value. Engines, which only store bytes, always return
/// [`ValueState::Current`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ValueState {
    /// Writing the value again would store the same bytes.
    #[default]
    Current,
    /// Writing the value again would store different bytes, see [`Transformed::stale`].
    Stale,
    /// The stored bytes could not be transformed back. The value has its stored form.
    Unreadable(ReadError),
}

/// The reason why stored bytes could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// They could not be transformed: decrypted, for example.
    #[error(transparent)]
    Transform(TransformError),
    /// They are not an object of the resource.
    #[error(transparent)]
    Decode(TransformError),
}
