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
    /// The serving certificates in force.
    pairs: Mutex<Pairs>,
    /// The contents of the files of each part at the start, until reloading starts.
    first: Mutex<Vec<Vec<Vec<u8>>>>,
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

/// A part that is reloaded on its own: a missing or broken file of one part does not keep another one from being replaced.
#[derive(Clone, Copy)]
enum Part {
    ClientCa,
    RequestHeaderCa,
    Pair,
    /// The certificate for server names with this index.
    Sni(usize),
}

impl Files {
    /// The parts that have files, with their paths.
    fn parts(&self) -> Vec<(Part, Vec<PathBuf>)> {
        let mut parts = Vec::new();
        parts.extend(self.client_ca.iter().map(|path| (Part::ClientCa, vec![path.clone()])));
        parts.extend(self.request_header_ca.iter().map(|path| (Part::RequestHeaderCa, vec![path.clone()])));
        if let PairSource::Files(certificate, key) = &self.pair {
            parts.push((Part::Pair, vec![certificate.clone(), key.clone()]));
        }
        for (index, (certificate, key, _)) in self.sni.iter().enumerate() {
            parts.push((Part::Sni(index), vec![certificate.clone(), key.clone()]));
        }
        parts
    }

    /// The trust anchors of client certificates. A file without a certificate is an error: the server's own authority
    /// would hide it.
    fn client_ca(&self, contents: &[Vec<u8>]) -> Result<String, String> {
        let Some(path) = &self.client_ca else { return Ok(self.own_ca.clone()) };
        let pem = text(path, contents)?;
        match CaBundle::new("client-ca-bundle", &pem) {
            Ok(_) => Ok(format!("{}\n{}", pem.trim_end(), self.own_ca)),
            Err(error) => Err(format!("--client-ca-file: {}: {error}", path.display())),
        }
    }
}

/// The serving certificates.
#[derive(Clone)]
struct Pairs {
    default: CertificatePair,
    sni: Vec<(CertificatePair, Vec<String>)>,
}

impl Pairs {
    /// Replaces a certificate and its key.
    fn set(&mut self, part: Part, contents: &[Vec<u8>]) {
        let pair = match part {
            Part::Pair => Some(&mut self.default),
            Part::Sni(index) => self.sni.get_mut(index).map(|(pair, _)| pair),
            Part::ClientCa | Part::RequestHeaderCa => None,
        };
        if let (Some(pair), [certificate, key]) = (pair, contents) {
            (pair.certificate, pair.key) = (certificate.clone(), key.clone());
        }
    }
}

fn text(path: &Path, contents: &[Vec<u8>]) -> Result<String, String> {
    let bytes = contents.first().cloned().unwrap_or_default();
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
        let parts = files.parts();
        let contents = parts.iter().map(|(part, paths)| {
            read_all(paths).map_err(|error| match part {
                Part::Sni(_) => RunError::Options(format!("failed to load SNI cert and key: {error}")),
                _ => RunError::Options(error),
            })
        });
        let contents = contents.collect::<Result<Vec<_>, _>>()?;
        let of_file = |path: &Path| CertificatePair {
            name: path.display().to_string(),
            certificate: Vec::new(),
            key: Vec::new(),
        };
        let mut pairs = Pairs {
            default: match &files.pair {
                PairSource::Files(certificate, _) => of_file(certificate),
                PairSource::Generated { certificate, key } => CertificatePair {
                    name: "the generated serving certificate".to_owned(),
                    certificate: certificate.clone().into_bytes(),
                    key: key.clone().into_bytes(),
                },
            },
            sni: files.sni.iter().map(|(path, _, names)| (of_file(path), names.clone())).collect(),
        };
        let (mut client_ca, mut request_header_ca) = (files.own_ca.clone(), None);
        for ((part, paths), contents) in parts.iter().zip(&contents) {
            match (part, paths.first()) {
                (Part::ClientCa, _) => client_ca = files.client_ca(contents).map_err(RunError::Options)?,
                (Part::RequestHeaderCa, Some(path)) => {
                    request_header_ca = Some(text(path, contents).map_err(RunError::Options)?);
                }
                _ => pairs.set(*part, contents),
            }
        }
        let bundle = |name: &str, flag: &str, pem: &str| {
            let bundle = CaBundle::new(name, pem);
            bundle.map(Arc::new).map_err(|error| RunError::Options(format!("{flag}: {error}")))
        };
        let client_ca = bundle("client-ca-bundle", "--client-ca-file", &client_ca)?;
        let request_header_ca = request_header_ca
            .map(|pem| bundle("request-header", "--requestheader-client-ca-file", &pem))
            .transpose()?;
        let tls = with_tls_content(&client_ca, request_header_ca.as_deref(), &pairs, |tls| {
            ServingTls::new(&settings, tls)
        });
        let tls = Arc::new(tls.map_err(|error| RunError::Options(error.to_string()))?);
        let serving = SecureServing {
            tls,
            client_ca,
            request_header_ca,
            cluster_authentication: watch::Sender::default(),
            files,
            pairs: Mutex::new(pairs),
            first: Mutex::new(contents),
        };
        serving.publish();
        Ok(serving)
    }

    /// The authentication data for extension servers, which follows reloads.
    pub(crate) fn cluster_authentication(&self) -> ClusterAuthentication {
        ClusterAuthentication::new(self.cluster_authentication.subscribe())
    }

    /// The files to reload, of each part on its own.
    pub(crate) fn dynamic_files(self: &Arc<Self>) -> Vec<DynamicFiles> {
        let first = std::mem::take(&mut *self.first.lock().unwrap_or_else(PoisonError::into_inner));
        let parts = self.files.parts().into_iter().zip(first);
        let files = parts.map(|((part, paths), first)| {
            let serving = self.clone();
            let apply = move |contents: &[Vec<u8>]| serving.reload(part, contents);
            DynamicFiles::new("certificates", paths, first, Box::new(apply))
        });
        files.collect()
    }

    /// Puts a part in force; when it cannot be used, the old one stays.
    fn reload(&self, part: Part, contents: &[Vec<u8>]) -> Result<(), String> {
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = pairs.clone();
        match part {
            Part::ClientCa => {
                let replaced = self.client_ca.replace(&self.files.client_ca(contents)?);
                replaced.map_err(|error| format!("--client-ca-file: {error}"))?;
            }
            Part::RequestHeaderCa => {
                if let (Some(bundle), Some(path)) = (&self.request_header_ca, &self.files.request_header_ca) {
                    let replaced = bundle.replace(&text(path, contents)?);
                    replaced.map_err(|error| format!("--requestheader-client-ca-file: {error}"))?;
                }
            }
            Part::Pair | Part::Sni(_) => next.set(part, contents),
        }
        with_tls_content(&self.client_ca, self.request_header_ca.as_deref(), &next, |content| {
            self.tls.replace(content)
        })
        .map_err(|error| error.to_string())?;
        *pairs = next;
        self.publish();
        Ok(())
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
    pairs: &Pairs,
    then: impl FnOnce(&TlsContent<'_>) -> Result<T, TlsError>,
) -> Result<T, TlsError> {
    let mut authorities = client_ca.current().certificates().to_vec();
    if let Some(bundle) = request_header_ca {
        authorities.extend(bundle.current().certificates().iter().cloned());
    }
    then(&TlsContent { certificate: &pairs.default, sni: &pairs.sni, client_authorities: &authorities })
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, String> {
    paths.iter().map(|path| read_file(path).map_err(|error| error.to_string())).collect()
}
