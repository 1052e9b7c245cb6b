//! The connections to kubelets: the server's certificate for them, and the authorities that they are verified by.

use crate::{KubeletOptions, Options, dynamic_files::DynamicFiles, run_error::RunError};
use pintle_api::core::pod::PodLogMetrics;
use pintle_apiserver::transports::Transports;
use pintle_dialer::{ClientCertificate, Dialer};
use pintle_go_forms::read_file;
use std::{path::PathBuf, sync::Arc};

/// The connections to nodes, pods and services.
pub(crate) struct Kubelets {
    /// The clients.
    pub(crate) transports: Arc<Transports>,
    pub(crate) log_metrics: PodLogMetrics,
    certificate: Arc<ClientCertificate>,
    /// The files of the certificate, its key and the authorities, if there are any.
    paths: Vec<PathBuf>,
    /// The contents of the files at the start.
    first: Vec<Vec<u8>>,
}

impl Kubelets {
    /// Loads the files that the options name. Nodes, pods and services are in the network of the dialer.
    pub(crate) fn load(options: &Options, dialer: Dialer) -> Result<Kubelets, RunError> {
        let KubeletOptions { client_certificate, client_key, certificate_authority, timeout, .. } =
            &options.kubelet;
        let (Some(certificate), Some(key)) = (client_certificate, client_key) else {
            let message = "--kubelet-client-certificate and --kubelet-client-key must be specified together";
            return Err(RunError::Options(message.to_owned()));
        };
        let paths: Vec<PathBuf> =
            [certificate, key].into_iter().chain(certificate_authority).cloned().collect();
        let read = |path: &PathBuf| read_file(path).map_err(|error| RunError::Options(error.to_string()));
        let first = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let transports = Transports::new(*timeout, options.kubelet.bytes_per_second(), dialer)
            .map_err(|error| RunError::Options(error.to_string()))?;
        let kubelets = Kubelets {
            transports: Arc::new(transports),
            log_metrics: PodLogMetrics::new()?,
            certificate: Arc::default(),
            paths,
            first,
        };
        apply(&kubelets.transports, &kubelets.certificate, &kubelets.first).map_err(RunError::Options)?;
        Ok(kubelets)
    }

    /// The files, for reloading.
    pub(crate) fn dynamic_files(&self) -> DynamicFiles {
        let (transports, certificate) = (self.transports.clone(), self.certificate.clone());
        let apply = Box::new(move |contents: &[Vec<u8>]| apply(&transports, &certificate, contents));
        DynamicFiles::new("kubelet client certificate", self.paths.clone(), self.first.clone(), apply)
    }
}

fn apply(
    transports: &Transports,
    certificate: &ClientCertificate,
    contents: &[Vec<u8>],
) -> Result<(), String> {
    let (pair, ca) = match contents {
        [pair @ .., ca] if pair.len() == 2 => (pair, Some(ca.as_slice())),
        pair => (pair, None),
    };
    let [cert, key] = pair else { return Err("a file is missing".to_owned()) };
    certificate
        .set(cert.clone(), key.clone())
        .map_err(|error| format!("--kubelet-client-certificate: {error}"))?;
    transports
        .set_kubelets(ca, certificate)
        .map_err(|error| format!("--kubelet-certificate-authority: {error}"))
}
