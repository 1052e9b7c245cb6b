//! Loads and reloads the serving certificates and the trust anchors of client certificates.

use crate::{
    Options,
    certificates::{Certificates, PairSource},
    dynamic_files::DynamicFiles,
    run_error::RunError,
};
use pintle_apiserver::serving::tls::{CertificatePair, ServingTls, TlsContent, TlsError};
use pintle_authentication::CaBundle;
use pintle_controlplane::ClusterAuthentication;
use pintle_go_forms::read_file;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::watch;

/// The certificates and trust anchors of the secure port.
pub(crate) struct SecureServing {
    pub(crate) tls: Arc<ServingTls>,
    /// The trust anchors of client certificates.
    pub(crate) client_ca: Arc<CaBundle>,
    /// The trust anchors of front proxies' certificates.
    pub(crate) request_header_ca: Option<Arc<CaBundle>>,
    /// The authentication data that is published for extension servers.
    cluster_authentication: watch::Sender<BTreeMap<String, String>>,
    files: Files,
    /// The contents of the files at the start, until reloading starts.
    first: Mutex<Vec<Vec<u8>>>,
}

/// The files of the certificates and trust anchors.
#[derive(Clone)]
struct Files {
    /// The generated authority, trusted in addition: the administrator's certificate is always accepted.
    own_ca: String,
    client_ca: Option<PathBuf>,
    request_header_ca: Option<PathBuf>,
    pair: PairSource,
    sni: Vec<(PathBuf, PathBuf, Vec<String>)>,
    request_header_lists: BTreeMap<String, String>,
}

impl Files {
    /// All paths, in the order in which [`Content::new`] takes their contents.
    fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = self.client_ca.iter().chain(&self.request_header_ca).cloned().collect();
        if let PairSource::Files(certificate, key) = &self.pair {
            paths.extend([certificate.clone(), key.clone()]);
        }
        paths.extend(self.sni.iter().flat_map(|(certificate, key, _)| [certificate.clone(), key.clone()]));
        paths
    }
}

/// The contents of the files.
struct Content {
    /// An error when the file has no certificate: the server's own authority would hide it.
    client_ca: Result<String, String>,
    request_header_ca: Option<String>,
    pair: CertificatePair,
    sni: Vec<(CertificatePair, Vec<String>)>,
}

impl Content {
    fn new(files: &Files, contents: &[Vec<u8>]) -> Result<Content, String> {
        let mut contents = contents.iter();
        let mut next = || contents.next().cloned().ok_or_else(|| "a file is missing".to_owned());
        let client_ca = match &files.client_ca {
            Some(path) => text(path, next()?).and_then(|pem| match CaBundle::new("client-ca-bundle", &pem) {
                Ok(_) => Ok(format!("{}\n{}", pem.trim_end(), files.own_ca)),
                Err(error) => Err(format!("--client-ca-file: {}: {error}", path.display())),
            }),
            None => Ok(files.own_ca.clone()),
        };
        let request_header_ca =
            files.request_header_ca.as_ref().map(|path| text(path, next()?)).transpose()?;
        let pair = match &files.pair {
            PairSource::Files(certificate, _) => CertificatePair {
                name: certificate.display().to_string(),
                certificate: next()?,
                key: next()?,
            },
            PairSource::Generated { certificate, key } => CertificatePair {
                name: "the generated serving certificate".to_owned(),
                certificate: certificate.clone().into_bytes(),
                key: key.clone().into_bytes(),
            },
        };
        let mut sni = Vec::with_capacity(files.sni.len());
        for (certificate, _, names) in &files.sni {
            let name = certificate.display().to_string();
            sni.push((CertificatePair { name, certificate: next()?, key: next()? }, names.clone()));
        }
        Ok(Content { client_ca, request_header_ca, pair, sni })
    }
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| format!("{}: it is no text", path.display()))
}

impl SecureServing {
    /// Loads all files.
    pub(crate) fn load(options: &Options, certificates: &Certificates) -> Result<SecureServing, RunError> {
        let settings = options.serving.tls_settings().map_err(RunError::Options)?;
        let request_header = &options.authentication.request_header;
        let sni = options.serving.tls_sni_cert_keys.iter();
        let files = Files {
            own_ca: certificates.ca_cert_pem.clone(),
            client_ca: options.client_ca_file.clone(),
            request_header_ca: request_header.client_ca_file.clone(),
            pair: certificates.pair.clone(),
            sni: sni.map(|sni| (sni.cert_file.clone(), sni.key_file.clone(), sni.names.clone())).collect(),
            request_header_lists: request_header.published(),
        };
        let contents = read_all(&files.paths()).map_err(RunError::Options)?;
        let content = Content::new(&files, &contents).map_err(RunError::Options)?;
        let bundle = |name: &str, flag: &str, pem: &str| {
            let bundle = CaBundle::new(name, pem);
            bundle.map(Arc::new).map_err(|error| RunError::Options(format!("{flag}: {error}")))
        };
        let client_ca = content.client_ca.clone().map_err(RunError::Options)?;
        let client_ca = bundle("client-ca-bundle", "--client-ca-file", &client_ca)?;
        let request_header_ca = content
            .request_header_ca
            .as_deref()
            .map(|pem| bundle("request-header", "--requestheader-client-ca-file", pem))
            .transpose()?;
        let tls = with_tls_content(&client_ca, request_header_ca.as_deref(), &content, |tls| {
            ServingTls::new(&settings, tls)
        });
        let tls = Arc::new(tls.map_err(|error| RunError::Options(error.to_string()))?);
        let serving = SecureServing {
            tls,
            client_ca,
            request_header_ca,
            cluster_authentication: watch::Sender::default(),
            files,
            first: Mutex::new(contents),
        };
        serving.publish();
        Ok(serving)
    }

    /// The authentication data for extension servers, which follows reloads.
    pub(crate) fn cluster_authentication(&self) -> ClusterAuthentication {
        ClusterAuthentication::new(self.cluster_authentication.subscribe())
    }

    /// The files to reload; `None` when there are none.
    pub(crate) fn dynamic_files(self: &Arc<Self>) -> Option<DynamicFiles> {
        let paths = self.files.paths();
        if paths.is_empty() {
            return None;
        }
        let serving = self.clone();
        let first = std::mem::take(&mut *self.first.lock().unwrap_or_else(PoisonError::into_inner));
        let apply = move |contents: &[Vec<u8>]| serving.reload(contents);
        Some(DynamicFiles::new("certificates", paths, first, Box::new(apply)))
    }

    /// Puts each part in force separately: an invalid serving certificate does not keep a new trust anchor from being
    /// used.
    fn reload(&self, contents: &[Vec<u8>]) -> Result<(), String> {
        let content = Content::new(&self.files, contents)?;
        let mut errors = Vec::new();
        let replaced = content.client_ca.clone().and_then(|pem| {
            self.client_ca.replace(&pem).map_err(|error| format!("--client-ca-file: {error}"))
        });
        errors.extend(replaced.err());
        if let (Some(bundle), Some(pem)) = (&self.request_header_ca, &content.request_header_ca)
            && let Err(error) = bundle.replace(pem)
        {
            errors.push(format!("--requestheader-client-ca-file: {error}"));
        }
        let replaced =
            with_tls_content(&self.client_ca, self.request_header_ca.as_deref(), &content, |content| {
                self.tls.replace(content)
            });
        errors.extend(replaced.err().map(|error| error.to_string()));
        self.publish();
        match errors.is_empty() {
            true => Ok(()),
            false => Err(errors.join(", ")),
        }
    }

    fn publish(&self) {
        let mut data =
            BTreeMap::from([("client-ca-file".to_owned(), self.client_ca.current().pem().to_owned())]);
        if let Some(bundle) = &self.request_header_ca {
            data.insert("requestheader-client-ca-file".to_owned(), bundle.current().pem().to_owned());
            data.extend(self.files.request_header_lists.clone());
        }
        self.cluster_authentication.send_if_modified(|present| {
            let changed = *present != data;
            *present = data;
            changed
        });
    }
}

fn with_tls_content<T>(
    client_ca: &CaBundle,
    request_header_ca: Option<&CaBundle>,
    content: &Content,
    then: impl FnOnce(&TlsContent<'_>) -> Result<T, TlsError>,
) -> Result<T, TlsError> {
    let mut authorities = client_ca.current().certificates().to_vec();
    if let Some(bundle) = request_header_ca {
        authorities.extend(bundle.current().certificates().iter().cloned());
    }
    then(&TlsContent { certificate: &content.pair, sni: &content.sni, client_authorities: &authorities })
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, String> {
    paths.iter().map(|path| read_file(path).map_err(|error| error.to_string())).collect()
}
