//! Names of groups, versions, kinds and resources.

use std::fmt;

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident),+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name { $($(#[$field_doc])* pub $field: String),+ }

        impl $name {
            /// Creates it from its parts; the core group is "".
            pub fn new($($field: impl Into<String>),+) -> $name {
                $name { $($field: $field.into()),+ }
            }
        }
    };
}

names! {
    /// A group and one of its versions.
    GroupVersion {
        /// The group; "" is the core group.
        group,
        /// The version.
        version
    }
}
names! {
    /// A kind, without a version.
    GroupKind {
        /// The group; "" is the core group.
        group,
        /// The kind.
        kind
    }
}
names! {
    /// A resource, without a version.
    GroupResource {
        /// The group; "" is the core group.
        group,
        /// The plural name.
        resource
    }
}
names! {
    /// A kind in one version.
    GroupVersionKind {
        /// The group; "" is the core group.
        group,
        /// The version.
        version,
        /// The kind.
        kind
    }
}
names! {
    /// A resource in one version.
    GroupVersionResource {
        /// The group; "" is the core group.
        group,
        /// The version.
        version,
        /// The plural name.
        resource
    }
}

impl GroupVersion {
    /// Parses an `apiVersion`: `v1` or `apps/v1`. `None` when there is more than one slash.
    pub fn parse(api_version: &str) -> Option<GroupVersion> {
        match api_version.split_once('/') {
            None => Some(GroupVersion::new("", api_version)),
            Some((_, version)) if version.contains('/') => None,
            Some((group, version)) => Some(GroupVersion::new(group, version)),
        }
    }

    /// The kind of this name in this group and version.
    pub fn with_kind(&self, kind: impl Into<String>) -> GroupVersionKind {
        GroupVersionKind::new(self.group.clone(), self.version.clone(), kind)
    }
}

impl fmt::Display for GroupVersion {
    /// As in `apiVersion`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.is_empty() {
            true => f.write_str(&self.version),
            false => write!(f, "{}/{}", self.group, self.version),
        }
    }
}

impl GroupVersionKind {
    /// The group and version.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(self.group.clone(), self.version.clone())
    }

    /// The kind without its version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.group.clone(), self.kind.clone())
    }
}

impl fmt::Display for GroupVersionKind {
    /// As Go prints it: `apps/v1, Kind=Deployment`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

impl fmt::Display for GroupKind {
    /// `Deployment.apps`, or the bare kind in the core group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.is_empty() {
            true => f.write_str(&self.kind),
            false => write!(f, "{}.{}", self.kind, self.group),
        }
    }
}

impl fmt::Display for GroupResource {
    /// `deployments.apps`, or the bare resource in the core group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.is_empty() {
            true => f.write_str(&self.resource),
            false => write!(f, "{}.{}", self.resource, self.group),
        }
    }
}

impl GroupVersionResource {
    /// The resource without its version.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(self.group.clone(), self.resource.clone())
    }

    /// The group and version.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(self.group.clone(), self.version.clone())
    }
}
