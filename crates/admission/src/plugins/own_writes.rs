//! The options of the writes of plugins to other objects than the request's.

use pintle_registry::WriteOptions;

/// Writes as the server itself.
pub(super) fn write_options() -> WriteOptions {
    WriteOptions { field_manager: "kube-apiserver".to_owned(), ..WriteOptions::default() }
}
