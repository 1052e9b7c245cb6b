//! Requests for certificates.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::{DefaultStrategy, Resource, SelectableField};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .cluster("CertificateSigningRequest", "certificatesigningrequests")
        .short_names(["csr"])
        .part("approval", DefaultStrategy)
        .status(DefaultStrategy)
        .selectable([SelectableField::new("spec.signerName")])
}
