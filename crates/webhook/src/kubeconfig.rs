//! Reads the address and the credentials of a webhook from a kubeconfig file
//! (<https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/>).
//!
//! The file's current context is used. Unsupported settings (credential plugins, proxies, impersonation) are errors,
//! never ignored. Errors name the file and the field, and contain no secret.

use base64::Engine;
use pintle_dialer::TlsSettings;
use pintle_machinery::{
    Value, ValueExt,
    codec::{json, yaml},
};
use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

/// The server of a kubeconfig's current context, and the client's credentials.
#[derive(Clone)]
pub struct Kubeconfig {
    /// The URL of the server.
    pub server: String,
    /// The CA certificates, in PEM; blank for the system's trust anchors.
    pub ca: Vec<u8>,
    /// Whether the server's certificate is not verified.
    pub insecure_skip_tls_verify: bool,
    /// The expected name in the server's certificate, if it differs from the URL's host.
    pub tls_server_name: Option<String>,
    /// The client certificate and its key, in PEM.
    pub client_certificate: Option<(Vec<u8>, Vec<u8>)>,
    /// The credentials for the `Authorization` header.
    pub credentials: Credentials,
}

/// The credentials of a request.
#[derive(Clone, Default)]
pub enum Credentials {
    /// No credentials.
    #[default]
    None,
    /// A bearer token.
    Token(String),
    /// A bearer token in a file, whose contents may change.
    TokenFile(PathBuf),
    /// User name and password.
    Basic(String, String),
}

/// The client's side of a connection.
#[derive(Clone, Default)]
pub struct ClientUser {
    /// The client certificate and its key, in PEM.
    pub client_certificate: Option<(Vec<u8>, Vec<u8>)>,
    /// The credentials for the `Authorization` header.
    pub credentials: Credentials,
}

impl fmt::Debug for ClientUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientUser").finish_non_exhaustive()
    }
}

/// The users of a kubeconfig file whose entries are named for webhooks
/// (<https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#authenticate-apiservers>).
#[derive(Debug, Clone, Default)]
pub struct WebhookUsers {
    by_name: BTreeMap<String, ClientUser>,
    nobody: ClientUser,
    /// The user of the current context.
    current: Option<String>,
}

impl WebhookUsers {
    /// Reads the users of the file, and the files that they name.
    ///
    /// # Errors
    /// When a file cannot be read, or a user has unsupported settings.
    pub fn read(path: &Path) -> Result<WebhookUsers, KubeconfigError> {
        read_users(path).map_err(|reason| KubeconfigError { path: path.to_owned(), reason })
    }

    /// The user for a host and port: the entry of this name, else of the name with its first labels replaced by `*`;
    /// for port 443 also without the port; else `*`, else that of the current context, else nobody.
    pub fn of_host(&self, host: &str, port: u16) -> &ClientUser {
        /// The port that names need not have.
        const HTTPS: u16 = 443;
        let with_port =
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let found = self.named(&with_port).or_else(|| self.named(host).filter(|_| port == HTTPS));
        let found = found.or_else(|| self.by_name.get("*"));
        found.or_else(|| self.by_name.get(self.current.as_ref()?)).unwrap_or(&self.nobody)
    }

    fn named(&self, name: &str) -> Option<&ClientUser> {
        let mut rest = name;
        let mut found = self.by_name.get(name);
        while let (None, Some((_, parent))) = (found, rest.split_once('.')) {
            found = self.by_name.get(&format!("*.{parent}"));
            rest = parent;
        }
        found
    }
}

fn read_users(path: &Path) -> Result<WebhookUsers, String> {
    let config = read_config(path)?;
    let dir = path.parent().unwrap_or(Path::new(""));
    let mut users = WebhookUsers::default();
    for entry in config.items_at("users") {
        let name = text(entry, "name").map_err(|error| format!("users: {error}"))?;
        let user = client_user(entry.field("user").unwrap_or(&Value::Null), name, dir)?;
        users.by_name.insert(name.to_owned(), user);
    }
    let current = text(&config, "current-context")?;
    if let Ok(context) = named(&config, "contexts", "context", current) {
        users.current = Some(text(context, "user")?.to_owned());
    }
    Ok(users)
}

impl fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubeconfig").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The error of reading a kubeconfig file.
#[derive(Debug, thiserror::Error)]
#[error("kubeconfig file {path:?}: {reason}")]
pub struct KubeconfigError {
    path: PathBuf,
    reason: String,
}

impl Kubeconfig {
    /// Reads the file and the files that it names.
    ///
    /// # Errors
    /// When a file cannot be read, or the current context is incomplete or has unsupported settings.
    pub fn read(path: &Path) -> Result<Kubeconfig, KubeconfigError> {
        read(path).map_err(|reason| KubeconfigError { path: path.to_owned(), reason })
    }

    pub(crate) fn tls_settings(&self) -> TlsSettings<'_> {
        let client_certificate = self.client_certificate.as_ref();
        TlsSettings {
            ca: &self.ca,
            insecure: self.insecure_skip_tls_verify,
            client_certificate: client_certificate.map(|(certificate, key)| (&**certificate, &**key)),
            both_protocols: true,
        }
    }
}

/// The size limit of a file, in bytes.
const MAX_SIZE: u64 = 4 << 20;

fn read(path: &Path) -> Result<Kubeconfig, String> {
    let config = read_config(path)?;
    let current = text(&config, "current-context")?;
    if current.is_empty() {
        return Err("current-context: it names no context".to_owned());
    }
    let context = named(&config, "contexts", "context", current)?;
    let cluster_name = text(context, "cluster")?;
    let cluster = named(&config, "clusters", "cluster", cluster_name)?;
    let nobody = Value::Null;
    let user_name = text(context, "user")?;
    let user = match user_name {
        "" => &nobody,
        name => named(&config, "users", "user", name)?,
    };
    refuse(cluster, "clusters", cluster_name, &["proxy-url"])?;
    let dir = path.parent().unwrap_or(Path::new(""));
    let server =
        text(cluster, "server").map_err(|error| format!("clusters[{cluster_name}].{error}"))?.to_owned();
    if server.is_empty() {
        return Err(format!("clusters[{cluster_name}].server: it is missing"));
    }
    let of = format!("clusters[{cluster_name}]");
    let ca = data(cluster, &of, "certificate-authority", dir)?;
    let insecure_skip_tls_verify = cluster.bool_at("insecure-skip-tls-verify");
    if insecure_skip_tls_verify && !ca.is_empty() {
        return Err(format!(
            "{of}.certificate-authority: specifying a root certificates file with the insecure flag is not allowed"
        ));
    }
    let ClientUser { client_certificate, credentials } = client_user(user, user_name, dir)?;
    let tls_server_name = text(cluster, "tls-server-name")?;
    let tls_server_name = (!tls_server_name.is_empty()).then(|| tls_server_name.to_owned());
    Ok(Kubeconfig { server, ca, insecure_skip_tls_verify, tls_server_name, client_certificate, credentials })
}

fn read_config(path: &Path) -> Result<Value, String> {
    let bytes = read_file(path)?;
    let converted = yaml::to_json(&bytes).map_err(|error| error.to_string())?;
    let config = json::decode_any(&converted.json).map_err(|error| error.to_string())?;
    match config.is_object() {
        true => Ok(config),
        false => Err("it is no kubeconfig".to_owned()),
    }
}

/// Refuses settings that would be ignored.
fn refuse(fields: &Value, of: &str, name: &str, unsupported: &[&str]) -> Result<(), String> {
    match unsupported.iter().find(|field| is_set(fields, field)) {
        Some(field) => Err(format!("{of}[{name}].{field}: not supported for a webhook")),
        None => Ok(()),
    }
}

/// Reads the entry of a user. Files are relative to `dir`.
fn client_user(user: &Value, name: &str, dir: &Path) -> Result<ClientUser, String> {
    let unsupported = ["exec", "auth-provider", "as", "as-uid", "as-groups", "as-user-extra"];
    refuse(user, "users", name, &unsupported)?;
    let of = format!("users[{name}]");
    let certificate = data(user, &of, "client-certificate", dir)?;
    let key = data(user, &of, "client-key", dir)?;
    let client_certificate = match (certificate.is_empty(), key.is_empty()) {
        (true, true) => None,
        (false, false) => Some((certificate, key)),
        _ => return Err(format!("{of}: client-certificate and client-key are given together or not at all")),
    };
    let of_user = |field: &str| text(user, field).map_err(|error| format!("{of}.{error}"));
    let credentials = match (of_user("token")?, of_user("tokenFile")?, of_user("username")?) {
        (_, file, _) if !file.is_empty() => Credentials::TokenFile(dir.join(file)),
        (token, _, _) if !token.is_empty() => Credentials::Token(token.to_owned()),
        (_, _, name) if !name.is_empty() => {
            Credentials::Basic(name.to_owned(), of_user("password")?.to_owned())
        }
        _ => Credentials::None,
    };
    Ok(ClientUser { client_certificate, credentials })
}

/// Reads data that are inline or in a file.
fn data(fields: &Value, of: &str, field: &str, dir: &Path) -> Result<Vec<u8>, String> {
    let inline = text(fields, &format!("{field}-data")).map_err(|error| format!("{of}.{error}"))?;
    if !inline.is_empty() {
        let decoded = base64::engine::general_purpose::STANDARD.decode(inline);
        return decoded.map_err(|error| format!("{of}.{field}-data: {error}"));
    }
    match text(fields, field).map_err(|error| format!("{of}.{error}"))? {
        "" => Ok(Vec::new()),
        file => read_file(&dir.join(file)).map_err(|error| format!("{of}.{field}: {error}")),
    }
}

/// A string field; "" if it is absent. A YAML number or boolean is an error: an ignored token would only be noticed
/// later.
fn text<'a>(fields: &'a Value, name: &str) -> Result<&'a str, String> {
    match fields.field(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(format!("{name}: it is no text")),
    }
}

/// The entry with a name in one of the lists.
fn named<'a>(config: &'a Value, list: &str, entry: &str, name: &str) -> Result<&'a Value, String> {
    let found = config.items_at(list).iter().find(|item| item.str_at("name") == name);
    found.and_then(|item| item.field(entry)).ok_or_else(|| format!("{list}: there is no {entry} {name:?}"))
}

fn is_set(fields: &Value, name: &str) -> bool {
    match fields.field(name) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("reading {path:?}: {error}");
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.len() > MAX_SIZE {
        return Err(format!("reading {path:?}: it has more than {MAX_SIZE} bytes"));
    }
    std::fs::read(path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca.pem"), "authority").unwrap();
        let path = dir.path().join("config");
        std::fs::write(&path, text).unwrap();
        let found = Kubeconfig::read(&path).map(|config| {
            let credentials = match &config.credentials {
                Credentials::None => "nobody".to_owned(),
                Credentials::Token(token) => token.clone(),
                Credentials::TokenFile(path) => path.strip_prefix(dir.path()).unwrap().display().to_string(),
                Credentials::Basic(name, password) => format!("{name}:{password}"),
            };
            format!("{} {} {credentials}", config.server, String::from_utf8(config.ca).unwrap())
        });
        let before = format!("kubeconfig file {path:?}: ");
        let found = found.map_err(|error| error.to_string().strip_prefix(&before).unwrap().to_owned());
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text}");
    }

    const HEAD: &str = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n";

    #[test]
    fn the_current_context_counts() {
        let cluster =
            "clusters: [{name: k, cluster: {server: 'https://h:1/p', certificate-authority: ca.pem}}]\n";
        let with = |user: &str| format!("{HEAD}{cluster}users: [{{name: u, user: {{{user}}}}}]\n");
        check(&with(""), Ok("https://h:1/p authority nobody"));
        check(&with("token: t"), Ok("https://h:1/p authority t"));
        check(&with("tokenFile: f, token: t"), Ok("https://h:1/p authority f"));
        check(&with("username: jane, password: p"), Ok("https://h:1/p authority jane:p"));
        check(
            &with("client-certificate-data: YQ=="),
            Err("users[u]: client-certificate and client-key are given together or not at all"),
        );
        check(&with("token: 12345"), Err("users[u].token: it is no text"));
        check(&with("exec: {command: x}"), Err("users[u].exec: not supported for a webhook"));
        check(&with("client-key-data: '!'"), Err("users[u].client-key-data: Invalid symbol 33, offset 0."));
        let cluster =
            "clusters: [{name: k, cluster: {server: 'https://h', certificate-authority-data: YQ==}}]\n";
        check(&format!("{HEAD}{cluster}users: [{{name: u, user: {{}}}}]"), Ok("https://h a nobody"));
    }

    #[test]
    fn users_are_found_by_the_names_of_webhooks() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        let names = ["a.ns.svc", "b.ns.svc:8443", "*.ns.svc", "*.other.svc:443", "127.0.0.1:1"];
        let check = |last: &str, host: &str, port: u16, expected: &str| {
            let users = names.iter().chain([&last]).filter(|name| !name.is_empty());
            let users: Vec<String> =
                users.map(|name| format!("- {{name: \"{name}\", user: {{token: \"{name}\"}}}}\n")).collect();
            std::fs::write(&path, format!("users:\n{}", users.concat())).unwrap();
            let users = WebhookUsers::read(&path).unwrap();
            let found = match &users.of_host(host, port).credentials {
                Credentials::Token(token) => token.as_str(),
                _ => "",
            };
            assert_eq!(found, expected, "{host}:{port}");
        };
        check("", "a.ns.svc", 443, "a.ns.svc");
        check("", "a.ns.svc", 444, "");
        check("*", "a.ns.svc", 444, "*");
        check("", "b.ns.svc", 8443, "b.ns.svc:8443");
        check("", "b.ns.svc", 443, "*.ns.svc");
        check("", "x.other.svc", 443, "*.other.svc:443");
        check("", "127.0.0.1", 1, "127.0.0.1:1");
        check("*", "127.0.0.1", 2, "*");
    }

    #[test]
    fn what_is_not_whole_is_told() {
        check("", Err("it is no kubeconfig"));
        check("a: b", Err("current-context: it names no context"));
        check("current-context: c", Err("contexts: there is no context \"c\""));
        check(HEAD, Err("clusters: there is no cluster \"k\""));
        let cluster = |fields: &str| format!("{HEAD}clusters: [{{name: k, cluster: {{{fields}}}}}]\n");
        check(&cluster("server: s"), Err("users: there is no user \"u\""));
        let whole = |fields: &str| format!("{}users: [{{name: u, user: {{}}}}]", cluster(fields));
        check(&whole("other: s"), Err("clusters[k].server: it is missing"));
        check(&whole("server: s, proxy-url: p"), Err("clusters[k].proxy-url: not supported for a webhook"));
    }
}
