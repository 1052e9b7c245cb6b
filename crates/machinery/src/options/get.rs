//! Options of a get.

use super::QueryValues;

/// What a get asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GetOptions {
    /// The object must not be older; see [`super::parse_resource_version`].
    pub resource_version: String,
}

impl GetOptions {
    /// Reads a query string. Nothing in it can be wrong.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> GetOptions {
        let query = QueryValues::new(pairs);
        GetOptions { resource_version: query.text("resourceVersion").to_owned() }
    }
}
