//! Decodes the options of a get.

use super::QueryValues;

/// The options of a get.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GetOptions {
    /// The minimum resourceVersion of the object; see [`super::parse_resource_version`].
    pub resource_version: String,
}

impl GetOptions {
    /// Decodes a query string. Every query string is valid.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> GetOptions {
        let query = QueryValues::new(pairs);
        GetOptions { resource_version: query.text("resourceVersion").to_owned() }
    }
}
