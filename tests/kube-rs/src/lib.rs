//! Tests Pintle with kube-rs: the tests are in `tests/`, and `cargo xtask test` runs them.
