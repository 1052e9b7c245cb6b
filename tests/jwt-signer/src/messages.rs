//! Declares the messages of `v1.ExternalJWTSigner`.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SignJwtRequest {
    #[prost(string, tag = "1")]
    pub(crate) claims: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SignJwtResponse {
    #[prost(string, tag = "1")]
    pub(crate) header: String,
    #[prost(string, tag = "2")]
    pub(crate) signature: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FetchKeysRequest {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FetchKeysResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) keys: Vec<Key>,
    #[prost(message, optional, tag = "2")]
    pub(crate) data_timestamp: Option<Timestamp>,
    #[prost(int64, tag = "3")]
    pub(crate) refresh_hint_seconds: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Key {
    #[prost(string, tag = "1")]
    pub(crate) key_id: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) key: Vec<u8>,
    #[prost(bool, tag = "3")]
    pub(crate) exclude_from_oidc_discovery: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(crate) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(crate) nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MetadataRequest {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MetadataResponse {
    #[prost(int64, tag = "1")]
    pub(crate) max_token_expiration_seconds: i64,
}
