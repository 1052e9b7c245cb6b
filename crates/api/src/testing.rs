//! What unit tests of kinds share: a request's context and a small registry of objects.
