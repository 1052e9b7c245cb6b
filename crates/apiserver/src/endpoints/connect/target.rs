//! The URL of a destination.

use pintle_go_forms::encode_query;
use pintle_proxy::Target;
use pintle_registry::Destination;

/// The query that a destination declares.
pub(super) fn query_of(destination: &Destination) -> String {
    encode_query(destination.location.query.iter().map(|(name, value)| (*name, value.as_str())))
}

/// The URL of a destination.
///
/// # Errors
/// When its host or port is none.
pub(super) fn target_of(destination: &Destination, query: &str, prefix: String) -> Result<Target, String> {
    let location = &destination.location;
    Target::new(&location.scheme.to_string(), &location.authority(), &location.path, query, prefix)
}
