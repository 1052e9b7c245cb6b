//! The reason why declarations of resources cannot be served.

/// The reason why the store of a declared resource cannot be started: a mistake in the declaration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeclarationError {
    /// The schema does not have the type of the declaration.
    #[error("no schema for {type_name} of {resource}")]
    NoSchema {
        /// The name of the type.
        type_name: String,
        /// The name of the resource.
        resource: String,
    },
    /// No resource declares the storage kind of a path.
    #[error("nothing is stored as {path}")]
    NotStored {
        /// The path below the prefix of all keys.
        path: String,
    },
    /// No version of a custom resource is the storage version.
    #[error("no version is stored")]
    NoStorageVersion,
    /// Objects of a custom resource cannot be converted between two of its versions.
    #[error("no way from version to version")]
    NoConverter,
}

impl DeclarationError {
    /// The schema does not have the type of this resource.
    pub(super) fn no_schema(resource: &pintle_registry::Resource) -> DeclarationError {
        DeclarationError::NoSchema {
            type_name: resource.type_name.clone(),
            resource: resource.resource.resource.clone(),
        }
    }
}
