//! What the tests with real etcd servers share.
