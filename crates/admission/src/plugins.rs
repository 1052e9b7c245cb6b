//! The built-in plugins, which decide without a call to another process.

mod always_admit;
mod always_deny;
mod always_pull_images;
mod certificate_approval;
mod certificate_signing;
mod certificate_subject_restriction;
mod cluster_trust_bundle_attest;
mod default_class;
mod default_toleration_seconds;
mod deny_service_external_ips;
mod event_rate_limit;
mod extended_resource_toleration;
mod job_validation;
mod limit_pod_hard_anti_affinity_topology;
mod limit_ranger;
mod namespace_auto_provision;
mod namespace_exists;
mod namespace_lifecycle;
mod node_declared_feature_validator;
mod node_restriction;
mod own_writes;
mod owner_references_permission_enforcement;
mod persistent_volume_claim_resize;
mod pod_group_protection;
mod pod_group_workload_exists;
mod pod_node_selector;
mod pod_resize_validator;
mod pod_security;
mod pod_toleration_restriction;
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
mod tolerations;

pub use always_admit::AlwaysAdmit;
pub use always_deny::AlwaysDeny;
pub use always_pull_images::AlwaysPullImages;
pub use certificate_approval::CertificateApproval;
pub use certificate_signing::CertificateSigning;
pub use certificate_subject_restriction::CertificateSubjectRestriction;
pub use cluster_trust_bundle_attest::ClusterTrustBundleAttest;
pub use default_class::DefaultClass;
pub use default_toleration_seconds::DefaultTolerationSeconds;
pub use deny_service_external_ips::DenyServiceExternalIps;
pub use event_rate_limit::EventRateLimit;
pub use extended_resource_toleration::ExtendedResourceToleration;
pub use job_validation::JobValidation;
pub use limit_pod_hard_anti_affinity_topology::LimitPodHardAntiAffinityTopology;
pub use limit_ranger::LimitRanger;
pub use namespace_auto_provision::NamespaceAutoProvision;
pub use namespace_exists::NamespaceExists;
pub use namespace_lifecycle::NamespaceLifecycle;
pub use node_declared_feature_validator::NodeDeclaredFeatureValidator;
pub use node_restriction::NodeRestriction;
pub use owner_references_permission_enforcement::OwnerReferencesPermissionEnforcement;
pub use persistent_volume_claim_resize::PersistentVolumeClaimResize;
pub use pod_group_protection::PodGroupProtection;
pub use pod_group_workload_exists::PodGroupWorkloadExists;
pub use pod_node_selector::PodNodeSelector;
pub use pod_resize_validator::PodResizeValidator;
pub use pod_security::PodSecurity;
pub use pod_toleration_restriction::PodTolerationRestriction;
pub use pod_topology_labels::PodTopologyLabels;
pub use priority::Priority;
pub use resource_quota::ResourceQuota;
pub use runtime_class::RuntimeClass;
pub use service_account::ServiceAccount;
pub use storage_object_in_use_protection::StorageObjectInUseProtection;
pub use taint_nodes_by_condition::TaintNodesByCondition;

use crate::{AdmissionPlugin, PluginError, PluginSettings};
use std::sync::Arc;

/// A plugin of kube-apiserver v1.36.
pub struct Declaration {
    /// The name, as in `--enable-admission-plugins`.
    pub name: &'static str,
    /// Whether a server without flags calls the plugin.
    pub is_default: bool,
    /// Creates the plugin; `None` when another crate has it ([`PluginFactories`](crate::PluginFactories)).
    pub create: Option<Create>,
}

type Create = fn(&PluginSettings<'_>) -> Created;
type Created = Result<Arc<dyn AdmissionPlugin>, PluginError>;

const fn by_default(name: &'static str, create: Create) -> Declaration {
    Declaration { name, is_default: true, create: Some(create) }
}

const fn opt_in(name: &'static str, create: Create) -> Declaration {
    Declaration { name, is_default: false, create: Some(create) }
}

/// A plugin on by default that another crate has.
const fn by_default_outside(name: &'static str) -> Declaration {
    Declaration { name, is_default: true, create: None }
}

/// A plugin that another crate has.
const fn opt_in_outside(name: &'static str) -> Declaration {
    Declaration { name, is_default: false, create: None }
}

#[expect(clippy::unnecessary_wraps, reason = "others fail")]
fn plugin(plugin: impl AdmissionPlugin + 'static) -> Created {
    Ok(Arc::new(plugin))
}

/// The plugins, in call order
/// (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/>).
pub static PLUGINS: &[Declaration] = &[
    opt_in("AlwaysAdmit", |_| plugin(AlwaysAdmit)),
    opt_in("NamespaceAutoProvision", |_| plugin(NamespaceAutoProvision::default())),
    by_default("NamespaceLifecycle", |_| plugin(NamespaceLifecycle::default())),
    opt_in("NamespaceExists", |_| plugin(NamespaceExists::default())),
    opt_in("LimitPodHardAntiAffinityTopology", |_| plugin(LimitPodHardAntiAffinityTopology)),
    by_default("LimitRanger", |_| plugin(LimitRanger::default())),
    by_default("ServiceAccount", |_| plugin(ServiceAccount::default())),
    opt_in("NodeRestriction", |_| plugin(NodeRestriction)),
    by_default("TaintNodesByCondition", |_| plugin(TaintNodesByCondition)),
    opt_in("AlwaysPullImages", |_| plugin(AlwaysPullImages)),
    opt_in_outside("ImagePolicyWebhook"),
    by_default("PodSecurity", |settings| plugin(PodSecurity::new(settings)?)),
    opt_in("PodNodeSelector", |settings| plugin(PodNodeSelector::new(settings))),
    by_default("Priority", |_| plugin(Priority::default())),
    by_default("DefaultTolerationSeconds", |settings| plugin(DefaultTolerationSeconds::new(settings.flags))),
    opt_in("PodTolerationRestriction", |settings| plugin(PodTolerationRestriction::new(settings)?)),
    opt_in("EventRateLimit", |settings| plugin(EventRateLimit::new(settings)?)),
    opt_in("ExtendedResourceToleration", |_| plugin(ExtendedResourceToleration)),
    by_default("DefaultStorageClass", |_| plugin(DefaultClass::storage())),
    by_default("StorageObjectInUseProtection", |_| plugin(StorageObjectInUseProtection)),
    by_default("PodGroupProtection", |_| plugin(PodGroupProtection)),
    opt_in_outside("OwnerReferencesPermissionEnforcement"),
    by_default("PersistentVolumeClaimResize", |_| plugin(PersistentVolumeClaimResize::default())),
    by_default("RuntimeClass", |_| plugin(RuntimeClass::default())),
    by_default("CertificateApproval", |_| plugin(CertificateApproval)),
    by_default("CertificateSigning", |_| plugin(CertificateSigning)),
    by_default("ClusterTrustBundleAttest", |_| plugin(ClusterTrustBundleAttest)),
    by_default("CertificateSubjectRestriction", |_| plugin(CertificateSubjectRestriction)),
    by_default("DefaultIngressClass", |_| plugin(DefaultClass::ingress())),
    opt_in("DenyServiceExternalIPs", |_| plugin(DenyServiceExternalIps)),
    by_default("PodTopologyLabels", |_| plugin(PodTopologyLabels::default())),
    by_default("PodGroupWorkloadExists", |_| plugin(PodGroupWorkloadExists::default())),
    by_default("NodeDeclaredFeatureValidator", |_| plugin(NodeDeclaredFeatureValidator)),
    by_default("JobValidation", |_| plugin(JobValidation::default())),
    by_default("PodResizeValidator", |_| plugin(PodResizeValidator)),
    by_default_outside("MutatingAdmissionPolicy"),
    by_default_outside("MutatingAdmissionWebhook"),
    by_default_outside("ValidatingAdmissionPolicy"),
    by_default_outside("ValidatingAdmissionWebhook"),
    by_default("ResourceQuota", |settings| plugin(ResourceQuota::new(settings)?)),
    opt_in("AlwaysDeny", |_| plugin(AlwaysDeny)),
];
