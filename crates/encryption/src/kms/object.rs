//! The stored form of a value: the ciphertext, and its encrypted data key.

use crate::failure::Failure;
use bytes::Bytes;
use pintle_machinery::{FieldPath, validation::is_fully_qualified_domain_name};
use prost::Message;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The ciphertext was made by AES-GCM with the data key itself.
pub(crate) const AES_GCM_KEY: i32 = 0;
/// The ciphertext was made with a key derived from the data key, see [`crate::extended_nonce`].
pub(crate) const HKDF_SHA256_XNONCE_AES_GCM_SEED: i32 = 1;

const KEY_ID_MAX: usize = 1024;
const DATA_KEY_MAX: usize = 1024;
const ANNOTATIONS_MAX: usize = 32 * 1024;

/// The stored form of a value.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct EncryptedObject {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) encrypted_data: Bytes,
    /// The id of the plugin's key that encrypted the data key.
    #[prost(string, tag = "2")]
    pub(crate) key_id: String,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) encrypted_dek_source: Vec<u8>,
    /// The annotations that the plugin requires for the decryption.
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub(crate) annotations: BTreeMap<String, Vec<u8>>,
    #[prost(int32, tag = "5")]
    pub(crate) encrypted_dek_source_type: i32,
}

impl EncryptedObject {
    /// Decodes and validates a stored value.
    pub(crate) fn parse(stored: &[u8]) -> Result<EncryptedObject, Failure> {
        let object = EncryptedObject::decode(stored);
        let object = object.map_err(|_| Failure::new("proto: cannot parse invalid wire-format data"))?;
        object.validate()?;
        Ok(object)
    }

    /// Validates the value, and appends its stored form.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) -> Result<(), Failure> {
        self.validate()?;
        out.reserve(self.encoded_len());
        self.encode_raw(out);
        Ok(())
    }

    /// Checks that all parts are present, and within their size limits.
    pub(crate) fn validate(&self) -> Result<(), Failure> {
        if !matches!(self.encrypted_dek_source_type, AES_GCM_KEY | HKDF_SHA256_XNONCE_AES_GCM_SEED) {
            let unknown = format!("unknown encryptedDEKSourceType: {}", self.encrypted_dek_source_type);
            return Err(Failure::new(unknown));
        }
        if self.encrypted_data.is_empty() {
            return Err(Failure::new("encrypted data is empty"));
        }
        self.validate_data_key()
    }

    /// The same without the ciphertext, which a new data key does not have yet.
    pub(crate) fn validate_data_key(&self) -> Result<(), Failure> {
        validate_encrypted_dek_source(&self.encrypted_dek_source)?;
        validate_key_id(&self.key_id)
            .map_err(|error| Failure::new(format!("failed to validate key id: {}", error.text)))?;
        validate_annotations(&self.annotations)
    }

    /// Identifies the data key: a hash of everything that the plugin needs to decrypt it.
    pub(crate) fn cache_key(&self) -> CacheKey {
        let mut hash = Sha256::new();
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        add(&self.encrypted_dek_source_type.to_be_bytes());
        add(&self.encrypted_dek_source);
        add(self.key_id.as_bytes());
        for (name, value) in &self.annotations {
            add(name.as_bytes());
            add(value);
        }
        CacheKey(hash.finalize().into())
    }
}

/// See [`EncryptedObject::cache_key`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey([u8; 32]);

/// The reason why a key id is invalid.
pub(crate) struct KeyIdError {
    /// The `error` label in metrics.
    pub(crate) code: &'static str,
    pub(crate) text: String,
}

/// Checks the key id of a plugin.
pub(crate) fn validate_key_id(key_id: &str) -> Result<(), KeyIdError> {
    match key_id.len() {
        0 => Err(KeyIdError { code: "empty", text: "keyID is empty".to_owned() }),
        1..=KEY_ID_MAX => Ok(()),
        length => Err(KeyIdError {
            code: "too_long",
            text: format!("keyID is {length} bytes, which exceeds the max size of {KEY_ID_MAX}"),
        }),
    }
}

fn validate_encrypted_dek_source(source: &[u8]) -> Result<(), Failure> {
    let why = match source.len() {
        0 => "encrypted DEK source is empty".to_owned(),
        1..=DATA_KEY_MAX => return Ok(()),
        length => {
            format!("encrypted DEK source is {length} bytes, which exceeds the max size of {DATA_KEY_MAX}")
        }
    };
    Err(Failure::new(format!("failed to validate encrypted DEK source: {why}")))
}

fn validate_annotations(annotations: &BTreeMap<String, Vec<u8>>) -> Result<(), Failure> {
    let path = FieldPath::new("annotations");
    let mut failures = Vec::new();
    let mut size = 0;
    for (name, value) in annotations {
        let errors = is_fully_qualified_domain_name(&path, name);
        failures.extend(errors.iter().map(|error| Failure::new(error.to_string())));
        size += name.len() + value.len();
    }
    if size > ANNOTATIONS_MAX {
        let too_large =
            format!("total size of annotations is {size}, which exceeds the max size of {ANNOTATIONS_MAX}");
        failures.push(Failure::new(too_large));
    }
    match Failure::aggregate(failures) {
        None => Ok(()),
        Some(failure) => Err(Failure::new(format!("failed to validate annotations: {failure}"))),
    }
}
