//! The API extensions server: custom resource definitions.
