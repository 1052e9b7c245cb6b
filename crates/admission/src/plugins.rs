//! The built-in plugins, which decide without a call to another process.

mod always_admit;
mod always_deny;
mod always_pull_images;
mod certificate_approval;
mod certificate_signing;
mod certificate_subject_restriction;
mod default_class;
mod default_toleration_seconds;
mod deny_service_external_ips;
mod limit_pod_hard_anti_affinity_topology;
mod limit_ranger;
mod namespace_auto_provision;
mod namespace_exists;
mod namespace_lifecycle;
mod node_declared_feature_validator;
mod node_restriction;
mod persistent_volume_claim_resize;
mod pod_resize_validator;
mod pod_security;
mod pod_topology_labels;
mod pods;
mod priority;
mod quantities;
mod resource_quota;
mod runtime_class;
mod service_account;
mod signers;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;

pub use always_admit::AlwaysAdmit;
pub use always_deny::AlwaysDeny;
pub use always_pull_images::AlwaysPullImages;
pub use certificate_approval::CertificateApproval;
pub use certificate_signing::CertificateSigning;
pub use certificate_subject_restriction::CertificateSubjectRestriction;
pub use default_class::DefaultClass;
pub use default_toleration_seconds::DefaultTolerationSeconds;
pub use deny_service_external_ips::DenyServiceExternalIps;
pub use limit_pod_hard_anti_affinity_topology::LimitPodHardAntiAffinityTopology;
pub use limit_ranger::LimitRanger;
pub use namespace_auto_provision::NamespaceAutoProvision;
pub use namespace_exists::NamespaceExists;
pub use namespace_lifecycle::NamespaceLifecycle;
pub use node_declared_feature_validator::NodeDeclaredFeatureValidator;
pub use node_restriction::NodeRestriction;
pub use persistent_volume_claim_resize::PersistentVolumeClaimResize;
pub use pod_resize_validator::PodResizeValidator;
pub use pod_security::PodSecurity;
pub use pod_topology_labels::PodTopologyLabels;
pub use priority::Priority;
pub use resource_quota::ResourceQuota;
pub use runtime_class::RuntimeClass;
pub use service_account::ServiceAccount;
pub use storage_object_in_use_protection::StorageObjectInUseProtection;
pub use taint_nodes_by_condition::TaintNodesByCondition;

use crate::AdmissionPlugin;
use std::sync::Arc;

/// A plugin of kube-apiserver v1.36.
pub struct Declaration {
    /// The name, as in `--enable-admission-plugins`.
    pub name: &'static str,
    /// Whether a server without flags calls the plugin.
    pub is_default: bool,
    /// Creates the plugin; `None` when this server does not have it.
    pub create: Option<fn() -> Arc<dyn AdmissionPlugin>>,
}

const fn by_default(name: &'static str, create: fn() -> Arc<dyn AdmissionPlugin>) -> Declaration {
    Declaration { name, is_default: true, create: Some(create) }
}

const fn opt_in(name: &'static str, create: fn() -> Arc<dyn AdmissionPlugin>) -> Declaration {
    Declaration { name, is_default: false, create: Some(create) }
}

const fn absent(name: &'static str) -> Declaration {
    Declaration { name, is_default: false, create: None }
}

/// The plugins, in call order
/// (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/>).
pub static PLUGINS: [Declaration; 41] = [
    opt_in("AlwaysAdmit", || Arc::new(AlwaysAdmit)),
    opt_in("NamespaceAutoProvision", || Arc::new(NamespaceAutoProvision::default())),
    by_default("NamespaceLifecycle", || Arc::new(NamespaceLifecycle::default())),
    opt_in("NamespaceExists", || Arc::new(NamespaceExists::default())),
    opt_in("LimitPodHardAntiAffinityTopology", || Arc::new(LimitPodHardAntiAffinityTopology)),
    by_default("LimitRanger", || Arc::new(LimitRanger::default())),
    by_default("ServiceAccount", || Arc::new(ServiceAccount::default())),
    opt_in("NodeRestriction", || Arc::new(NodeRestriction)),
    by_default("TaintNodesByCondition", || Arc::new(TaintNodesByCondition)),
    opt_in("AlwaysPullImages", || Arc::new(AlwaysPullImages)),
    absent("ImagePolicyWebhook"),
    by_default("PodSecurity", || Arc::new(PodSecurity::default())),
    absent("PodNodeSelector"),
    by_default("Priority", || Arc::new(Priority::default())),
    by_default("DefaultTolerationSeconds", || Arc::new(DefaultTolerationSeconds::default())),
    absent("PodTolerationRestriction"),
    absent("EventRateLimit"),
    absent("ExtendedResourceToleration"),
    by_default("DefaultStorageClass", || Arc::new(DefaultClass::storage())),
    by_default("StorageObjectInUseProtection", || Arc::new(StorageObjectInUseProtection)),
    absent("PodGroupProtection"),
    absent("OwnerReferencesPermissionEnforcement"),
    by_default("PersistentVolumeClaimResize", || Arc::new(PersistentVolumeClaimResize::default())),
    by_default("RuntimeClass", || Arc::new(RuntimeClass::default())),
    by_default("CertificateApproval", || Arc::new(CertificateApproval)),
    by_default("CertificateSigning", || Arc::new(CertificateSigning)),
    absent("ClusterTrustBundleAttest"),
    by_default("CertificateSubjectRestriction", || Arc::new(CertificateSubjectRestriction)),
    by_default("DefaultIngressClass", || Arc::new(DefaultClass::ingress())),
    opt_in("DenyServiceExternalIPs", || Arc::new(DenyServiceExternalIps)),
    by_default("PodTopologyLabels", || Arc::new(PodTopologyLabels::default())),
    absent("PodGroupWorkloadExists"),
    by_default("NodeDeclaredFeatureValidator", || Arc::new(NodeDeclaredFeatureValidator)),
    absent("JobValidation"),
    by_default("PodResizeValidator", || Arc::new(PodResizeValidator)),
    absent("MutatingAdmissionPolicy"),
    absent("MutatingAdmissionWebhook"),
    absent("ValidatingAdmissionPolicy"),
    absent("ValidatingAdmissionWebhook"),
    by_default("ResourceQuota", || Arc::new(ResourceQuota::default())),
    opt_in("AlwaysDeny", || Arc::new(AlwaysDeny)),
];
