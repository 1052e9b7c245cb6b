//! The versions in which a server stores, decodes and serves one stored resource.

use crate::Resource;
use pintle_machinery::{GroupResource, GroupVersion, GroupVersionKind, compare_versions};

/// The entry of a resource in the storage version API
/// (<https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/2339-storageversion-api-for-ha-api-servers>).
/// Versions are written as in `apiVersion`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceInfo {
    /// The resource under which the versions are published: of those with one storage path, the first by group and name.
    pub resource: GroupResource,
    /// All served resources with the storage path, [`ResourceInfo::resource`] included.
    pub equivalents: Vec<GroupResource>,
    /// The version in which objects are stored.
    pub encoding_version: String,
    /// The versions that a stored object may be in, the preferred ones first, and then the versions of equivalent
    /// resources. The encoding version is among them.
    pub decodable_versions: Vec<String>,
    /// The served versions of [`ResourceInfo::resource`].
    pub served_versions: Vec<String>,
}

impl ResourceInfo {
    /// Derives the entry from the declarations with one storage path: the `served` ones, in every version, and the one in
    /// whose version objects are `stored`. `None` when nothing is served.
    pub fn new(stored: &Resource, served: &[&Resource]) -> Option<ResourceInfo> {
        let mut equivalents: Vec<GroupResource> =
            served.iter().map(|served| served.group_resource()).collect();
        equivalents.sort();
        equivalents.dedup();
        let resource = equivalents.first()?.clone();
        let is_own = |served: &&&Resource| served.group_resource() == resource;
        let encoding = &stored.storage.kind;
        let mut known: Vec<GroupVersionKind> = vec![encoding.clone(), stored.group_version_kind()];
        known.extend(stored.stored_versions.iter().map(|version| version.kind.clone()));
        known.extend(served.iter().filter(is_own).map(|served| served.group_version_kind()));
        let mut decodable: Vec<GroupVersion> = known
            .iter()
            .filter(|kind| kind.group == resource.group)
            .map(GroupVersionKind::group_version)
            .collect();
        decodable.sort_by(|a, b| compare_versions(&b.version, &a.version));
        let others = served.iter().filter(|served| !is_own(served));
        decodable.extend(others.map(|served| served.resource.group_version()));
        // A cohabiting resource may be stored in a version of a group that is not served.
        decodable.push(encoding.group_version());
        let mut own: Vec<&Resource> = served.iter().filter(is_own).copied().collect();
        own.sort_by(|a, b| compare_versions(&a.resource.version, &b.resource.version));
        let mut decodable_versions: Vec<String> = Vec::new();
        for version in decodable.iter().map(GroupVersion::to_string) {
            if !decodable_versions.contains(&version) {
                decodable_versions.push(version);
            }
        }
        Some(ResourceInfo {
            encoding_version: encoding.group_version().to_string(),
            decodable_versions,
            served_versions: own.iter().map(|served| served.resource.group_version().to_string()).collect(),
            resource,
            equivalents,
        })
    }

    /// The name of the object in the storage version API. The core group, whose name is empty, is called `core`.
    pub fn object_name(&self) -> String {
        let group = match self.resource.group.as_str() {
            "" => "core",
            group => group,
        };
        format!("{group}.{}", self.resource.resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scope, StoredVersion};

    fn resource(group: &str, version: &str, stored_in: (&str, &str)) -> Resource {
        let mut resource = Resource::new(group, version, "things", "thing", "Thing", Scope::Namespaced, "");
        resource.storage.kind = GroupVersionKind::new(stored_in.0, stored_in.1, "Thing");
        resource
    }

    fn with_stored_versions(mut resource: Resource, versions: &[(&str, &str)]) -> Resource {
        let stored = |(group, version): &(&str, &str)| StoredVersion {
            kind: GroupVersionKind::new(*group, *version, "Thing"),
            type_name: String::new(),
            to_storage: |object| object,
        };
        resource.stored_versions = versions.iter().map(stored).collect();
        resource
    }

    #[test]
    fn versions_that_are_only_decoded_are_told_apart_from_served_ones() {
        let v2 = with_stored_versions(
            resource("apps", "v2", ("apps", "v2")),
            &[("apps", "v1"), ("apps", "v1beta1"), ("apps", "v2beta1"), ("extensions", "v1beta1")],
        );
        let v1 = resource("apps", "v1", ("apps", "v2"));
        let info = ResourceInfo::new(&v2, &[&v2, &v1]).unwrap();
        assert_eq!(info.object_name(), "apps.things");
        assert_eq!(info.encoding_version, "apps/v2");
        // A group that is not served is no version of this resource.
        assert_eq!(info.decodable_versions, ["apps/v2", "apps/v1", "apps/v2beta1", "apps/v1beta1"]);
        assert_eq!(info.served_versions, ["apps/v1", "apps/v2"]);
    }

    #[test]
    fn cohabiting_resources_have_one_entry() {
        let core = with_stored_versions(resource("", "v1", ("", "v1")), &[("events", "v1beta1")]);
        let other = resource("events", "v1", ("", "v1"));
        let info = ResourceInfo::new(&core, &[&other, &core]).unwrap();
        assert_eq!(info.object_name(), "core.things");
        assert_eq!(
            info.equivalents,
            [GroupResource::new("", "things"), GroupResource::new("events", "things")]
        );
        assert_eq!(info.decodable_versions, ["v1", "events/v1"]);
        assert_eq!(info.served_versions, ["v1"]);
    }

    #[test]
    fn a_cohabiting_resource_alone_is_stored_in_the_other_group() {
        let core = resource("", "v1", ("", "v1"));
        let other = resource("events", "v1", ("", "v1"));
        let info = ResourceInfo::new(&core, &[&other]).unwrap();
        assert_eq!((info.object_name().as_str(), info.encoding_version.as_str()), ("events.things", "v1"));
        assert_eq!(info.decodable_versions, ["events/v1", "v1"]);
        assert_eq!(ResourceInfo::new(&core, &[]), None);
    }
}
