//! The built-in plugins, which decide without a call to another process.

mod certificate_approval;
mod certificate_signing;
mod certificate_subject_restriction;
mod default_class;
mod default_toleration_seconds;
mod limit_ranger;
mod namespace_lifecycle;
mod node_declared_feature_validator;
mod persistent_volume_claim_resize;
mod pod_resize_validator;
mod pod_security;
mod pods;
mod priority;
mod quantities;
mod resource_quota;
mod runtime_class;
mod service_account;
mod signers;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;

pub use certificate_approval::CertificateApproval;
pub use certificate_signing::CertificateSigning;
pub use certificate_subject_restriction::CertificateSubjectRestriction;
pub use default_class::DefaultClass;
pub use default_toleration_seconds::DefaultTolerationSeconds;
pub use limit_ranger::LimitRanger;
pub use namespace_lifecycle::NamespaceLifecycle;
pub use node_declared_feature_validator::NodeDeclaredFeatureValidator;
pub use persistent_volume_claim_resize::PersistentVolumeClaimResize;
pub use pod_resize_validator::PodResizeValidator;
pub use pod_security::PodSecurity;
pub use priority::Priority;
pub use resource_quota::ResourceQuota;
pub use runtime_class::RuntimeClass;
pub use service_account::ServiceAccount;
pub use storage_object_in_use_protection::StorageObjectInUseProtection;
pub use taint_nodes_by_condition::TaintNodesByCondition;

use crate::AdmissionPlugin;
use std::sync::Arc;

/// The names of all plugins of kube-apiserver v1.36, in call order
/// (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/>).
pub const NAMES: [&str; 41] = [
    "AlwaysAdmit",
    "NamespaceAutoProvision",
    "NamespaceLifecycle",
    "NamespaceExists",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "ServiceAccount",
    "NodeRestriction",
    "TaintNodesByCondition",
    "AlwaysPullImages",
    "ImagePolicyWebhook",
    "PodSecurity",
    "PodNodeSelector",
    "Priority",
    "DefaultTolerationSeconds",
    "PodTolerationRestriction",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "PodGroupProtection",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "ClusterTrustBundleAttest",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DenyServiceExternalIPs",
    "PodTopologyLabels",
    "PodGroupWorkloadExists",
    "NodeDeclaredFeatureValidator",
    "JobValidation",
    "PodResizeValidator",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
    "AlwaysDeny",
];

/// The plugins of a default server, in call order.
pub fn default_plugins() -> Vec<Arc<dyn AdmissionPlugin>> {
    vec![
        Arc::new(NamespaceLifecycle::default()),
        Arc::new(LimitRanger::default()),
        Arc::new(ServiceAccount::default()),
        Arc::new(TaintNodesByCondition),
        Arc::new(PodSecurity::default()),
        Arc::new(Priority::default()),
        Arc::new(DefaultTolerationSeconds::default()),
        Arc::new(DefaultClass::storage()),
        Arc::new(StorageObjectInUseProtection),
        Arc::new(PersistentVolumeClaimResize::default()),
        Arc::new(RuntimeClass::default()),
        Arc::new(CertificateApproval),
        Arc::new(CertificateSigning),
        Arc::new(CertificateSubjectRestriction),
        Arc::new(DefaultClass::ingress()),
        Arc::new(NodeDeclaredFeatureValidator),
        Arc::new(PodResizeValidator),
        Arc::new(ResourceQuota::default()),
    ]
}
