//! What happens to a value between the registry and the engine: another encoding, encryption.

use crate::{BoxFuture, Key};
use bytes::Bytes;

/// Turns values into what is stored and back, such as JSON into protobuf, or plain into encrypted bytes.
///
/// Transformers stand in a row ([`crate::TransformedStorage`]): the registry's value goes through them first to last, and
/// what was stored last to first. The key is authenticated data for those that encrypt, so that a value cannot be moved
/// to another key.
pub trait ValueTransformer: Send + Sync + 'static {
    /// What to store for `value`.
    ///
    /// # Errors
    /// When the value cannot be brought into that form, or whoever does it (a key service) does not answer.
    fn to_storage<'a>(&'a self, key: &'a Key, value: Bytes) -> BoxFuture<'a, Result<Bytes, TransformError>>;

    /// The value that was stored.
    ///
    /// # Errors
    /// When the stored bytes are in no form that is known, are damaged, or were meant for another key.
    #[expect(
        clippy::wrong_self_convention,
        reason = "Kubernetes' name for it; the other way is `to_storage`"
    )]
    fn from_storage<'a>(
        &'a self,
        key: &'a Key,
        stored: Bytes,
    ) -> BoxFuture<'a, Result<Transformed, TransformError>>;

    /// What kind of failure it is that [`ValueTransformer::from_storage`] returned this error. Clients are told of the two
    /// in different words.
    fn read_error(&self, error: TransformError) -> ReadError {
        ReadError::Transform(error)
    }

    /// Whether [`ValueTransformer::to_storage`] stores every value as it is. A row of nothing but such transformers costs a
    /// write nothing.
    fn stores_values_as_they_are(&self) -> bool {
        false
    }

    /// Whether these stored bytes are the value itself, and not stale, as far as a glance tells: a fast way around
    /// [`ValueTransformer::from_storage`].
    fn is_plain(&self, _stored: &[u8]) -> bool {
        false
    }
}

/// A value as it was before it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transformed {
    /// The value.
    pub value: Bytes,
    /// Whether writing the same value now would store other bytes (an older key, another encoding), so that an update
    /// that changes nothing is to be written all the same.
    pub stale: bool,
}

/// Why a value could not be transformed. The text names no secret and no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TransformError(pub String);

/// What is known of the value of a [`crate::KeyValue`] besides its bytes. Engines, which know bytes only, always say
/// [`ValueState::Current`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ValueState {
    /// Writing the value again would store the same bytes.
    #[default]
    Current,
    /// Writing the value again would store other bytes, see [`Transformed::stale`].
    Stale,
    /// The stored bytes could not be transformed back. The value is as it is stored.
    Unreadable(ReadError),
}

/// Why stored bytes could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// They could not be transformed: decrypted, say.
    #[error(transparent)]
    Transform(TransformError),
    /// They are no object of the resource.
    #[error(transparent)]
    Decode(TransformError),
}
