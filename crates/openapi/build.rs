//! Extracts the descriptions of the API's types and fields from the `k8s-openapi` crate.
//!
//! Its `JsonSchema` implementations contain them. Running them at build time keeps that large crate and `schemars` out
//! of the server. The result is one deflated text, inflated while a document is built. It has one fact per line:
//! `=<definition>` starts a type, followed by its own description and those of its fields, each as `<field>\t<JSON
//! string>`.

use k8s_openapi::{
    api, apiextensions_apiserver::pkg::apis::apiextensions, apimachinery::pkg as machinery,
    kube_aggregator::pkg::apis::apiregistration,
};
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::Value;
use std::{collections::BTreeMap, fmt::Write as _, io::Write as _};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut generator = SchemaSettings::default().into_generator();
    request_roots(&mut generator);
    let definitions: BTreeMap<String, Value> = generator.take_definitions(false).into_iter().collect();
    let mut text = String::new();
    for (name, definition) in &definitions {
        writeln!(text, "={name}")?;
        if let Some(description) = definition.get("description") {
            writeln!(text, "\t{description}")?;
        }
        for (field, schema) in definition.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if let Some(description) = schema.get("description") {
                writeln!(text, "{field}\t{description}")?;
            }
        }
    }
    let directory = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let file = std::fs::File::create(std::path::Path::new(&directory).join("descriptions.deflate"))?;
    let mut encoder = flate2::write::DeflateEncoder::new(file, flate2::Compression::best());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()?;
    Ok(())
}

macro_rules! request {
    ($generator:expr, $($package:path: [$($name:ident),+ $(,)?]),+ $(,)?) => {
        $({
            use $package as package;
            $($generator.subschema_for::<package::$name>();)+
        })+
    };
}

/// The types from which all others are reachable: the kinds, and the other types in requests and responses.
fn request_roots(generator: &mut SchemaGenerator) {
    request!(generator,
        api::admissionregistration::v1: [MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration],
        api::apps::v1: [ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet],
        api::authentication::v1: [SelfSubjectReview, TokenRequest, TokenReview],
        api::authorization::v1: [LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview],
        api::autoscaling::v1: [HorizontalPodAutoscaler, Scale],
        api::autoscaling::v2: [HorizontalPodAutoscaler],
        api::batch::v1: [CronJob, Job],
        api::certificates::v1: [CertificateSigningRequest],
        api::coordination::v1: [Lease],
        api::core::v1: [Binding, ComponentStatus, ConfigMap, Endpoints, Event, LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodTemplate, ReplicationController, ResourceQuota, Secret, Service, ServiceAccount],
        api::discovery::v1: [EndpointSlice],
        api::events::v1: [Event],
        api::flowcontrol::v1: [FlowSchema, PriorityLevelConfiguration],
        api::networking::v1: [IPAddress, Ingress, IngressClass, NetworkPolicy, ServiceCIDR],
        api::node::v1: [RuntimeClass],
        api::policy::v1: [Eviction, PodDisruptionBudget],
        api::rbac::v1: [ClusterRole, ClusterRoleBinding, Role, RoleBinding],
        api::resource::v1: [DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice],
        api::scheduling::v1: [PriorityClass],
        api::storage::v1: [CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment, VolumeAttributesClass],
        apiextensions::v1: [CustomResourceDefinition],
        machinery::apis::meta::v1: [APIGroup, APIGroupList, APIResourceList, APIVersions, Status, DeleteOptions],
        apiregistration::v1: [APIService],
        machinery::version: [Info],
    );
}
