//! What may be written: the admission chain and its plugins.
