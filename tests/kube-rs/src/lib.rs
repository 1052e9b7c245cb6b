//! Tests of Pintle with kube-rs are in `tests/`; `cargo xtask test` runs them.
