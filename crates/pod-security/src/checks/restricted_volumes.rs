//! Pods must not use volumes other than those of Kubernetes' own objects, CSI drivers and images.

use super::host_path_volumes;
use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::{Pod, name},
    setters::{plural, quoted},
};
use pintle_machinery::{Value, ValueExt};
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "restrictedVolumes",
    level: Level::Restricted,
    revisions: &[Revision::since(0, check).overriding(&[host_path_volumes::ID])],
};

const ALLOWED: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// The other volume types; of several in one volume, the first is reported.
const RESTRICTED: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

fn check(pod: &Pod<'_>) -> Option<Violation> {
    let has = |volume: &Value, types: &[&'static str]| {
        types.iter().copied().find(|of_type| volume.field(of_type).is_some())
    };
    let volumes = pod.spec().items_at("volumes").iter().filter(|volume| has(volume, &ALLOWED).is_none());
    let bad: Vec<&Value> = volumes.collect();
    let types: BTreeSet<&str> =
        bad.iter().map(|volume| has(volume, &RESTRICTED).unwrap_or("unknown")).collect();
    let detail = || {
        let count = bad.len();
        format!(
            "{} {} {} {} {}",
            plural(count, "volume", "volumes"),
            quoted(bad.iter().map(|volume| name(volume))),
            plural(count, "uses", "use"),
            plural(types.len(), "restricted volume type", "restricted volume types"),
            quoted(types.iter().copied())
        )
    };
    (!bad.is_empty()).then(|| Violation::new("restricted volume types", detail()))
}
