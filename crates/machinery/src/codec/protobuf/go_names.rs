//! The names of fields in Go, which messages about protobuf show. They follow from the names in JSON, but for a few.

/// Acronyms at the begin of names, which Go writes in capital letters.
const ACRONYMS: [&str; 34] = [
    "api", "aws", "ca", "cel", "cidr", "csi", "dns", "fc", "fs", "gce", "gid", "gmsa", "grpc", "http", "id",
    "ip", "iqn", "iscsi", "json", "nfs", "os", "pd", "pkix", "qos", "rbd", "se", "ssl", "tcp", "tls", "ttl",
    "tty", "uid", "url", "wwid",
];

/// Fields with other words in Go: a part of the names of their structs, and both names.
const OTHERS: [(&str, &str, &str); 26] = [
    ("", "cephfs", "CephFS"),
    ("", "storageos", "StorageOS"),
    ("", "chapAuthDiscovery", "DiscoveryCHAPAuth"),
    ("", "chapAuthSession", "SessionCHAPAuth"),
    ("", "externalID", "DoNotUseExternalID"),
    ("APIResourceList", "resources", "APIResources"),
    ("AdmissionResponse", "status", "Result"),
    ("AzureDisk", "diskURI", "DataDiskURI"),
    ("ContainerStatus", "lastState", "LastTerminationState"),
    ("DeviceAttribute", "bool", "BoolValue"),
    ("DeviceAttribute", "bools", "BoolValues"),
    ("DeviceAttribute", "int", "IntValue"),
    ("DeviceAttribute", "ints", "IntValues"),
    ("DeviceAttribute", "string", "StringValue"),
    ("DeviceAttribute", "strings", "StringValues"),
    ("DeviceAttribute", "version", "VersionValue"),
    ("DeviceAttribute", "versions", "VersionValues"),
    ("Event", "reportingComponent", "ReportingController"),
    ("Glusterfs", "endpoints", "EndpointsName"),
    ("PhotonPersistentDisk", "pdID", "PdID"),
    ("PodSpec", "serviceAccount", "DeprecatedServiceAccount"),
    ("RBD", "image", "RBDImage"),
    ("RBD", "monitors", "CephMonitors"),
    ("RBD", "pool", "RBDPool"),
    ("RBD", "user", "RadosUser"),
    ("SubjectAccessReviewSpec", "group", "Groups"),
];

/// The name in Go of a field of a struct.
pub(super) fn field_name(in_struct: &str, name: &str) -> String {
    let of_field = |(part, json, _): &&(&str, &str, &str)| *json == name && in_struct.starts_with(part);
    if let Some((_, _, go)) = OTHERS.iter().find(of_field) {
        return (*go).to_owned();
    }
    let name = name.trim_start_matches('$');
    if let Some(extension) = name.strip_prefix("x-kubernetes-") {
        return std::iter::once("x").chain(extension.split('-')).map(capitalized).collect();
    }
    let end = name.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(name.len());
    let (word, rest) = name.split_at(end);
    let singular = word.strip_suffix('s').filter(|_| !ACRONYMS.contains(&word)).unwrap_or(word);
    match ACRONYMS.contains(&singular) {
        true => {
            [&singular.to_ascii_uppercase(), word.get(singular.len()..).unwrap_or_default(), rest].concat()
        }
        false => capitalized(name),
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_go() {
        for (in_struct, name, expected) in [
            ("ObjectMeta", "uid", "UID"),
            ("ObjectMeta", "resourceVersion", "ResourceVersion"),
            ("PodSpec", "dnsPolicy", "DNSPolicy"),
            ("PodSpec", "hostIPC", "HostIPC"),
            ("PodSpec", "serviceAccount", "DeprecatedServiceAccount"),
            ("PodSpec", "serviceAccountName", "ServiceAccountName"),
            ("NetworkPolicyPeer", "ipBlock", "IPBlock"),
            ("ServiceSpec", "ipFamilies", "IPFamilies"),
            ("ServiceCIDRSpec", "cidrs", "CIDRs"),
            ("ProbeHandler", "tcpSocket", "TCPSocket"),
            ("PodSecurityContext", "seLinuxOptions", "SELinuxOptions"),
            ("PodSecurityContext", "supplementalGroups", "SupplementalGroups"),
            ("IngressSpec", "tls", "TLS"),
            ("VolumeSource", "gcePersistentDisk", "GCEPersistentDisk"),
            ("VolumeSource", "nfs", "NFS"),
            ("NodeStatus", "osImage", "OSImage"),
            ("PodStatus", "qosClass", "QOSClass"),
            ("RBDPersistentVolumeSource", "image", "RBDImage"),
            ("DeviceAttribute", "int", "IntValue"),
            ("JSONSchemaProps", "$ref", "Ref"),
            ("JSONSchemaProps", "x-kubernetes-list-map-keys", "XListMapKeys"),
        ] {
            assert_eq!(field_name(in_struct, name), expected);
        }
    }
}
