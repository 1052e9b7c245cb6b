//! Shared code of the tests with real etcd servers.

mod load;
mod proxy;

pub use load::{Load, PREFIX, Report, start_cacher};
pub use proxy::{Network, Proxy};

use base64::prelude::*;
use pintle_harness::{Error, Etcd};
use pintle_storage::{
    BoxFuture, EtcdOptions, EtcdStorage, Revision, Storage,
    contract::{ContractTest, StorageFactory},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

/// The options of an engine that uses all members of a cluster.
pub fn options(etcd: &Etcd, prefix: &str) -> EtcdOptions {
    let urls = etcd.urls();
    let mut options = EtcdOptions::new(urls.split(','), prefix);
    if let Some(tls) = etcd.tls() {
        options.ca_file = Some(tls.ca_file.clone());
        options.cert_file = Some(tls.cert_file.clone());
        options.key_file = Some(tls.key_file.clone());
    }
    options
}

/// Opens engines on one cluster.
pub struct EtcdFactory {
    /// The options of the engines.
    pub options: EtcdOptions,
}

impl StorageFactory for EtcdFactory {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Storage>> {
        Box::pin(async {
            match EtcdStorage::open(self.options.clone()).await {
                Ok(storage) => Arc::new(storage) as Arc<dyn Storage>,
                Err(error) => panic!("{error}"),
            }
        })
    }
}

/// Runs tests of the contract one after the other on one cluster, which is emptied before each.
///
/// # Errors
/// The names of the failed tests; their messages are on standard error.
pub fn check_contract(etcd: &Etcd, tests: &[ContractTest]) -> Result<(), Error> {
    let mut failed = Vec::new();
    for (name, test) in tests {
        clear(etcd)?;
        let factory = EtcdFactory { options: options(etcd, "") };
        let started = Instant::now();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let outcome = catch_unwind(AssertUnwindSafe(|| runtime.block_on(test(&factory))));
        println!("{name}: {:?}, {:?}", outcome.is_ok(), started.elapsed());
        if outcome.is_err() {
            failed.push(*name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {failed:?}").into()) }
}

/// Writes a key directly in etcd, as another program does.
///
/// # Errors
/// When the write fails.
pub fn put(etcd: &Etcd, key: impl AsRef<[u8]>, value: &str) -> Result<Revision, Error> {
    let body =
        serde_json::json!({"key": BASE64_STANDARD.encode(key), "value": BASE64_STANDARD.encode(value)});
    let answer = etcd.member(0)?.call("/v3/kv/put", &body)?;
    let revision = answer.pointer("/header/revision").and_then(|revision| revision.as_str());
    Ok(Revision(revision.ok_or("no revision")?.parse()?))
}

/// Reads a key directly from etcd: its value, and its version (the number of writes).
///
/// # Errors
/// When the read fails.
pub fn read(etcd: &Etcd, key: &str) -> Result<Option<(String, u64)>, Error> {
    let body = serde_json::json!({"key": BASE64_STANDARD.encode(key)});
    let answer = etcd.member(0)?.call("/v3/kv/range", &body)?;
    let Some(kv) = answer.pointer("/kvs/0") else { return Ok(None) };
    let field = |name| kv.get(name).and_then(|value| value.as_str()).ok_or("no such field");
    let value = String::from_utf8(BASE64_STANDARD.decode(field("value")?)?)?;
    Ok(Some((value, field("version")?.parse()?)))
}

/// Deletes all keys.
///
/// # Errors
/// When the deletion fails.
pub fn clear(etcd: &Etcd) -> Result<(), Error> {
    // "\0" in base64; as the end of a range it means that the range has no end.
    let everything = serde_json::json!({"key": "AA==", "range_end": "AA=="});
    etcd.member(0)?.call("/v3/kv/deleterange", &everything).map(drop)
}
