//! Objects, metadata, selectors, quantities, Status, codecs and patches, all by schema.
