//! The contract every engine keeps, as tests to run against it.
