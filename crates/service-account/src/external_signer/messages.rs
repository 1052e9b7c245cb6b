//! The messages of `v1.ExternalJWTSigner` (<https://github.com/kubernetes/externaljwt/blob/master/apis/v1/api.proto>),
//! declared by hand so that the build needs no protobuf compiler.

use prost::Message;

/// Asks for a signature.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SignJwtRequest {
    /// The claims: JSON in base64url.
    #[prost(string, tag = "1")]
    pub(super) claims: String,
}

/// A signature.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SignJwtResponse {
    /// The header: JSON in base64url.
    #[prost(string, tag = "1")]
    pub(super) header: String,
    /// The signature in base64url.
    #[prost(string, tag = "2")]
    pub(super) signature: String,
}

/// Asks for the keys.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FetchKeysRequest {}

/// The keys.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FetchKeysResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) keys: Vec<Key>,
    /// The time of the keys.
    #[prost(message, optional, tag = "2")]
    pub(super) data_timestamp: Option<Timestamp>,
    /// For how many seconds the keys may be used without asking again.
    #[prost(int64, tag = "3")]
    pub(super) refresh_hint_seconds: i64,
}

/// A public key.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Key {
    #[prost(string, tag = "1")]
    pub(super) key_id: String,
    /// `SubjectPublicKeyInfo` in DER.
    #[prost(bytes = "vec", tag = "2")]
    pub(super) key: Vec<u8>,
    /// Whether the key is not published: it only verifies tokens that were signed before.
    #[prost(bool, tag = "3")]
    pub(super) exclude_from_oidc_discovery: bool,
}

/// `google.protobuf.Timestamp`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}

/// Asks for the metadata.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MetadataRequest {}

/// The metadata.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MetadataResponse {
    /// The longest lifetime of tokens, in seconds.
    #[prost(int64, tag = "1")]
    pub(super) max_token_expiration_seconds: i64,
}
