//! Runs the example extension API server behind an API service.

use crate::{ADDRESSES, Error, MASTER_TOKEN, Server, wait_for};
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

/// The example extension API server as a child process, behind the service `flunders/flunders` of a server. It is killed
/// when dropped.
///
/// It is registered as [`ExtensionServer::API_SERVICE`], with an authority of its own, and trusts the server's front
/// proxies. Both have to run in a network of their own ([`crate::in_own_network`]), the server with
/// `--enable-aggregator-routing`.
pub struct ExtensionServer {
    child: Child,
}

/// How long the server may take to find it available.
const PATIENCE: Duration = Duration::from_secs(60);
const PORT: u16 = 28443;

impl ExtensionServer {
    /// The name of the API service.
    pub const API_SERVICE: &'static str = "v1.example.pintle.dev";

    /// Starts the extension API server, registers it with `server`, and waits until it is available. `flags` are added
    /// to those that it needs.
    ///
    /// # Errors
    /// When it does not start, or does not become available.
    pub fn start(binary: &Path, server: &Server, flags: &[&str]) -> Result<ExtensionServer, Error> {
        let directory = server.directory().join("extension-server");
        fs::create_dir_all(&directory)?;
        let authority = certificates(&directory)?;
        let file = |name: &str| directory.join(name);
        let url = format!("{}/apis/authorization.k8s.io/v1/subjectaccessreviews", server.url());
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "own",
            "contexts": [{"name": "own", "context": {"cluster": "own", "user": "own"}}],
            "clusters": [{"name": "own", "cluster":
                {"server": url, "certificate-authority": server.ca_file().display().to_string()}}],
            "users": [{"name": "own", "user": {"token": MASTER_TOKEN}}],
        });
        fs::write(file("kubeconfig"), kubeconfig.to_string())?;
        let [address, ..] = ADDRESSES;
        let front_proxies = server.directory().join("data/certs/front-proxy-ca.crt");
        let log = fs::File::create(file("log"))?;
        let child = Command::new(binary)
            .arg(format!("--listen={address}:{PORT}"))
            .arg("--tls-cert-file")
            .arg(file("tls.crt"))
            .arg("--tls-private-key-file")
            .arg(file("tls.key"))
            .arg("--requestheader-client-ca-file")
            .arg(front_proxies)
            .arg("--authorization-kubeconfig")
            .arg(file("kubeconfig"))
            .args(flags)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{}: {error}", binary.display()))?;
        let extension = ExtensionServer { child };
        register(server, address, &authority)?;
        let log = || fs::read_to_string(file("log")).unwrap_or_default();
        wait_for("the extension API server", PATIENCE, || is_available(server).ok().filter(|found| *found))
            .map_err(|error| format!("{error}; its log:\n{}", log()))?;
        Ok(extension)
    }

    /// Kills the server, as a crash does.
    ///
    /// # Errors
    /// When the process cannot be killed.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for ExtensionServer {
    fn drop(&mut self) {
        // The process may have ended already, which is no error here.
        let _ = self.kill();
    }
}

/// Writes the serving certificate; returns its authority, as PEM.
fn certificates(directory: &Path) -> Result<String, Error> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate()?;
    let authority = params.self_signed(&authority_key)?.pem();
    let key = KeyPair::generate()?;
    let issuer = Issuer::new(params, &authority_key);
    let certificate =
        CertificateParams::new(["flunders.flunders.svc".to_owned()])?.signed_by(&key, &issuer)?;
    fs::write(directory.join("tls.crt"), certificate.pem())?;
    fs::write(directory.join("tls.key"), key.serialize_pem())?;
    fs::write(directory.join("ca.crt"), &authority)?;
    Ok(authority)
}

/// Creates the service, its endpoints and the API service.
fn register(server: &Server, address: &str, authority: &str) -> Result<(), Error> {
    let client = server.client()?;
    let create = |path: &str, object: Value| -> Result<(), Error> {
        let response = client.post(path, &object)?;
        match response.status {
            201 | 409 => Ok(()),
            status => Err(format!("POST {path}: {status} {}", response.text()).into()),
        }
    };
    create(
        "/api/v1/namespaces",
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flunders"}}),
    )?;
    create(
        "/api/v1/namespaces/flunders/services",
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "flunders"},
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": PORT}]}}),
    )?;
    create(
        "/apis/discovery.k8s.io/v1/namespaces/flunders/endpointslices",
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "flunders-1", "labels": {"kubernetes.io/service-name": "flunders"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address]}],
            "ports": [{"name": "https", "port": PORT}]}),
    )?;
    create(
        "/apis/apiregistration.k8s.io/v1/apiservices",
        json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": ExtensionServer::API_SERVICE},
            "spec": {"group": "example.pintle.dev", "version": "v1", "groupPriorityMinimum": 1000,
                "versionPriority": 10, "caBundle": STANDARD.encode(authority),
                "service": {"namespace": "flunders", "name": "flunders"}}}),
    )
}

fn is_available(server: &Server) -> Result<bool, Error> {
    let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{}", ExtensionServer::API_SERVICE);
    let object = server.client()?.get(&path)?.json()?;
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let is_true = |condition: &Value| condition.get("status").is_some_and(|status| status == "True");
    Ok(conditions.into_iter().flatten().any(is_true))
}
