//! The descriptions of types and fields, which the build script extracts from a dependency.
//!
//! They are stored deflated and inflated only while a document is built, so that they cost no memory on a server
//! without OpenAPI requests.

use flate2::read::DeflateDecoder;
use pintle_machinery::Value;
use std::{collections::HashMap, io::Read as _};

static DEFLATED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptions.deflate"));

/// The descriptions of definitions and their fields.
#[derive(Debug)]
pub(crate) struct Descriptions {
    text: String,
    /// The range of each definition's lines in the text.
    definitions: HashMap<String, (usize, usize)>,
}

impl Descriptions {
    /// Inflates the descriptions.
    pub(crate) fn load() -> Descriptions {
        let mut text = String::new();
        let unpacked = DeflateDecoder::new(DEFLATED).read_to_string(&mut text);
        debug_assert!(unpacked.is_ok(), "the build script wrote it");
        let mut definitions = HashMap::new();
        let mut offset = 0;
        for block in text.split_inclusive("\n=") {
            let start = offset;
            offset += block.len();
            let name_end = block.find('\n').unwrap_or(block.len());
            let name = block.get(..name_end).unwrap_or_default().trim_start_matches('=');
            definitions.insert(name.to_owned(), (start + name_end, offset));
        }
        Descriptions { text, definitions }
    }

    /// The description of a definition.
    pub(crate) fn definition(&self, definition: &str) -> Option<Value> {
        self.field(definition, "")
    }

    /// The description of a field of a definition.
    pub(crate) fn field(&self, definition: &str, field: &str) -> Option<Value> {
        let &(start, end) = self.definitions.get(definition)?;
        let lines = self.text.get(start..end)?.lines();
        let (_, description) =
            lines.filter_map(|line| line.split_once('\t')).find(|(name, _)| *name == field)?;
        serde_json::from_str(description).ok()
    }
}

/// Returns the API documentation of a field of a definition, such as `name` of
/// `io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta`. Each call inflates the documentation, so callers keep the result.
pub fn field_description(definition: &str, field: &str) -> Option<String> {
    Descriptions::load().field(definition, field)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_fields_are_described() {
        let descriptions = Descriptions::load();
        let pod = descriptions.definition("io.k8s.api.core.v1.Pod");
        assert!(pod.is_some_and(|text| text.as_str().is_some_and(|text| text.starts_with("Pod is"))));
        assert!(descriptions.field("io.k8s.api.core.v1.PodSpec", "nodeName").is_some());
        assert_eq!(descriptions.field("io.k8s.api.core.v1.PodSpec", "nodeNames"), None);
        assert_eq!(descriptions.definition("io.k8s.api.core.v1.Nothing"), None);
    }
}
