//! Starts the command with the arguments and certificates of those who start kube-apiserver: kubeadm, kind, and the test
//! environment of controller-runtime. Only the store is another one.

#![expect(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};
use tempfile::TempDir;

/// Longer than a start takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A certificate authority as kubeadm and the test environment make them.
struct Authority {
    params: CertificateParams,
    key: KeyPair,
}

impl Authority {
    fn make(dir: &Path, file: &str, common_name: &str) -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = name(common_name, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
            KeyUsagePurpose::KeyCertSign,
        ];
        fs::write(dir.join(format!("{file}.crt")), params.self_signed(&key).unwrap().pem()).unwrap();
        fs::write(dir.join(format!("{file}.key")), key.serialize_pem()).unwrap();
        Authority { params, key }
    }

    fn issue(&self, dir: &Path, file: &str, subject: (&str, Option<&str>), names: &[&str]) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = name(subject.0, subject.1);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = match names.is_empty() {
            true => vec![ExtendedKeyUsagePurpose::ClientAuth],
            false => vec![ExtendedKeyUsagePurpose::ServerAuth],
        };
        params.subject_alt_names = names
            .iter()
            .map(|name| match name.parse() {
                Ok(ip) => SanType::IpAddress(ip),
                Err(_) => SanType::DnsName((*name).try_into().unwrap()),
            })
            .collect();
        let certificate = params.signed_by(&key, &Issuer::from_params(&self.params, &self.key)).unwrap();
        fs::write(dir.join(format!("{file}.crt")), certificate.pem()).unwrap();
        fs::write(dir.join(format!("{file}.key")), key.serialize_pem()).unwrap();
    }
}

fn name(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name
}

/// The files below `/etc/kubernetes/pki`.
fn kubeadm_certificates(dir: &Path) {
    let ca = Authority::make(dir, "ca", "kubernetes");
    let names = [
        "kind-control-plane",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "10.96.0.1",
        "172.18.0.2",
        "127.0.0.1",
    ];
    ca.issue(dir, "apiserver", ("kube-apiserver", None), &names);
    let kubelet_client = ("kube-apiserver-kubelet-client", Some("kubeadm:cluster-admins"));
    ca.issue(dir, "apiserver-kubelet-client", kubelet_client, &[]);
    let front_proxy = Authority::make(dir, "front-proxy-ca", "front-proxy-ca");
    front_proxy.issue(dir, "front-proxy-client", ("front-proxy-client", None), &[]);
    let tokens = KeyPair::generate().unwrap();
    fs::write(dir.join("sa.key"), tokens.serialize_pem()).unwrap();
    fs::write(dir.join("sa.pub"), tokens.public_key_pem()).unwrap();
}

/// The arguments of the manifest `kube-apiserver.yaml`, without those of etcd.
fn kubeadm_arguments(pki: &Path) -> Vec<String> {
    let file = |name: &str| pki.join(name).display().to_string();
    let arguments = [
        ("advertise-address", "172.18.0.2".to_owned()),
        ("allow-privileged", "true".to_owned()),
        ("authorization-mode", "Node,RBAC".to_owned()),
        ("client-ca-file", file("ca.crt")),
        ("enable-admission-plugins", "NodeRestriction".to_owned()),
        ("enable-bootstrap-token-auth", "true".to_owned()),
        ("kubelet-client-certificate", file("apiserver-kubelet-client.crt")),
        ("kubelet-client-key", file("apiserver-kubelet-client.key")),
        ("kubelet-preferred-address-types", "InternalIP,ExternalIP,Hostname".to_owned()),
        ("proxy-client-cert-file", file("front-proxy-client.crt")),
        ("proxy-client-key-file", file("front-proxy-client.key")),
        ("requestheader-allowed-names", "front-proxy-client".to_owned()),
        ("requestheader-client-ca-file", file("front-proxy-ca.crt")),
        ("requestheader-extra-headers-prefix", "X-Remote-Extra-".to_owned()),
        ("requestheader-group-headers", "X-Remote-Group".to_owned()),
        ("requestheader-username-headers", "X-Remote-User".to_owned()),
        ("service-account-issuer", "https://kubernetes.default.svc.cluster.local".to_owned()),
        ("service-account-key-file", file("sa.pub")),
        ("service-account-signing-key-file", file("sa.key")),
        ("service-cluster-ip-range", "10.96.0.0/16".to_owned()),
        ("tls-cert-file", file("apiserver.crt")),
        ("tls-private-key-file", file("apiserver.key")),
    ];
    arguments.into_iter().map(|(name, value)| format!("--{name}={value}")).collect()
}

/// The arguments of controller-runtime's `envtest`, without those of etcd.
fn envtest_arguments(dir: &Path) -> Vec<String> {
    let file = |name: &str| dir.join(name).display().to_string();
    let arguments = [
        ("allow-privileged", "true".to_owned()),
        ("authorization-mode", "RBAC".to_owned()),
        ("bind-address", "127.0.0.1".to_owned()),
        ("cert-dir", dir.display().to_string()),
        ("client-ca-file", file("client-cert-auth-ca.crt")),
        ("disable-admission-plugins", "ServiceAccount".to_owned()),
        ("service-account-issuer", "https://127.0.0.1:0/".to_owned()),
        ("service-account-key-file", file("sa-signer.crt")),
        ("service-account-signing-key-file", file("sa-signer.key")),
        ("service-cluster-ip-range", "10.0.0.0/24".to_owned()),
    ];
    arguments.into_iter().map(|(name, value)| format!("--{name}={value}")).collect()
}

/// A server that is killed at the end of the test.
struct Running {
    process: Child,
    _data: TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts the command, and waits until it serves.
#[expect(clippy::disallowed_methods, reason = "no runtime runs in this test")]
fn start(arguments: &[String]) -> Running {
    let data = tempfile::tempdir().unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_pintle"))
        .args(arguments)
        .args(["--secure-port=0", "--storage-backend=memory"])
        .arg(format!("--data-dir={}", data.path().display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (sender, lines) = mpsc::channel();
    let output = process.stdout.take().unwrap();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    let mut log = process.stderr.take().unwrap();
    let running = Running { process, _data: data };
    // The server prints the path of the administrator's kubeconfig when it is ready.
    if lines.recv_timeout(PATIENCE).is_err() {
        drop(running);
        let mut text = String::new();
        let _ = std::io::Read::read_to_string(&mut log, &mut text);
        panic!("the server does not start: {text}");
    }
    std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    running
}

#[test]
fn the_manifest_of_kubeadm_starts_the_server() {
    let pki = tempfile::tempdir().unwrap();
    kubeadm_certificates(pki.path());
    start(&kubeadm_arguments(pki.path()));
}

#[test]
fn the_arguments_of_kind_start_the_server() {
    let pki = tempfile::tempdir().unwrap();
    kubeadm_certificates(pki.path());
    let mut arguments = kubeadm_arguments(pki.path());
    arguments.extend(["--runtime-config=".to_owned(), "--feature-gates=".to_owned()]);
    start(&arguments);
}

#[test]
fn the_arguments_of_the_test_environment_start_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let ca = Authority::make(dir.path(), "server-ca", "envtest-environment");
    ca.issue(dir.path(), "apiserver", ("localhost", None), &["localhost", "127.0.0.1"]);
    Authority::make(dir.path(), "client-cert-auth-ca", "envtest-environment");
    let tokens = KeyPair::generate().unwrap();
    fs::write(dir.path().join("sa-signer.key"), tokens.serialize_pem()).unwrap();
    fs::write(dir.path().join("sa-signer.crt"), tokens.public_key_pem()).unwrap();
    let before = fs::read(dir.path().join("apiserver.crt")).unwrap();
    start(&envtest_arguments(dir.path()));
    assert_eq!(
        fs::read(dir.path().join("apiserver.crt")).unwrap(),
        before,
        "the given certificate is served"
    );
}

/// Checks arguments; returns whether they are valid, and the lines that tell the problems.
fn check(arguments: &[String]) -> (bool, Vec<String>) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_pintle")).arg("check-config").args(arguments).output().unwrap();
    let lines = String::from_utf8(output.stderr).unwrap().lines().map(str::to_owned).collect();
    (output.status.success(), lines)
}

#[test]
fn a_configuration_is_checked_and_nothing_written() {
    let pki = tempfile::tempdir().unwrap();
    kubeadm_certificates(pki.path());
    let data = tempfile::tempdir().unwrap();
    let mut arguments = kubeadm_arguments(pki.path());
    arguments.push(format!("--data-dir={}", data.path().join("data").display()));
    arguments.push(format!("--audit-log-path={}", data.path().join("audit.log").display()));
    let files = || fs::read_dir(pki.path()).unwrap().count() + fs::read_dir(data.path()).unwrap().count();
    let before = files();
    assert_eq!(check(&arguments), (true, Vec::new()));
    assert_eq!(files(), before);
}

#[test]
fn a_configuration_is_checked_with_its_gates() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    fs::create_dir(path("manifests")).unwrap();
    let admission = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: \
         ValidatingAdmissionPolicy\n  configuration: {{apiVersion: apiserver.config.k8s.io/v1, kind: \
         ValidatingAdmissionPolicyConfiguration, staticManifestsDir: {}}}\n",
        path("manifests")
    );
    fs::write(path("admission.yaml"), admission).unwrap();
    let arguments = |is_open: bool| {
        [
            format!("--feature-gates=ManifestBasedAdmissionControlConfig={is_open}"),
            format!("--admission-control-config-file={}", path("admission.yaml")),
        ]
    };
    assert_eq!(check(&arguments(true)), (true, Vec::new()));
    let (is_valid, problems) = check(&arguments(false));
    assert!(!is_valid && problems.join("\n").contains("staticManifestsDir: Forbidden"), "{problems:?}");
    fs::write(path("manifests/a.yaml"), "kind: X").unwrap();
    let (is_valid, problems) = check(&arguments(true));
    assert!(!is_valid && problems.join("\n").contains("Object 'apiVersion' is missing"), "{problems:?}");
}

/// What a start refuses, too.
#[test]
fn a_configuration_with_which_no_server_starts_is_not_valid() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).display().to_string();
    fs::write(file("junk"), "junk").unwrap();
    fs::write(file("policy.yaml"), "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]")
        .unwrap();
    for own in ["ca.key", "service-account.key"] {
        fs::create_dir(file(&format!("of-{own}"))).unwrap();
        fs::write(dir.path().join(format!("of-{own}")).join(own), "junk").unwrap();
    }
    fs::create_dir(file("half")).unwrap();
    fs::write(file("half/ca.crt"), "the certificate of an authority").unwrap();
    let junk = format!("--etcd-cafile={}", file("junk"));
    let own = |of: &str| format!("--cert-dir={}", file(of));
    let (policy, directory) =
        (format!("--audit-policy-file={}", file("policy.yaml")), format!("--audit-log-path={}", file("")));
    let rows: [(&[&str], &str); 9] = [
        (&["--etcd-servers=foo"], "it has no port"),
        (&["--etcd-servers=https://127.0.0.1:1"], "needs the file with its authority"),
        (&["--etcd-servers=https://127.0.0.1:1", &junk], "there is no certificate in it"),
        (&["--etcd-servers-overrides=/events#foo"], "it has no port"),
        (
            &["--max-requests-inflight=0", "--max-mutating-requests-inflight=0"],
            "they must add up to something positive",
        ),
        (&[&own("of-ca.key")], "ca.key: "),
        (&[&own("of-service-account.key")], "service-account.key"),
        (&[&own("half")], "is missing: restore it"),
        (&[&policy, &directory], "is a directory"),
    ];
    for (arguments, expected) in rows {
        let (is_valid, problems) =
            check(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>());
        assert!(!is_valid && problems.join("\n").contains(expected), "{arguments:?}: {problems:?}");
    }
}

#[test]
fn all_problems_of_a_configuration_are_told() {
    let pki = tempfile::tempdir().unwrap();
    kubeadm_certificates(pki.path());
    let mut arguments = kubeadm_arguments(pki.path());
    let policy = pki.path().join("policy.yaml");
    fs::write(&policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Loud}]").unwrap();
    let wrong = [
        "--no-such-flag".to_owned(),
        "--request-timeout=soon".to_owned(),
        "--feature-gates=NoSuchGate=perhaps".to_owned(),
        "--feature-gates=StorageVersionAPI=true".to_owned(),
        "--client-ca-file=/no/such/ca.crt".to_owned(),
        "--enable-admission-plugins=NoSuchPlugin".to_owned(),
        "--service-account-max-token-expiration=1m".to_owned(),
        "--service-cluster-ip-range=nowhere".to_owned(),
        "--authorization-mode=NoSuchMode".to_owned(),
        "--encryption-provider-config=/no/such/encryption.yaml".to_owned(),
        "--egress-selector-config-file=/no/such/egress.yaml".to_owned(),
        "--tracing-config-file=/no/such/tracing.yaml".to_owned(),
        "--authentication-token-webhook-config-file=/no/such/webhook.yaml".to_owned(),
        "--tls-min-version=VersionTLS99".to_owned(),
        "--etcd-cafile=/no/such/etcd.crt".to_owned(),
        format!("--audit-policy-file={}", policy.display()),
        "--audit-log-path=-".to_owned(),
    ];
    arguments.extend(wrong);
    let (is_valid, problems) = check(&arguments);
    let text = problems.join("\n");
    assert!(!is_valid, "{text}");
    for part in [
        "no-such-flag",
        "request-timeout",
        "NoSuchGate",
        "NoSuchPlugin",
        "service-account-max-token-expiration",
        "service-cluster-ip-range[0] is not a valid cidr",
        "NoSuchMode",
        "/no/such/encryption.yaml",
        "/no/such/egress.yaml",
        "/no/such/tracing.yaml",
        "VersionTLS99",
        "/no/such/etcd.crt",
        "Loud",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // A wrong minimum version of TLS hides nothing else, nor does a gate that does not exist.
    arguments
        .retain(|argument| !argument.starts_with("--tls-min-version") && !argument.contains("NoSuchGate"));
    let (_, problems) = check(&arguments);
    let text = problems.join("\n");
    assert!(text.contains("/no/such/ca.crt"), "{text}");
    assert!(text.contains("--runtime-config=internal.apiserver.k8s.io/v1alpha1=true"), "{text}");
}
