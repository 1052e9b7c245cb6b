//! The configuration file: reads and validates an `EgressSelectorConfiguration` of `apiserver.k8s.io`
//! (<https://kubernetes.io/docs/reference/config-api/apiserver-config.v1beta1/>).
//!
//! The validation has the order, the field paths and the texts of Kubernetes.

use crate::Network;
use pintle_go_forms::{FileError, read_file};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    config_file::{ConfigFile, ConfigFileError, ConfigKind},
    status::aggregate,
};
use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// The reason why a configuration is unusable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EgressConfigError {
    /// The file cannot be read.
    #[error(
        "failed to read egress selector config: unable to read egress selector configuration from {path:?} [{source}]"
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: FileError,
    },
    /// The file is not a configuration.
    #[error("failed to read egress selector config: {0}")]
    Decode(ConfigFileError),
    /// Fields have invalid values.
    #[error("failed to validate egress selector configuration: {}", aggregate(.0.iter().map(ToString::to_string)))]
    Invalid(ErrorList),
    /// The proxy of a network cannot be used.
    #[error(
        "failed to setup egress selector: failed to create dialer for egressSelection {network:?}: {reason}"
    )]
    Setup {
        /// The name of the network.
        network: &'static str,
        /// The reason.
        reason: String,
    },
}

/// How connections to a network are made.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EgressSelection {
    pub(super) network: Network,
    pub(super) connection: Connection,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Connection {
    Direct,
    HttpConnect(ProxyAddress),
    Grpc { socket: PathBuf },
}

/// The address of an HTTP proxy.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProxyAddress {
    Unix(PathBuf),
    Tcp { url: String, tls: Option<TlsConfig> },
}

/// The files of a TLS connection to a proxy. Empty names are none.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TlsConfig {
    pub(super) ca_bundle: String,
    pub(super) client_key: String,
    pub(super) client_cert: String,
    pub(super) server_name: String,
}

static FILE: LazyLock<ConfigFile> = LazyLock::new(|| {
    let kind = ConfigKind {
        kind: "EgressSelectorConfiguration",
        group: "apiserver.k8s.io",
        versions: &["v1beta1", "v1alpha1"],
    };
    let file = ConfigFile::new(kind, |types| {
        let text = types.text();
        let tls = types.structure(
            &[("caBundle", text), ("clientKey", text), ("clientCert", text), ("tlsServerName", text)],
            &[],
        );
        let tcp = types.structure(&[("url", text)], &[("tlsConfig", tls)]);
        let uds = types.structure(&[("udsName", text)], &[]);
        let transport = types.structure(&[], &[("tcp", tcp), ("uds", uds)]);
        let connection = types.structure(&[("proxyProtocol", text)], &[("transport", transport)]);
        let selection = types.structure(&[("name", text), ("connection", connection)], &[]);
        let selections = types.list(selection);
        types.root(&[("egressSelections", selections)], &[])
    });
    file.of_scheme("k8s.io/apiserver/pkg/server/egressselector/config.go:33")
});

/// Reads a file. Each network occurs at most once.
pub(super) fn read(path: &Path) -> Result<Vec<EgressSelection>, EgressConfigError> {
    let text = read_file(path).map_err(|source| EgressConfigError::Read { path: path.to_owned(), source })?;
    let tree = FILE.decode_strict(&text).map_err(EgressConfigError::Decode)?;
    validate(&tree).map_err(EgressConfigError::Invalid)
}

fn validate(tree: &Value) -> Result<Vec<EgressSelection>, ErrorList> {
    let selections: Vec<&Value> = tree.items_at("egressSelections").iter().collect();
    let mut errors = ErrorList::new();
    let path = FieldPath::new("service").child("connection");
    let connections: Vec<Option<Connection>> =
        selections.iter().map(|selection| connection(selection, &path, &mut errors)).collect();
    let names: Vec<&str> = Network::ALL.iter().map(|network| network.name()).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    let mut valid: Vec<EgressSelection> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for (index, (selection, connection)) in selections.iter().zip(connections).enumerate() {
        // The former name of the control plane.
        let name = match selection.str_at("name") {
            "master" => "controlplane".to_owned(),
            name => name.to_lowercase(),
        };
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path.index(index), name));
            continue;
        }
        seen.push(name.clone());
        match (Network::ALL.into_iter().find(|network| network.name() == name), connection) {
            (None, _) => errors.push(FieldError::not_supported(&path, name, &sorted).of_plain_text()),
            (Some(network), Some(connection)) => valid.push(EgressSelection { network, connection }),
            // The connection has an error.
            (Some(_), None) => {}
        }
    }
    if errors.is_empty() { Ok(valid) } else { Err(errors) }
}

/// The connection of a selection; `None` when it has errors.
fn connection(selection: &Value, path: &FieldPath, errors: &mut ErrorList) -> Option<Connection> {
    let transport = selection.at("connection.transport").filter(|transport| !transport.is_null());
    let found = match selection.str_at("connection.proxyProtocol") {
        "Direct" => match transport {
            None => Ok(Connection::Direct),
            Some(_) => Err(vec![FieldError::invalid(
                &path.child("transport"),
                "direct",
                "config must be absent for direct connect",
            )]),
        },
        "HTTPConnect" => http_connect(transport, path),
        "GRPC" => grpc(transport, path),
        other => Err(vec![FieldError::not_supported(
            &path.child("protocol"),
            other,
            &["Direct", "HTTPConnect", "GRPC"],
        )]),
    };
    match found {
        Ok(connection) => Some(connection),
        Err(found) => {
            errors.extend(found);
            None
        }
    }
}

fn http_connect(transport: Option<&Value>, path: &FieldPath) -> Result<Connection, Vec<FieldError>> {
    let Some(transport) = transport else {
        let why = "transport must be set for HTTPConnect";
        return Err(vec![FieldError::required(&path.child("transport"), why)]);
    };
    let part = |name: &str| transport.at(name).filter(|part| !part.is_null());
    match (part("tcp"), part("uds")) {
        (Some(tcp), Some(_)) => {
            Err(vec![FieldError::invalid(&path.child("tcp"), tcp.clone(), "TCP and UDS cannot both be set")])
        }
        (None, None) => Err(vec![FieldError::required(&path.child("tcp"), "One of TCP or UDS must be set")]),
        (Some(tcp), None) => self::tcp(tcp, path),
        (None, Some(uds)) => Ok(Connection::HttpConnect(ProxyAddress::Unix(socket(uds, path)?))),
    }
}

fn grpc(transport: Option<&Value>, path: &FieldPath) -> Result<Connection, Vec<FieldError>> {
    let Some(transport) = transport else {
        let why = "transport must be set for GRPC";
        return Err(vec![FieldError::required(&path.child("transport"), why)]);
    };
    match transport.at("uds").filter(|uds| !uds.is_null()) {
        Some(uds) => Ok(Connection::Grpc { socket: socket(uds, path)? }),
        None => Err(vec![FieldError::required(&path.child("uds"), "UDS must be set with GRPC")]),
    }
}

fn socket(uds: &Value, path: &FieldPath) -> Result<PathBuf, Vec<FieldError>> {
    match uds.str_at("udsName") {
        "" => {
            let why = "must be present for UDS connections";
            Err(vec![FieldError::invalid(&path.child("udsName"), "nil", why)])
        }
        name => Ok(PathBuf::from(name)),
    }
}

fn tcp(tcp: &Value, path: &FieldPath) -> Result<Connection, Vec<FieldError>> {
    let url = tcp.str_at("url");
    let tls = tcp.at("tlsConfig").filter(|tls| !tls.is_null());
    let at = path.child("tlsConfig");
    let tls = match (url.starts_with("http://"), url.starts_with("https://"), tls) {
        (true, _, None) => None,
        (true, _, Some(_)) => {
            let why = "config must not be present when using HTTP";
            return Err(vec![FieldError::invalid(&at, "nil", why)]);
        }
        (false, true, Some(tls)) => Some(tls_config(tls, &at)?),
        (false, true, None) => {
            return Err(vec![FieldError::required(&at, "TLSConfig must be present when using HTTPS")]);
        }
        (false, false, _) => {
            let why = "supported connection protocols are http:// and https://";
            return Err(vec![FieldError::invalid(&path.child("url"), url, why)]);
        }
    };
    Ok(Connection::HttpConnect(ProxyAddress::Tcp { url: url.to_owned(), tls }))
}

fn tls_config(tls: &Value, path: &FieldPath) -> Result<TlsConfig, Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut file = |field: &str, if_empty: Option<&str>, if_missing: &str| {
        let name = tls.str_at(field);
        match (name, if_empty) {
            ("", None) => {}
            ("", Some(why)) => errors.push(FieldError::invalid(&path.child(field), "nil", why)),
            (name, _) if !Path::new(name).exists() => {
                errors.push(FieldError::invalid(&path.child(field), name, if_missing));
            }
            _ => {}
        }
        name.to_owned()
    };
    let config = TlsConfig {
        ca_bundle: file("caBundle", None, "TLS config ca bundle does not exist"),
        client_cert: file(
            "clientCert",
            Some("Using TLS requires clientCert"),
            "TLS client cert does not exist",
        ),
        client_key: file(
            "clientKey",
            // The repeated word is Kubernetes'.
            Some("Using TLS requires requires clientKey"),
            "TLS client key does not exist",
        ),
        server_name: tls.str_at("tlsServerName").to_owned(),
    };
    if errors.is_empty() { Ok(config) } else { Err(errors) }
}

#[cfg(test)]
mod tests;
