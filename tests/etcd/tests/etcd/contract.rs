//! Runs the contract of storage engines on etcd.

use pintle_etcd_tests::check_contract;
use pintle_harness::{Error, Etcd, EtcdConfig};
use pintle_storage::contract::{durable_storage_contract, storage_contract};

#[test]
fn one_member_keeps_the_contract() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    check_contract(&etcd, &storage_contract())?;
    check_contract(&etcd, &durable_storage_contract())
}

#[test]
fn three_members_keep_the_contract() -> Result<(), Error> {
    let etcd = Etcd::start(3)?;
    check_contract(&etcd, &storage_contract())?;
    check_contract(&etcd, &durable_storage_contract())
}

#[test]
fn old_etcd_keeps_the_contract() -> Result<(), Error> {
    let etcd = Etcd::launch(EtcdConfig::old()?)?;
    check_contract(&etcd, &storage_contract())?;
    check_contract(&etcd, &durable_storage_contract())
}
