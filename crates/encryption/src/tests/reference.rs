//! Values that kube-apiserver v1.36.2 stored for the objects `a` in the namespace `default`, with the configuration
//! beside them. Its KMS plugin was that of the tests.

use super::Fixture;
use pintle_kms_plugin::{KmsPlugin, State};

const CONFIG: &str = include_str!("kube-apiserver-1.36.2/encryption.yaml");

#[tokio::test]
async fn what_kube_apiserver_stored_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("kms.sock");
    let annotations = [("version.plugin.example.com".to_owned(), b"1".to_vec())].into();
    let plugin = KmsPlugin::start_with(&socket, State { annotations, ..State::default() }).unwrap();
    let (_, rules) = CONFIG.split_once("resources:\n").unwrap();
    let rules = rules.replace("SOCKET", socket.to_str().unwrap());
    let fixture = Fixture::load(&rules).await;
    for (resource, stored, kind) in [
        ("secrets", include_bytes!("kube-apiserver-1.36.2/secrets.bin").as_slice(), "Secret"),
        ("configmaps", include_bytes!("kube-apiserver-1.36.2/configmaps.bin").as_slice(), "ConfigMap"),
        ("serviceaccounts", include_bytes!("kube-apiserver-1.36.2/serviceaccounts.bin"), "ServiceAccount"),
        (
            "controllerrevisions.apps",
            include_bytes!("kube-apiserver-1.36.2/controllerrevisions.apps.bin"),
            "ControllerRevision",
        ),
    ] {
        let key = format!("/registry/{}/default/a", resource.split('.').next().unwrap());
        let opened = fixture.open(resource, &key, stored).await.unwrap();
        let has = |needle: &[u8]| opened.value.windows(needle.len()).any(|window| window == needle);
        assert!(opened.value.starts_with(b"k8s\0") && has(kind.as_bytes()) && has(b"default"), "{resource}");
        assert!(!opened.stale, "{resource}");
    }
    assert_eq!(plugin.state().decryptions, 1);
}
