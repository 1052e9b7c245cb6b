//! The generic API server: filters, verbs, registry store, discovery, serving.
