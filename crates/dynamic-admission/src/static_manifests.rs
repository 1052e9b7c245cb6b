//! Static manifests: files in a directory of the server that configure admission besides the objects of the API
//! (<https://kep.k8s.io/5793>).
//!
//! Webhooks and policies of manifests are in force before the first request, come before those of objects, and apply to
//! the objects that configure admission, too: no client can remove them. The names of manifests end with
//! [`STATIC_MANIFEST_SUFFIX`](pintle_machinery::meta::STATIC_MANIFEST_SUFFIX). A directory is read again while the
//! server runs; one that cannot be used leaves in force what was.

mod configured_directory;
mod directory;
mod loader;
mod manifests;
mod objects;

pub(crate) use configured_directory::configured_directory;
pub use loader::ManifestLoader;
pub use manifests::ManifestDirectory;
pub(crate) use manifests::Manifests;
pub use objects::DefaultAndValidate;
pub(crate) use objects::{ManifestKind, ManifestKinds, Objects};
