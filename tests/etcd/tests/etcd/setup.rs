//! Tests the harness of the servers, on which the other tests depend.

use pintle_harness::{Error, Etcd, EtcdConfig};
use serde_json::json;

#[test]
fn a_cluster_survives_its_leader() -> Result<(), Error> {
    let mut etcd = Etcd::start(3)?;
    assert_eq!(etcd.urls().split(',').count(), 3);
    let put = json!({"key": "YQ==", "value": "MQ=="});
    let leader = etcd.leader()?;
    etcd.member(leader)?.call("/v3/kv/put", &put)?;
    etcd.member_mut(leader)?.kill()?;
    let next = etcd.leader()?;
    assert_ne!(next, leader);
    let range = etcd.member(next)?.call("/v3/kv/range", &json!({"key": "YQ=="}))?;
    assert_eq!(range["kvs"][0]["value"], "MQ==", "{range}");
    etcd.member_mut(leader)?.restart()?;
    etcd.wait_ready()?;
    etcd.move_leader(leader)?;
    assert_eq!(etcd.leader()?, leader);
    Ok(())
}

#[test]
fn a_member_with_certificates_is_ready() -> Result<(), Error> {
    let etcd = Etcd::launch(EtcdConfig::current()?.with_tls())?;
    assert!(etcd.urls().starts_with("https://127.0.0.1:"));
    let tls = etcd.tls().ok_or("no certificates")?;
    for file in [&tls.ca_file, &tls.cert_file, &tls.key_file] {
        assert!(file.is_file(), "{}", file.display());
    }
    Ok(())
}

#[test]
fn old_etcd_is_3_4() -> Result<(), Error> {
    let etcd = Etcd::launch(EtcdConfig::old()?)?;
    let status = etcd.member(0)?.call("/v3/maintenance/status", &json!({}))?;
    assert!(status["version"].as_str().unwrap().starts_with("3.4."), "{status}");
    Ok(())
}
