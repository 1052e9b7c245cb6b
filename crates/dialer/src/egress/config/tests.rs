//! Tests of the configuration file.

use super::*;
use std::fs;

fn read_text(text: &str) -> Result<Vec<EgressSelection>, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, text).unwrap();
    read(file.path()).map_err(|error| error.to_string())
}

fn selection(selection: &str) -> Result<Vec<EgressSelection>, String> {
    selections(&format!("- {selection}"))
}

fn selections(selections: &str) -> Result<Vec<EgressSelection>, String> {
    read_text(&format!(
        "kind: EgressSelectorConfiguration\napiVersion: apiserver.k8s.io/v1beta1\negressSelections:\n{selections}\n"
    ))
}

#[test]
fn a_configuration_names_the_connection_of_each_network() {
    let files = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let path = files.path().join(name);
        fs::write(&path, "").unwrap();
        path.display().to_string()
    };
    let (ca, cert, key) = (file("ca"), file("cert"), file("key"));
    let found = selections(&format!(
        "- {{name: Cluster, connection: {{proxyProtocol: GRPC, transport: {{uds: {{udsName: /run/k.sock}}}}}}}}
- {{name: master, connection: {{proxyProtocol: Direct}}}}
- name: etcd
  connection:
    proxyProtocol: HTTPConnect
    transport:
      tcp:
        url: https://127.0.0.1:8131
        tlsConfig: {{caBundle: {ca}, clientCert: {cert}, clientKey: {key}, tlsServerName: proxy}}"
    ));
    let tls =
        TlsConfig { ca_bundle: ca, client_key: key, client_cert: cert, server_name: "proxy".to_owned() };
    let expected = vec![
        EgressSelection {
            network: Network::Cluster,
            connection: Connection::Grpc { socket: PathBuf::from("/run/k.sock") },
        },
        EgressSelection { network: Network::ControlPlane, connection: Connection::Direct },
        EgressSelection {
            network: Network::Etcd,
            connection: Connection::HttpConnect(ProxyAddress::Tcp {
                url: "https://127.0.0.1:8131".to_owned(),
                tls: Some(tls),
            }),
        },
    ];
    assert_eq!(found, Ok(expected));
    let uds = "{name: cluster, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: a}}}}";
    assert_eq!(
        selection(uds).map(|found| found.into_iter().map(|found| found.connection).collect()),
        Ok(vec![Connection::HttpConnect(ProxyAddress::Unix(PathBuf::from("a")))])
    );
    for version in ["v1beta1", "v1alpha1"] {
        let text = format!("kind: EgressSelectorConfiguration\napiVersion: apiserver.k8s.io/{version}\n");
        assert_eq!(read_text(&text), Ok(Vec::new()));
    }
}

#[test]
fn other_files_are_refused() {
    let check = |text: &str, expected: &str| {
        let expected = format!("failed to read egress selector config: {expected}");
        assert_eq!(read_text(text), Err(expected), "{text}");
    };
    check("", "Object 'Kind' is missing in ''");
    check(
        "kind: EgressSelectorConfiguration\napiVersion: apiserver.k8s.io/v1",
        "no kind \"EgressSelectorConfiguration\" is registered for version \"apiserver.k8s.io/v1\" in scheme \
         \"k8s.io/apiserver/pkg/server/egressselector/config.go:33\"",
    );
    check(
        "kind: EgressSelectorConfiguration\napiVersion: apiserver.k8s.io/v1beta1\negressSelection: []",
        "strict decoding error: unknown field \"egressSelection\"",
    );
    let missing = read(Path::new("/nothing/here")).unwrap_err().to_string();
    assert_eq!(
        missing,
        "failed to read egress selector config: unable to read egress selector configuration from \"/nothing/here\" \
         [open /nothing/here: no such file or directory]"
    );
}

#[test]
fn selections_are_validated_as_kubernetes_does() {
    let check = |found: Result<Vec<EgressSelection>, String>, expected: &str| {
        assert_eq!(found, Err(format!("failed to validate egress selector configuration: {expected}")));
    };
    let with = |connection: &str| selection(&format!("{{name: cluster, connection: {connection}}}"));
    check(
        with("{proxyProtocol: http}"),
        "service.connection.protocol: Unsupported value: \"http\": supported values: \"Direct\", \"HTTPConnect\", \"GRPC\"",
    );
    check(
        with("{proxyProtocol: Direct, transport: {}}"),
        "service.connection.transport: Invalid value: \"direct\": config must be absent for direct connect",
    );
    check(
        with("{proxyProtocol: HTTPConnect}"),
        "service.connection.transport: Required value: transport must be set for HTTPConnect",
    );
    check(
        with("{proxyProtocol: HTTPConnect, transport: {}}"),
        "service.connection.tcp: Required value: One of TCP or UDS must be set",
    );
    check(
        with("{proxyProtocol: GRPC}"),
        "service.connection.transport: Required value: transport must be set for GRPC",
    );
    check(
        with("{proxyProtocol: GRPC, transport: {tcp: {url: 'http://a:1'}}}"),
        "service.connection.uds: Required value: UDS must be set with GRPC",
    );
    check(
        with("{proxyProtocol: GRPC, transport: {uds: {}}}"),
        "service.connection.udsName: Invalid value: \"nil\": must be present for UDS connections",
    );
    let tcp = |tcp: &str| with(&format!("{{proxyProtocol: HTTPConnect, transport: {{tcp: {tcp}}}}}"));
    check(
        tcp("{url: 'a:1'}"),
        "service.connection.url: Invalid value: \"a:1\": supported connection protocols are http:// and https://",
    );
    check(
        tcp("{url: 'http://a:1', tlsConfig: {}}"),
        "service.connection.tlsConfig: Invalid value: \"nil\": config must not be present when using HTTP",
    );
    check(
        tcp("{url: 'https://a:1'}"),
        "service.connection.tlsConfig: Required value: TLSConfig must be present when using HTTPS",
    );
    check(
        tcp("{url: 'https://a:1', tlsConfig: {caBundle: /no/ca, clientKey: /no/key}}"),
        "[service.connection.tlsConfig.caBundle: Invalid value: \"/no/ca\": TLS config ca bundle does not exist, \
         service.connection.tlsConfig.clientCert: Invalid value: \"nil\": Using TLS requires clientCert, \
         service.connection.tlsConfig.clientKey: Invalid value: \"/no/key\": TLS client key does not exist]",
    );
    check(
        selections(
            "- {name: master, connection: {proxyProtocol: Direct}}
- {name: controlPlane, connection: {proxyProtocol: Direct}}
- {name: nodes, connection: {proxyProtocol: Direct}}",
        ),
        "[service.connection[1]: Duplicate value: \"controlplane\", service.connection: Unsupported value: \"nodes\": \
         supported values: \"cluster\", \"controlplane\", \"etcd\"]",
    );
}
