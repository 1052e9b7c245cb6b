//! The messages of `v2.KeyManagementService` (<https://github.com/kubernetes/kms/blob/master/apis/v2/api.proto>),
//! declared by hand so that the build needs no protobuf compiler. `Debug` prints no plaintext data key.

use prost::Message;
use std::{collections::BTreeMap, fmt};
use zeroize::Zeroize;

/// Requests the plugin's status.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatusRequest {}

/// The plugin's status.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatusResponse {
    /// The plugin's API version, `v2` or `v2beta1`.
    #[prost(string, tag = "1")]
    pub(crate) version: String,
    /// `ok` when the plugin is healthy.
    #[prost(string, tag = "2")]
    pub(crate) healthz: String,
    /// The id of the plugin's present key.
    #[prost(string, tag = "3")]
    pub(crate) key_id: String,
}

/// Requests a decryption.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DecryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) ciphertext: Vec<u8>,
    /// Identifies the call in the logs of both sides.
    #[prost(string, tag = "2")]
    pub(crate) uid: String,
    /// The id of the key that encrypted the ciphertext.
    #[prost(string, tag = "3")]
    pub(crate) key_id: String,
    /// The annotations that the plugin returned with the ciphertext.
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub(crate) annotations: BTreeMap<String, Vec<u8>>,
}

/// The result of a decryption.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(crate) struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) plaintext: Vec<u8>,
}

/// Requests an encryption.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(crate) struct EncryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) plaintext: Vec<u8>,
    /// Identifies the call in the logs of both sides.
    #[prost(string, tag = "2")]
    pub(crate) uid: String,
}

/// The result of an encryption.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct EncryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) ciphertext: Vec<u8>,
    /// The id of the key that encrypted the plaintext.
    #[prost(string, tag = "2")]
    pub(crate) key_id: String,
    /// The annotations that the plugin requires for the decryption.
    #[prost(btree_map = "string, bytes", tag = "3")]
    pub(crate) annotations: BTreeMap<String, Vec<u8>>,
}

impl fmt::Debug for DecryptResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecryptResponse").finish_non_exhaustive()
    }
}

impl fmt::Debug for EncryptRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptRequest").field("uid", &self.uid).finish_non_exhaustive()
    }
}

impl Drop for EncryptRequest {
    fn drop(&mut self) {
        self.plaintext.zeroize();
    }
}
