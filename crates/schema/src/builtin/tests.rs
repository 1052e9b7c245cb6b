use super::*;
use crate::{Member, SchemaRef};

fn kind(group: &str, version: &str, kind: &str) -> SchemaRef<'static> {
    Schema::builtin().by_kind(group, version, kind).unwrap()
}

/// The type at a path of fields, through list items (`[]`) and map values (`{}`).
fn at(root: SchemaRef<'static>, path: &str) -> SchemaRef<'static> {
    path.split('.').fold(root, |schema, step| match step {
        "[]" => schema.item(),
        "{}" => schema.value(),
        name => schema.field(name).unwrap_or_else(|| panic!("{name} of {path}")).ty(),
    })
}

#[test]
fn every_word_of_the_table_is_understood() {
    let schema = Schema::builtin();
    let mut structs = 0;
    for (index, _) in schema.nodes.iter().enumerate() {
        let node = schema.node(NodeId(index as u32));
        structs += usize::from(node.is_declared());
        for field in node.fields() {
            assert!(!field.name().is_empty(), "{node:?}");
            let any = field.ty().ty() == Type::Any || field.ty().item().ty() == Type::Any;
            assert!(!any || node.name() == "TableRow", "{node:?} {field:?}");
        }
    }
    assert!(structs > 1000, "{structs}");
    let defaults = TABLE.lines().filter(|line| line.contains(" default=")).count();
    assert_eq!(schema.defaults.len(), defaults);
    let words = TABLE.lines().filter(|line| line.starts_with("f ")).flat_map(|line| {
        let line = line.split_once(" default=").map_or(line, |(head, _)| head);
        line.split(' ').skip(4)
    });
    for word in words {
        let known = ["*", "omit", "omitzero", "required", "optional", "list=atomic", "list=map", "list=set"]
            .contains(&word)
            || ["map=", "keys=", "key=", "patch="].iter().any(|prefix| word.starts_with(prefix));
        assert!(known, "{word}");
    }
}

#[test]
fn kinds_are_found_by_group_version_and_kind() {
    for (group, version, name, package) in [
        ("", "v1", "Pod", "k8s.io/api/core/v1"),
        ("", "v1", "PodList", "k8s.io/api/core/v1"),
        ("apps", "v1", "Deployment", "k8s.io/api/apps/v1"),
        ("rbac.authorization.k8s.io", "v1", "Role", "k8s.io/api/rbac/v1"),
        ("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion", "k8s.io/api/apiserverinternal/v1alpha1"),
        ("apps", "v1", "DeleteOptions", "k8s.io/apimachinery/pkg/apis/meta/v1"),
        ("example.com", "v7", "Status", "k8s.io/apimachinery/pkg/apis/meta/v1"),
        ("", "v1", "WatchEvent", "k8s.io/apimachinery/pkg/apis/meta/v1"),
        ("meta.k8s.io", "v1", "PartialObjectMetadata", "k8s.io/apimachinery/pkg/apis/meta/v1"),
    ] {
        let schema = kind(group, version, name);
        assert_eq!((schema.name(), schema.package()), (name, package));
    }
    for (group, version, name) in [
        ("", "v1", "PodSpec"),
        ("", "v2", "Pod"),
        ("apps", "v1", "Pod"),
        ("", "v1", "ObjectMeta"),
        ("", "v1", ""),
    ] {
        assert_eq!(Schema::builtin().by_kind(group, version, name), None, "{group}/{version} {name}");
    }
    assert!(Schema::builtin().kinds().count() > 300);
}

#[test]
fn types_are_found_by_go_name() {
    let schema = Schema::builtin();
    for kind in schema.kinds() {
        let name = format!("{}.{}", kind.schema.package(), kind.kind);
        assert_eq!(schema.by_type_name(&name), Some(kind.schema));
    }
    assert_eq!(schema.by_type_name("k8s.io/api/core/v1.Nope"), None);
    assert_eq!(schema.by_type_name("Pod"), None);
}

#[test]
fn go_types_are_printed_as_reflection_does() {
    let pod = kind("", "v1", "Pod");
    for (path, expected) in [
        ("spec", "v1.PodSpec"),
        ("spec.containers", "[]v1.Container"),
        ("spec.nodeSelector", "map[string]string"),
        ("spec.priority", "int32"),
        ("spec.restartPolicy", "v1.RestartPolicy"),
        ("spec.containers.[].resources.limits", "v1.ResourceList"),
        ("spec.containers.[].resources.limits.{}", "resource.Quantity"),
        ("metadata.uid", "types.UID"),
        ("metadata.creationTimestamp", "v1.Time"),
    ] {
        assert_eq!(at(pod, path).go_type(), expected, "{path}");
    }
}

#[test]
fn embedded_structs_are_flat_in_json_and_messages_in_protobuf() {
    let volume = at(kind("", "v1", "Pod"), "spec.volumes.[]");
    let names: Vec<_> = volume.fields().map(|field| field.name()).take(3).collect();
    assert_eq!(names, ["name", "hostPath", "emptyDir"]);
    assert!(volume.field("csi").is_some_and(|field| field.number() == 0));
    let members: Vec<_> = volume.members().collect();
    assert!(matches!(members[..], [(1, Member::Field(_)), (2, Member::Embedded(_))]), "{members:?}");
    let Some(Member::Embedded(source)) = volume.member_by_number(2) else { panic!() };
    assert_eq!(source.name(), "VolumeSource");
    assert!(source.field("csi").is_some_and(|field| field.number() > 0));

    let names: Vec<_> = kind("", "v1", "ConfigMap").fields().map(|field| field.name()).collect();
    assert_eq!(names, ["kind", "apiVersion", "metadata", "immutable", "data", "binaryData"]);
    let two_deep = at(
        kind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"),
        "spec.matchConstraints.resourceRules.[]",
    );
    assert!(two_deep.field("apiGroups").is_some());
}

#[test]
fn lists_and_maps_carry_their_merge_facts() {
    let pod = kind("", "v1", "Pod");
    let ports = at(pod, "spec.containers.[].ports");
    assert_eq!(ports.list_type(), ListType::Map);
    assert_eq!(ports.list_map_keys().collect::<Vec<_>>(), ["containerPort", "protocol"]);
    let containers = at(pod, "spec").field("containers").unwrap();
    assert!(containers.patch_strategy().merge && !containers.patch_strategy().retain_keys);
    assert_eq!(containers.patch_merge_key(), Some("name"));
    assert!(at(pod, "spec").field("volumes").unwrap().patch_strategy().retain_keys);
    assert_eq!(at(pod, "metadata.finalizers").list_type(), ListType::Set);
    assert_eq!(at(pod, "spec.nodeSelector").map_type(), MapType::Atomic);
    assert_eq!(at(pod, "metadata.labels").map_type(), MapType::Granular);
    // ObjectReference is atomic, except where a field says otherwise.
    assert_eq!(at(kind("", "v1", "Event"), "involvedObject").map_type(), MapType::Atomic);
    let claim = at(kind("", "v1", "PersistentVolume"), "spec.claimRef");
    assert_eq!((claim.map_type(), claim.name()), (MapType::Granular, "ObjectReference"));
    assert!(claim.field("uid").is_some());
}

#[test]
fn aliases_keep_their_name_and_take_over_the_rest() {
    let list = kind("", "v1", "Pod");
    let extra = at(kind("authentication.k8s.io", "v1", "TokenReview"), "status.user.extra.{}");
    assert!(extra.is_wrapped());
    assert_eq!((extra.ty(), extra.name(), extra.item().ty()), (Type::List, "ExtraValue", Type::String));
    let rule = Schema::builtin().by_type_name("k8s.io/api/admissionregistration/v1beta1.Rule").unwrap();
    assert!(rule.field("apiGroups").is_some());
    let policy = at(list, "spec.restartPolicy");
    assert_eq!(policy.enum_values().collect::<Vec<_>>(), ["Always", "Never", "OnFailure"]);
    let usages = kind("certificates.k8s.io", "v1", "CertificateSigningRequest");
    let usages: Vec<_> = at(usages, "spec.usages").item().enum_values().collect();
    assert!(usages.starts_with(&["any", "cert sign", "client auth"]), "{usages:?}");
    let path = kind("networking.k8s.io", "v1", "Ingress");
    let path = at(path, "spec.rules.[].http.paths.[].pathType");
    assert_eq!(path.enum_values().collect::<Vec<_>>(), ["Exact", "ImplementationSpecific", "Prefix"]);
    let definition = kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let props = at(definition, "spec.versions.[].schema.openAPIV3Schema");
    let items = at(props, "items");
    assert_eq!(items.union().map(|(union, schema, _)| (union, schema)), Some((Union::SchemaOrArray, props)));
    assert_eq!(at(props, "default").ty(), Type::Json);
}

#[test]
fn loading_is_quick() {
    let start = std::time::Instant::now();
    assert!(Loader::new(TABLE).load().nodes.len() > 1000);
    // Generous, since tests run unoptimized and beside each other; the goal is 3 ms optimized.
    assert!(start.elapsed().as_millis() < 500, "{:?}", start.elapsed());
}
