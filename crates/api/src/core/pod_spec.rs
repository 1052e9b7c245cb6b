//! `PodSpec`: the code that pods and the pod templates of all workloads share.
//!
//! Defaulting and validation work on the tree: defaulting distinguishes an absent field from zero, and validation reads
//! an object once, which does not pay for decoding it into a typed form. The rules, their order and their messages are
//! those of the API, because clients match on them.

pub(crate) mod affinity;
pub(crate) mod annotations;
pub(crate) mod app_armor;
pub(crate) mod claim_template;
mod containers;
pub(crate) mod containers_of;
mod defaults;
mod disabled_fields;
mod dns;
mod env;
mod field_reference;
mod image;
mod mounts;
mod options;
mod overlapping_paths;
pub(crate) mod paths;
mod privileged;
mod probes;
mod projected;
mod ratcheting;
mod resource_claims;
pub(crate) mod resources;
mod security_context;
pub(crate) mod tolerations;
pub(crate) mod topology_spread;
mod validation;
pub(crate) mod volume_sources;
mod volumes;
mod warnings;
mod windows;

pub use annotations::{validate_annotations, validate_annotations_match_fields};
pub use defaults::set_defaults;
pub use disabled_fields::drop_disabled_fields;
pub use options::PodValidationOptions;
pub use privileged::refuse_privileged_containers;
pub use validation::validate;
pub use warnings::warnings;

pub(crate) use affinity::validate_node_selector;
pub(crate) use claim_template::validate_metadata as validate_template_metadata;
pub(crate) use containers::validate_image_of_pod;
pub(crate) use defaults::set_source_defaults;
pub(crate) use resources::{is_extended, keep_empty_claims};
pub(crate) use volume_sources::validate_csi_driver_name;
pub(crate) use warnings::{deprecated_node_label, fraction_warning, node_term_warnings};
