//! Reads the address and the credentials of a webhook from a kubeconfig file
//! (<https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/>).
//!
//! The file's current context is used. Unsupported settings (credential plugins, proxies, impersonation) are errors,
//! never ignored. Errors name the file and the field, and contain no secret.

use crate::field_type::FieldType;
use pintle_dialer::TlsSettings;
use pintle_go_forms::{FileError, base64};
use pintle_machinery::{
    Value, ValueExt,
    codec::{json, yaml},
    scheme,
    status::aggregate,
};
use std::{
    collections::{BTreeMap, HashSet},
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
        read_users(path).map_err(KubeconfigError)
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
        let name = text(entry, "name");
        let user = client_user(entry.field("user").unwrap_or(&Value::Null), name, dir)?;
        users.by_name.insert(name.to_owned(), user);
    }
    let current = text(&config, "current-context");
    if let Some(context) = named(&config, "contexts", "context", current) {
        users.current = Some(text(context, "user").to_owned());
    }
    Ok(users)
}

impl fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubeconfig").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The error of reading a kubeconfig file, in the words of Kubernetes' client library.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KubeconfigError(String);

impl Kubeconfig {
    /// Reads the file and the files that it names.
    ///
    /// # Errors
    /// When a file cannot be read, or the current context is incomplete or has unsupported settings.
    pub fn read(path: &Path) -> Result<Kubeconfig, KubeconfigError> {
        read(path).map_err(KubeconfigError)
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
    let dir = path.parent().unwrap_or(Path::new(""));
    let (nothing, current) = (Value::Null, text(&config, "current-context"));
    let context = match current {
        "" => &nothing,
        name => named(&config, "contexts", "context", name).ok_or_else(|| {
            let missing = format!("context was not found for specified context: {name}");
            invalid(&[missing, NO_SERVER.to_owned()])
        })?,
    };
    let (user_name, cluster_name) = (text(context, "user"), text(context, "cluster"));
    let user = match user_name {
        "" => &nothing,
        // Kubernetes' client would send requests without credentials.
        name => named(&config, "users", "user", name)
            .ok_or_else(|| invalid(&[format!("user {name:?} was not found for context {current:?}")]))?,
    };
    let cluster = named(&config, "clusters", "cluster", cluster_name).unwrap_or(&nothing);
    validate(user, user_name, cluster, cluster_name, dir)?;
    refuse(cluster, "clusters", cluster_name, &["proxy-url"])?;
    let server = text(cluster, "server").to_owned();
    let ca = data(cluster, &format!("clusters[{cluster_name}]"), "certificate-authority", dir)?;
    let insecure_skip_tls_verify = cluster.bool_at("insecure-skip-tls-verify");
    if insecure_skip_tls_verify && !ca.is_empty() {
        return Err("specifying a root certificates file with the insecure flag is not allowed".to_owned());
    }
    let ClientUser { client_certificate, credentials } = client_user(user, user_name, dir)?;
    let tls_server_name = text(cluster, "tls-server-name");
    let tls_server_name = (!tls_server_name.is_empty()).then(|| tls_server_name.to_owned());
    Ok(Kubeconfig { server, ca, insecure_skip_tls_verify, tls_server_name, client_certificate, credentials })
}

/// Checks that user and cluster are complete and do not contradict themselves.
fn validate(
    user: &Value,
    user_name: &str,
    cluster: &Value,
    cluster_name: &str,
    dir: &Path,
) -> Result<(), String> {
    let has = |fields: &Value, name: &str| !text(fields, name).is_empty();
    let readable = |fields: &Value, field: &str, name: &str, of: &str| {
        let path = Some(text(fields, field)).filter(|file| !file.is_empty()).map(|file| dir.join(file))?;
        std::fs::File::open(&path).err().map(|error| {
            let error = FileError::new("open", &path, error);
            format!("unable to read {name} {} for {of} due to {error}", path.display())
        })
    };
    let mut errors = Vec::new();
    let mut methods = Vec::new();
    if has(user, "token") {
        methods.push("token");
    }
    if has(user, "username") || has(user, "password") {
        methods.push("basicAuth");
    }
    let certificate = (has(user, "client-certificate"), has(user, "client-certificate-data"));
    let key = (has(user, "client-key"), has(user, "client-key-data"));
    if certificate.0 || certificate.1 {
        if certificate == (true, true) {
            errors.push(format!(
                "client-cert-data and client-cert are both specified for {user_name}. client-cert-data will override."
            ));
        }
        match key {
            (true, true) => errors.push(format!(
                "client-key-data and client-key are both specified for {user_name}; client-key-data will override"
            )),
            (false, false) => errors.push(format!(
                "client-key-data or client-key must be specified for {user_name} to use the clientCert authentication \
                 method."
            )),
            _ => {}
        }
        errors.extend(readable(user, "client-certificate", "client-cert", user_name));
        errors.extend(readable(user, "client-key", "client-key", user_name));
    }
    if methods.len() > 1 {
        errors.push(format!(
            "more than one authentication method found for {user_name}; found [{}], only one is allowed",
            methods.join(" ")
        ));
    }
    let fields = cluster.as_object().into_iter().flatten();
    let is_empty = fields.filter(|(_, value)| !value.is_null()).count() == 0;
    let no_server = match (is_empty, cluster_name) {
        (true, _) => Some(NO_SERVER.to_owned()),
        (false, _) if has(cluster, "server") => None,
        (false, "") => Some("default cluster has no server defined".to_owned()),
        (false, name) => Some(format!("no server found for cluster {name:?}")),
    };
    if is_empty && errors.is_empty() {
        return Err(invalid(&[EMPTY.to_owned()]));
    }
    errors.extend(no_server);
    if has(cluster, "certificate-authority") && has(cluster, "certificate-authority-data") {
        errors.push(format!(
            "certificate-authority-data and certificate-authority are both specified for {cluster_name}. \
             certificate-authority-data will override."
        ));
    }
    errors.extend(readable(cluster, "certificate-authority", "certificate-authority", cluster_name));
    match errors.is_empty() {
        true => Ok(()),
        false => Err(invalid(&errors)),
    }
}

/// The error of a configuration without a cluster.
const EMPTY: &str = "no configuration has been provided, try setting KUBERNETES_MASTER environment variable";

/// The error of a cluster without fields, and of a context that has none.
const NO_SERVER: &str = "cluster has no server defined";

fn invalid(errors: &[String]) -> String {
    format!("invalid configuration: {}", aggregate(errors.iter().cloned()))
}

fn read_config(path: &Path) -> Result<Value, String> {
    if let Err(error) = std::fs::metadata(path)
        && error.kind() == std::io::ErrorKind::NotFound
    {
        return Err(FileError::new("stat", path, error).to_string());
    }
    load(path).map_err(|error| format!("error loading config file \"{}\": {error}", path.display()))
}

/// Reads and decodes a file. An empty one is an empty configuration.
fn load(path: &Path) -> Result<Value, String> {
    let bytes = read_file(path)?;
    let converted = yaml::to_json(&bytes).map_err(|error| error.to_string())?;
    let meta = json::type_meta(&converted.json)
        .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))?;
    let config = json::decode_any(&converted.json).map_err(|error| error.to_string())?;
    let is = |given: &str, wanted: &str| given.is_empty() || given == wanted;
    if !is(&meta.kind, "Config") || !is(&meta.api_version, "v1") {
        const SCHEME: &str = "k8s.io/client-go/tools/clientcmd/api/latest/latest.go:50";
        let or = |given: &str, default: &str| if given.is_empty() { default } else { given }.to_owned();
        let (kind, version) = (or(&meta.kind, "Config"), or(&meta.api_version, "v1"));
        return Err(scheme::not_registered(&kind, &version, SCHEME));
    }
    for (name, field) in CONFIG {
        field.check(config.get(*name), "Config", name, "v1")?;
    }
    unique_names(&config)?;
    Ok(config)
}

/// The fields of a kubeconfig. Those that are not used must have their types, too.
const CONFIG: &[(&str, FieldType)] = &[
    ("kind", FieldType::Text),
    ("apiVersion", FieldType::Text),
    ("preferences", FieldType::Object("Preferences", &[("colors", FieldType::Bool), EXTENSIONS])),
    ("clusters", FieldType::Objects("NamedCluster", &[("name", FieldType::Text), ("cluster", CLUSTER)])),
    ("users", FieldType::Objects("NamedAuthInfo", &[("name", FieldType::Text), ("user", USER)])),
    ("contexts", FieldType::Objects("NamedContext", &[("name", FieldType::Text), ("context", CONTEXT)])),
    ("current-context", FieldType::Text),
    EXTENSIONS,
];

/// Extensions have a form of their own.
const EXTENSIONS: (&str, FieldType) =
    ("extensions", FieldType::Objects("NamedExtension", &[("name", FieldType::Text)]));

const CLUSTER: FieldType = FieldType::Object(
    "Cluster",
    &[
        ("server", FieldType::Text),
        ("tls-server-name", FieldType::Text),
        ("insecure-skip-tls-verify", FieldType::Bool),
        ("certificate-authority", FieldType::Text),
        ("certificate-authority-data", FieldType::Bytes),
        ("proxy-url", FieldType::Text),
        ("disable-compression", FieldType::Bool),
        EXTENSIONS,
    ],
);

const USER: FieldType = FieldType::Object(
    "AuthInfo",
    &[
        ("client-certificate", FieldType::Text),
        ("client-certificate-data", FieldType::Bytes),
        ("client-key", FieldType::Text),
        ("client-key-data", FieldType::Bytes),
        ("token", FieldType::Text),
        ("tokenFile", FieldType::Text),
        ("as", FieldType::Text),
        ("as-uid", FieldType::Text),
        ("as-groups", FieldType::Texts),
        ("as-user-extra", FieldType::TextsMap("")),
        ("username", FieldType::Text),
        ("password", FieldType::Text),
        (
            "auth-provider",
            FieldType::Object(
                "AuthProviderConfig",
                &[("name", FieldType::Text), ("config", FieldType::TextMap)],
            ),
        ),
        (
            "exec",
            FieldType::Object(
                "ExecConfig",
                &[
                    ("command", FieldType::Text),
                    ("args", FieldType::Texts),
                    (
                        "env",
                        FieldType::Objects(
                            "ExecEnvVar",
                            &[("name", FieldType::Text), ("value", FieldType::Text)],
                        ),
                    ),
                    ("apiVersion", FieldType::Text),
                    ("installHint", FieldType::Text),
                    ("provideClusterInfo", FieldType::Bool),
                    ("interactiveMode", FieldType::Text),
                ],
            ),
        ),
        EXTENSIONS,
    ],
);

const CONTEXT: FieldType = FieldType::Object(
    "Context",
    &[("cluster", FieldType::Text), ("user", FieldType::Text), ("namespace", FieldType::Text), EXTENSIONS],
);

/// Refuses two entries of one name, of which only one could count.
fn unique_names(config: &Value) -> Result<(), String> {
    let lists = [
        ("clusters", "NamedCluster", "*api.Cluster"),
        ("users", "NamedAuthInfo", "*api.AuthInfo"),
        ("contexts", "NamedContext", "*api.Context"),
        ("extensions", "NamedExtension", "runtime.Object"),
    ];
    for (list, entry, object) in lists {
        let mut names = HashSet::new();
        let mut items = config.items_at(list).iter().map(|item| item.str_at("name"));
        if let Some(name) = items.find(|name| !names.insert(*name)) {
            // The entries are not shown: they hold credentials.
            return Err(format!(
                "error converting *[]{entry} into *map[string]{object}: duplicate name \"{name}\" in list"
            ));
        }
    }
    Ok(())
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
    let credentials = match (text(user, "token"), text(user, "tokenFile"), text(user, "username")) {
        (_, file, _) if !file.is_empty() => Credentials::TokenFile(dir.join(file)),
        (token, _, _) if !token.is_empty() => Credentials::Token(token.to_owned()),
        (_, _, name) if !name.is_empty() => {
            Credentials::Basic(name.to_owned(), text(user, "password").to_owned())
        }
        _ => Credentials::None,
    };
    Ok(ClientUser { client_certificate, credentials })
}

/// Reads data that are inline or in a file.
fn data(fields: &Value, of: &str, field: &str, dir: &Path) -> Result<Vec<u8>, String> {
    let inline = text(fields, &format!("{field}-data"));
    if !inline.is_empty() {
        return base64::decode(inline);
    }
    match text(fields, field) {
        "" => Ok(Vec::new()),
        file => read_file(&dir.join(file)).map_err(|error| format!("{of}.{field}: {error}")),
    }
}

/// A string field; "" if it is absent. Its type was checked with the file.
fn text<'a>(fields: &'a Value, name: &str) -> &'a str {
    fields.field(name).and_then(Value::as_str).unwrap_or_default()
}

/// The entry with a name in one of the lists.
fn named<'a>(config: &'a Value, list: &str, entry: &str, name: &str) -> Option<&'a Value> {
    let found = config.items_at(list).iter().find(|item| item.str_at("name") == name)?;
    // An entry without fields is one.
    Some(found.field(entry).unwrap_or(&Value::Null))
}

fn is_set(fields: &Value, name: &str) -> bool {
    match fields.field(name) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let size =
        std::fs::metadata(path).map_err(|error| FileError::new("open", path, error).to_string())?.len();
    if size > MAX_SIZE {
        return Err(format!("read {}: it has more than {MAX_SIZE} bytes", path.display()));
    }
    pintle_go_forms::read_file(path).map_err(|error| error.to_string())
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
        let before = format!("error loading config file \"{}\": ", path.display());
        let found = found.map_err(|error| error.to_string().replace(&before, "loading: "));
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
            Err(
                "invalid configuration: client-key-data or client-key must be specified for u to use the clientCert \
                 authentication method.",
            ),
        );
        check(
            &with("token: 12345"),
            Err(
                "loading: json: cannot unmarshal number into Go struct field AuthInfo.users.user.token of type string",
            ),
        );
        check(&with("exec: {command: x}"), Err("users[u].exec: not supported for a webhook"));
        check(&with("client-key-data: '!'"), Err("loading: illegal base64 data at input byte 0"));
        check(
            &with("token: t, username: a"),
            Err(
                "invalid configuration: more than one authentication method found for u; found [token basicAuth], only one \
                 is allowed",
            ),
        );
        let cluster = "clusters: [{name: k, cluster: {server: 'https://h', certificate-authority-data: \"YQ\\n==\"}}]\n";
        check(&format!("{HEAD}{cluster}users: [{{name: u, user: {{}}}}]"), Ok("https://h a nobody"));
    }

    #[test]
    fn a_name_is_of_one_entry() {
        let check = |text: &str, converting: &str, name: &str| {
            let error = format!("loading: error converting {converting}: duplicate name \"{name}\" in list");
            check(&format!("{HEAD}{text}"), Err(&error));
        };
        let cluster = "clusters: [{name: k, cluster: {server: 'https://h'}}]\n";
        check(
            "clusters: [{name: k}, {name: l}, {name: k}]",
            "*[]NamedCluster into *map[string]*api.Cluster",
            "k",
        );
        check("users: [{}, {user: {token: t}}]", "*[]NamedAuthInfo into *map[string]*api.AuthInfo", "");
        let extensions = format!("{cluster}extensions: [{{name: x}}, {{name: x}}]");
        check(&extensions, "*[]NamedExtension into *map[string]runtime.Object", "x");
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
    fn fields_that_are_not_used_have_their_types() {
        let cluster = "clusters: [{name: k, cluster: {server: 'https://h'}}]\nusers: [{name: u}]\n";
        for (fields, found, place, wanted) in [
            ("preferences: []", "array", "Config.preferences", "v1.Preferences"),
            ("preferences: {colors: 1}", "number", "Preferences.preferences.colors", "bool"),
            ("extensions: {}", "object", "Config.extensions", "[]v1.NamedExtension"),
            ("extensions: [{name: 1}]", "number", "NamedExtension.extensions.name", "string"),
            (
                "contexts: [{context: {namespace: []}}]",
                "array",
                "Context.contexts.context.namespace",
                "string",
            ),
            ("users: [{user: {as-groups: a}}]", "string", "AuthInfo.users.user.as-groups", "[]string"),
            (
                "users: [{user: {as-user-extra: {a: b}}}]",
                "string",
                "AuthInfo.users.user.as-user-extra",
                "[]string",
            ),
            (
                "users: [{user: {client-key-data: 1}}]",
                "number",
                "AuthInfo.users.user.client-key-data",
                "[]uint8",
            ),
            (
                "users: [{user: {exec: {env: [a]}}}]",
                "string",
                "ExecConfig.users.user.exec.env",
                "v1.ExecEnvVar",
            ),
        ] {
            let error = format!(
                "loading: json: cannot unmarshal {found} into Go struct field {place} of type {wanted}"
            );
            check(fields, Err(&error));
        }
        let extensions = "extensions: [{name: x, extension: [1]}]\npreferences: {colors: true, other: 1}\n";
        check(
            &format!("{}{cluster}{extensions}", HEAD.replace("user: u", "namespace: default")),
            Ok("https://h  nobody"),
        );
    }

    #[test]
    fn what_is_not_whole_is_told() {
        const EMPTY: &str = "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER \
                             environment variable";
        check("", Err(EMPTY));
        check("a: b", Err(EMPTY));
        check(HEAD, Err("invalid configuration: user \"u\" was not found for context \"c\""));
        check(
            "current-context: c",
            Err(
                "invalid configuration: [context was not found for specified context: c, cluster has no server defined]",
            ),
        );
        check(
            "kind: Pod\napiVersion: v1",
            Err("loading: no kind \"Pod\" is registered for version \"v1\" in scheme \
                 \"k8s.io/client-go/tools/clientcmd/api/latest/latest.go:50\""),
        );
        let whole = |fields: &str| {
            format!("{HEAD}clusters: [{{name: k, cluster: {{{fields}}}}}]\nusers: [{{name: u, user: {{}}}}]")
        };
        check(&whole(""), Err(EMPTY));
        check(&whole("other: s"), Err("invalid configuration: no server found for cluster \"k\""));
        check(&whole("server: s, proxy-url: p"), Err("clusters[k].proxy-url: not supported for a webhook"));
        check(
            &whole("server: s, insecure-skip-tls-verify: \"true\""),
            Err("loading: json: cannot unmarshal string into Go struct field \
                 Cluster.clusters.cluster.insecure-skip-tls-verify of type bool"),
        );
    }
}
