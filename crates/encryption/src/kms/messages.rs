//! The messages of `v2.KeyManagementService`
//! (<https://github.com/kubernetes/kms/blob/master/apis/v2/api.proto>), declared by hand so that building needs no
//! protobuf compiler. Those that carry a data key in the clear print nothing of it.

use prost::Message;
use std::{collections::BTreeMap, fmt};
use zeroize::Zeroize;

/// Asks how the service is.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatusRequest {}

/// How the service is.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatusResponse {
    /// Its version of the interface, `v2` or `v2beta1`.
    #[prost(string, tag = "1")]
    pub(crate) version: String,
    /// `ok` when it is well.
    #[prost(string, tag = "2")]
    pub(crate) healthz: String,
    /// The key that it encrypts by.
    #[prost(string, tag = "3")]
    pub(crate) key_id: String,
}

/// Asks to decrypt.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DecryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) ciphertext: Vec<u8>,
    /// Names the call in both sides' logs.
    #[prost(string, tag = "2")]
    pub(crate) uid: String,
    /// The key that it was encrypted by.
    #[prost(string, tag = "3")]
    pub(crate) key_id: String,
    /// What the service gave beside the ciphertext.
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub(crate) annotations: BTreeMap<String, Vec<u8>>,
}

/// What was decrypted.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(crate) struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) plaintext: Vec<u8>,
}

/// Asks to encrypt.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(crate) struct EncryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) plaintext: Vec<u8>,
    /// Names the call in both sides' logs.
    #[prost(string, tag = "2")]
    pub(crate) uid: String,
}

/// What was encrypted.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct EncryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) ciphertext: Vec<u8>,
    /// The key that it was encrypted by.
    #[prost(string, tag = "2")]
    pub(crate) key_id: String,
    /// What the service wants to have back when it decrypts.
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
