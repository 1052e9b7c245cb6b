//! End-to-end tests against a started server.

type Result<T = ()> = std::result::Result<T, pintle_harness::Error>;
