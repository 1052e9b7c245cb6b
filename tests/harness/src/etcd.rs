//! Runs a cluster of etcd servers on loopback.
//!
//! Every server syncs its writes, as in production. Its files are below a temporary directory, and its ports are free
//! ones. It is killed when the cluster is dropped.

use crate::{Error, Member, etcd_member::Setup, wait_for};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use serde_json::{Value, json};
use std::{
    env, fs,
    net::{IpAddr, Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

/// The timeout of a start, and of the election of a leader.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of attempts to start: another process may take a port between the search and its use.
const ATTEMPTS: usize = 3;

/// The configuration of a cluster.
#[derive(Debug, Clone)]
pub struct EtcdConfig {
    /// The `etcd` binary.
    pub binary: PathBuf,
    /// The number of members.
    pub members: usize,
    /// Whether clients need a certificate.
    pub tls: bool,
    /// Flags in addition to those of the harness.
    pub flags: Vec<String>,
}

impl EtcdConfig {
    /// One member of the binary, without TLS.
    pub fn new(binary: impl Into<PathBuf>) -> EtcdConfig {
        EtcdConfig { binary: binary.into(), members: 1, tls: false, flags: Vec::new() }
    }

    /// One member of the etcd that most tests use (3.5).
    ///
    /// # Errors
    /// When `PINTLE_ETCD` is not set.
    pub fn current() -> Result<EtcdConfig, Error> {
        binary("PINTLE_ETCD").map(EtcdConfig::new)
    }

    /// One member of an older etcd (3.4). Tests that need it have `old_etcd` in their name, so that they can be skipped
    /// where it is not installed.
    ///
    /// # Errors
    /// When `PINTLE_OLD_ETCD` is not set.
    pub fn old() -> Result<EtcdConfig, Error> {
        binary("PINTLE_OLD_ETCD").map(EtcdConfig::new)
    }

    /// Sets the number of members.
    #[must_use]
    pub fn with_members(mut self, members: usize) -> EtcdConfig {
        self.members = members;
        self
    }

    /// Enables TLS, with client certificates.
    #[must_use]
    pub fn with_tls(mut self) -> EtcdConfig {
        self.tls = true;
        self
    }

    /// Adds a flag.
    #[must_use]
    pub fn flag(mut self, flag: impl Into<String>) -> EtcdConfig {
        self.flags.push(flag.into());
        self
    }
}

fn binary(variable: &str) -> Result<PathBuf, Error> {
    let path = env::var_os(variable).ok_or_else(|| {
        format!("{variable} does not name an etcd: run `cargo xtask test etcd`, which installs it")
    })?;
    Ok(path.into())
}

/// The files of a client of a cluster with [`EtcdConfig::tls`].
#[derive(Debug, Clone)]
pub struct EtcdTls {
    /// The trust anchor of the servers' certificates.
    pub ca_file: PathBuf,
    /// A client's certificate.
    pub cert_file: PathBuf,
    /// The private key of the client's certificate.
    pub key_file: PathBuf,
}

/// A started cluster.
pub struct Etcd {
    members: Vec<Member>,
    tls: Option<EtcdTls>,
    // Dropped after the members, which are killed first.
    _directory: TempDir,
}

impl Etcd {
    /// Starts a cluster of [`EtcdConfig::current`] and waits until it serves.
    ///
    /// # Errors
    /// When it does not start; the message ends with a member's log.
    pub fn start(members: usize) -> Result<Etcd, Error> {
        Etcd::launch(EtcdConfig::current()?.with_members(members))
    }

    /// Starts a cluster and waits until it serves.
    ///
    /// # Errors
    /// When it does not start; the message ends with a member's log.
    pub fn launch(config: EtcdConfig) -> Result<Etcd, Error> {
        let mut attempt = 1;
        loop {
            match Etcd::launch_once(&config) {
                Err(error) if attempt < ATTEMPTS && error.to_string().contains("address already in use") => {
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    fn launch_once(config: &EtcdConfig) -> Result<Etcd, Error> {
        let directory = TempDir::with_prefix("pintle-etcd-")?;
        let files = config.tls.then(|| certificates(directory.path())).transpose()?;
        // All ports are held until all are found, so that none is found twice.
        let held: Vec<TcpListener> = (0..config.members * 3)
            .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .collect::<Result<_, _>>()?;
        let ports: Vec<u16> =
            held.iter().map(|port| Ok(port.local_addr()?.port())).collect::<Result<_, std::io::Error>>()?;
        drop(held);
        let ports: Vec<[u16; 3]> = ports.chunks_exact(3).filter_map(|ports| ports.try_into().ok()).collect();
        let peers = ports
            .iter()
            .enumerate()
            .map(|(number, [_, peer, _])| format!("m{number}=http://127.0.0.1:{peer}"));
        let peers = peers.collect::<Vec<_>>().join(",");
        let mut members = Vec::new();
        for (number, [client, peer, metrics]) in ports.into_iter().enumerate() {
            let mut flags = config.flags.clone();
            flags.push(format!("--initial-cluster={peers}"));
            flags.extend(files.iter().flat_map(|files| files.server_flags.clone()));
            let setup = Setup {
                binary: config.binary.clone(),
                name: format!("m{number}"),
                directory: directory.path().join(format!("m{number}")),
                client,
                peer,
                metrics,
                tls: config.tls,
                flags,
            };
            members.push(Member::start(setup)?);
        }
        let mut etcd = Etcd { members, tls: files.map(|files| files.client), _directory: directory };
        etcd.wait_ready()?;
        Ok(etcd)
    }

    /// Waits until every running member serves.
    ///
    /// # Errors
    /// When a member does not; the message has its log.
    pub fn wait_ready(&mut self) -> Result<(), Error> {
        for member in self.members.iter_mut().filter(|member| member.is_started()) {
            member.wait_ready(PATIENCE)?;
        }
        Ok(())
    }

    /// The value of `--etcd-servers`: the client URLs of all members.
    pub fn urls(&self) -> String {
        self.members.iter().map(Member::url).collect::<Vec<_>>().join(",")
    }

    /// The number of members, running or not.
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// One of the members.
    ///
    /// # Errors
    /// When there is no member with this number.
    pub fn member(&self, number: usize) -> Result<&Member, Error> {
        self.members.get(number).ok_or_else(|| format!("there is no member {number}").into())
    }

    /// One of the members, to be killed or paused.
    ///
    /// # Errors
    /// When there is no member with this number.
    pub fn member_mut(&mut self, number: usize) -> Result<&mut Member, Error> {
        self.members.get_mut(number).ok_or_else(|| format!("there is no member {number}").into())
    }

    /// The leader, once the running members agree on one of them.
    ///
    /// # Errors
    /// When they do not agree in time.
    pub fn leader(&self) -> Result<usize, Error> {
        wait_for("a leader", PATIENCE, || {
            let running = self.members.iter().enumerate().filter(|(_, member)| member.is_started());
            let told: Vec<(usize, Value)> = running
                .map(|(number, member)| Some((number, member.status().ok()?)))
                .collect::<Option<_>>()?;
            let (_, first) = told.first()?;
            let leader = first.get("leader")?.as_str()?;
            if told.iter().any(|(_, status)| status.get("leader").and_then(Value::as_str) != Some(leader)) {
                return None;
            }
            let is_leader =
                |status: &Value| status.pointer("/header/member_id").and_then(Value::as_str) == Some(leader);
            told.iter().find(|(_, status)| is_leader(status)).map(|(number, _)| *number)
        })
    }

    /// Transfers the leadership to a member.
    ///
    /// # Errors
    /// When the leader does not transfer it.
    pub fn move_leader(&self, to: usize) -> Result<(), Error> {
        let leader = self.leader()?;
        if leader == to {
            return Ok(());
        }
        let status = self.member(to)?.status()?;
        let target = status.pointer("/header/member_id").ok_or("no member id")?;
        self.member(leader)?.call("/v3/maintenance/transfer-leadership", &json!({"targetID": target}))?;
        Ok(())
    }

    /// The files of a client, in a cluster with TLS.
    pub fn tls(&self) -> Option<&EtcdTls> {
        self.tls.as_ref()
    }
}

struct Certificates {
    server_flags: Vec<String>,
    client: EtcdTls,
}

fn certificates(directory: &Path) -> Result<Certificates, Error> {
    let authority_key = KeyPair::generate()?;
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "etcd-ca");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let path = |name: &str| directory.join(name);
    fs::write(path("ca.crt"), authority.self_signed(&authority_key)?.pem())?;
    let issuer = Issuer::new(authority, &authority_key);
    for (name, usage) in
        [("server", ExtendedKeyUsagePurpose::ServerAuth), ("client", ExtendedKeyUsagePurpose::ClientAuth)]
    {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![usage];
        params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
        fs::write(path(&format!("{name}.crt")), params.signed_by(&key, &issuer)?.pem())?;
        fs::write(path(&format!("{name}.key")), key.serialize_pem())?;
    }
    let server_flags =
        [("cert-file", "server.crt"), ("key-file", "server.key"), ("trusted-ca-file", "ca.crt")]
            .map(|(flag, file)| format!("--{flag}={}", path(file).display()))
            .into_iter()
            // The gateway would be one more client that needs a certificate.
            .chain(["--client-cert-auth".to_owned(), "--enable-grpc-gateway=false".to_owned()])
            .collect();
    let client =
        EtcdTls { ca_file: path("ca.crt"), cert_file: path("client.crt"), key_file: path("client.key") };
    Ok(Certificates { server_flags, client })
}
