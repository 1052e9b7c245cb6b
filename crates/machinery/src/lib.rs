//! Objects, metadata, selectors, quantities, Status, codecs and patches: operations on API objects of any kind that
//! need neither a socket nor a disk.
//!
//! An object is a [`Value`]; a `pintle_schema` schema describes its fields. This crate knows no kind by name.

pub mod codec;
pub mod config_file;
pub mod continue_token;
pub mod duration;
pub mod error_list;
pub mod field_path;
pub mod generate_name;
pub mod group_version;
pub mod int_or_string;
pub mod jsonpath;
pub mod managed_fields;
pub mod meta;
pub mod nested;
pub mod options;
pub mod patch;
pub mod quantity;
pub mod restore;
pub mod scheme;
pub mod selectors;
mod server_failure;
pub mod status;
mod status_cause;
pub mod text;
pub mod tree;
pub mod user;
pub mod validation;
mod version_order;

pub use error_list::{ErrorList, ErrorType, FieldError};
pub use field_path::FieldPath;
pub use group_version::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
pub use jsonpath::JsonPath;
pub use pintle_tree::{Map, Number, Text, Value, json, to_value};
pub use quantity::Quantity;
pub use selectors::{FieldSelector, LabelSelector};
pub use server_failure::server_failure;
pub use status::{Status, StatusDetails, StatusReason};
pub use status_cause::StatusCause;
pub use tree::ValueExt;
pub use user::UserInfo;
pub use version_order::compare_versions;
