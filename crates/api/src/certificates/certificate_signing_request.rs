//! Certificate signing requests.

mod metrics;
pub(super) mod pem;
mod strategy;
mod table;
mod validation;

pub use metrics::IssuedCertificateMetrics;

use self::strategy::{ApprovalStrategy, CertificateSigningRequestStrategy, StatusStrategy};
use super::group::GROUP;
use crate::declare::Declare;
use pintle_registry::{Resource, SelectableField};

/// The declaration of the resource.
pub fn resource() -> Resource {
    GROUP
        .cluster("CertificateSigningRequest", "certificatesigningrequests")
        .prints(table::columns, table::cells)
        .short_names(["csr"])
        .ruled(CertificateSigningRequestStrategy)
        .part("approval", ApprovalStrategy)
        .status(StatusStrategy)
        .selectable([SelectableField::new("spec.signerName")])
}
