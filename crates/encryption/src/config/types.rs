//! The rules of the configuration.

use crate::kms::Endpoint;
use pintle_machinery::GroupResource;
use std::{fmt, time::Duration};
use zeroize::Zeroizing;

/// One rule.
#[derive(Debug)]
pub(crate) struct ResourceConfiguration {
    /// The resources; `*` stands for all resources of a group, or with the group `*` for all resources.
    pub(crate) resources: Vec<GroupResource>,
    /// The providers; the first one encrypts.
    pub(crate) providers: Vec<ProviderConfiguration>,
}

/// One provider.
#[derive(Debug)]
pub(crate) enum ProviderConfiguration {
    AesGcm(Vec<Key>),
    AesCbc(Vec<Key>),
    Secretbox(Vec<Key>),
    Identity,
    /// A KMS plugin, of API version 1 or 2.
    Kms(KmsConfiguration),
}

/// A key of a local provider.
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) secret: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A KMS plugin.
#[derive(Debug)]
pub(crate) struct KmsConfiguration {
    pub(crate) api_version: KmsApiVersion,
    pub(crate) name: String,
    pub(crate) endpoint: Endpoint,
    /// The time-out of a call.
    pub(crate) timeout: Duration,
}

/// The API version of a KMS plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KmsApiVersion {
    V1,
    V2,
}
