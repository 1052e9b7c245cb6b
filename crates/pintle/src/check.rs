//! Checks a configuration: reads and validates all that the options name, and starts nothing.
//!
//! Connections are not made, ports not opened, and files written to a temporary directory only, which takes the place of
//! the data directory. A problem does not hide those of other parts.

use crate::{
    AuthorizationOptions, Options, RunError,
    admission::Admission,
    aggregation::Aggregation,
    authentication::{Authentication, OwnTokens},
    authorization::Authorization,
    certificates::{Certificates, configure_front_proxy, configure_kubelet_client},
    egress::Egress,
    enablement,
    encryption::EncryptionAtRest,
    kubelets::Kubelets,
    peers::Peers,
    secure_serving::SecureServing,
    tokens::Tokens,
};
use pintle_apiserver::metrics::Metrics;
use pintle_audit::AuditMetrics;
use pintle_dialer::Network;
use pintle_feature_gates::Gate;
use std::{fmt::Display, fs, io, path::Path};

/// The problems of the options, and of the files that they name; none if a server with these options starts, as far as it
/// depends on them. The gates of the process are those of the options afterwards.
///
/// # Errors
/// When there is no temporary directory.
pub fn check(options: Options) -> io::Result<Vec<String>> {
    // The parts spawn tasks when they are made. On this runtime, which nobody drives, these never run.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _context = runtime.enter();
    let directory = tempfile::tempdir()?;
    let mut problems = Problems::default();
    problems.find(options, directory.path())?;
    Ok(problems.0)
}

#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    /// The value of a part, unless it has a problem.
    fn note<T>(&mut self, part: Result<T, impl Display>) -> Option<T> {
        let problem = match part {
            Ok(part) => return Some(part),
            Err(error) => error.to_string(),
        };
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
        None
    }

    fn find(&mut self, mut options: Options, directory: &Path) -> io::Result<()> {
        let certificates = directory.join("certs");
        copy_files(&options.certificates_dir(), &certificates)?;
        (options.data_dir, options.cert_dir) = (directory.to_owned(), Some(certificates));
        for error in options.errors().into_iter().flatten() {
            self.note::<()>(Err(error));
        }
        // Errors of the gates are among those of the options.
        if let Ok((gates, _)) = options.features.settings() {
            pintle_feature_gates::install(&gates);
        }
        self.note(options.tracing.load());
        self.store(&options);
        let limits = (options.max_requests_inflight, options.max_mutating_requests_inflight);
        self.note(options.priority_and_fairness.server_concurrency_limit(limits));
        if let Some(config) = self.note(enablement::resource_config(&options.runtime_config)) {
            let is_open = options.features.is_open(Gate::StorageVersionAPI);
            self.note(enablement::publishes_storage_versions(&config, is_open));
        }
        let service_network = options.service_network().ok();
        let egress = self.note(Egress::load(&options));
        let selector = egress.map(|egress| egress.selector).unwrap_or_default();
        let control_plane = selector.dialer(Network::ControlPlane);
        if let Some(path) = &mut options.audit.log.path
            && path != Path::new("-")
        {
            if let Some(parent) = path.parent().filter(|parent| parent.exists() && !parent.is_dir()) {
                self.note::<()>(Err(format!("--audit-log-path: {} is no directory", parent.display())));
            }
            if path.is_dir() {
                self.note::<()>(Err(format!("--audit-log-path: {} is a directory", path.display())));
            }
            *path = directory.join("audit.log");
        }
        if let Some(metrics) = self.note(AuditMetrics::new()) {
            self.note(options.audit.auditor(&metrics, &control_plane));
        }
        self.note(configure_front_proxy(&mut options));
        self.note(configure_kubelet_client(&mut options));
        let address = service_network.and_then(|network| network.api_server_address());
        let certificates = self.note(Certificates::load_or_make(&options, address));
        let serving = certificates.and_then(|own| self.note(SecureServing::load(&options, &own)));
        self.note(Tokens::check(&options));
        let authorization = self.note(Authorization::load(&options, control_plane.clone()));
        // Admission is checked with other authorizers, too.
        let authorization = authorization.or_else(|| {
            let others = Options { authorization: AuthorizationOptions::default(), ..options.clone() };
            Authorization::load(&others, control_plane).ok()
        });
        let aggregation = self.note(Aggregation::load(&options, &selector));
        if let Some(aggregation) = &aggregation {
            self.note(Peers::load(&options, aggregation, &selector));
        }
        if let (Some(authorization), Some(aggregation)) = (&authorization, &aggregation) {
            self.note(Admission::load(&options, authorization, &aggregation.outbound));
        }
        self.note(Kubelets::load(&options, selector.dialer(Network::Cluster)));
        self.note(EncryptionAtRest::check(&options));
        if let (Some(serving), Some(metrics)) = (&serving, self.note(Metrics::new())) {
            let own = OwnTokens { issuers: options.service_accounts.issuers.clone(), ..OwnTokens::default() };
            self.note(Authentication::new(&options, serving, &metrics, own, &selector));
        }
        Ok(())
    }

    fn store(&mut self, options: &Options) {
        let default = (!options.etcd_servers.is_empty()).then_some(options.etcd_servers.as_slice());
        let clusters = default.into_iter().chain(options.etcd_servers_overrides.server_lists());
        let mut is_read = false;
        for servers in clusters {
            is_read = true;
            self.note(options.etcd_cluster(servers).check());
        }
        let files = [
            ("--etcd-cafile", &options.etcd_cafile),
            ("--etcd-certfile", &options.etcd_certfile),
            ("--etcd-keyfile", &options.etcd_keyfile),
        ];
        // Files without servers are not read by a start, and are told nevertheless.
        for (flag, file) in files.into_iter().filter(|_| !is_read) {
            if let Some(path) = file {
                let read = fs::read(path).map_err(|error| format!("{flag}: {}: {error}", path.display()));
                self.note(read);
            }
        }
    }
}

/// Copies the files of a directory, if it exists. Certificates that exist are checked, and missing ones made elsewhere.
fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        if entry.path().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

impl Tokens {
    /// Checks the options and the files of keys, without an external signer.
    fn check(options: &Options) -> Result<(), RunError> {
        let own = &options.service_accounts;
        match own.signing_endpoint {
            Some(_) => Ok(()),
            None => Tokens::keys(options).map(drop),
        }
    }
}
