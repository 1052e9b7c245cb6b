//! The flags of the server's life: how it starts, how it stops, and how long requests may take
//! (<https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/>).

use super::arguments::{duration, flag, integer, set, switch};
use clap::{Arg, ArgMatches};
use pintle_api::core::service::PortRange;
use std::time::Duration;

/// The options of the server's life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagementOptions {
    /// The host name in documents that refer to the server; empty for the advertised address.
    pub external_hostname: String,
    /// How long `/livez` does not fail after the start.
    pub livez_grace_period: Duration,
    /// The least time of a watch that names none; watches last up to twice as long.
    pub min_request_timeout: Duration,
    /// How long the watch caches may take to be filled before the log says so.
    pub storage_initialization_timeout: Duration,
    /// How long requests are served after the shutdown has begun, while `/readyz` fails.
    pub shutdown_delay: Duration,
    /// Whether requests at the end of the shutdown get 429, and the port stays open for them until all others have ended.
    pub shutdown_send_retry_after: bool,
    /// Whether watches end when the shutdown delay is over, and how long they may take.
    pub shutdown_watch_termination_grace_period: Duration,
    /// How many objects of a collection are deleted at the same time.
    pub delete_collection_workers: usize,
    /// Whether deletes set the finalizers of the garbage collector.
    pub enable_garbage_collector: bool,
    /// The node port of the service `kubernetes`; 0 for a service without.
    pub kubernetes_service_node_port: i64,
    /// Whether requests before the server is ready should get 429. They wait instead.
    pub send_retry_after_while_not_ready_once: bool,
}

impl Default for ManagementOptions {
    fn default() -> ManagementOptions {
        ManagementOptions {
            external_hostname: String::new(),
            livez_grace_period: Duration::ZERO,
            min_request_timeout: Duration::from_secs(1800),
            storage_initialization_timeout: Duration::from_secs(60),
            shutdown_delay: Duration::ZERO,
            shutdown_send_retry_after: false,
            shutdown_watch_termination_grace_period: Duration::ZERO,
            delete_collection_workers: 1,
            enable_garbage_collector: true,
            kubernetes_service_node_port: 0,
            send_retry_after_while_not_ready_once: false,
        }
    }
}

impl ManagementOptions {
    /// The flags.
    pub fn args() -> Vec<Arg> {
        let time = |name, help| flag(name, "DURATION", help).value_parser(duration);
        vec![
            flag("external-hostname", "HOST", "Host name of the server in documents that refer to it"),
            time("livez-grace-period", "Time after the start in which all checks of /livez pass"),
            flag(
                "min-request-timeout",
                "SECONDS",
                "Minimum duration of watches without timeoutSeconds; each gets up to twice as long",
            )
            .value_parser(integer::<u32>),
            time(
                "storage-initialization-timeout",
                "Time for the watch caches to be initialized, after which the log warns",
            ),
            time(
                "shutdown-delay-duration",
                "Time for which requests are still served after the signal to stop, while /readyz fails",
            ),
            switch(
                "shutdown-send-retry-after",
                "Keeps the port open during the shutdown and refuses new requests with 429",
            ),
            time(
                "shutdown-watch-termination-grace-period",
                "Time for watches to end after the shutdown delay; 0 keeps them until the server stops",
            ),
            switch(
                "send-retry-after-while-not-ready-once",
                "Refuses requests with 429 until the server is ready; it has no effect, as such requests wait",
            ),
            flag(
                "delete-collection-workers",
                "N",
                "Number of workers that delete the objects of a collection",
            )
            .value_parser(integer::<usize>),
            switch("enable-garbage-collector", "Deletes set the finalizers of the garbage collector"),
            flag("kubernetes-service-node-port", "PORT", "Node port of the service kubernetes; 0 for none")
                .value_parser(integer::<i64>),
        ]
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> ManagementOptions {
        let mut options = ManagementOptions::default();
        set(matches, "external-hostname", &mut options.external_hostname);
        set(matches, "livez-grace-period", &mut options.livez_grace_period);
        if let Some(seconds) = matches.get_one::<u32>("min-request-timeout") {
            options.min_request_timeout = Duration::from_secs((*seconds).into());
        }
        set(matches, "storage-initialization-timeout", &mut options.storage_initialization_timeout);
        set(matches, "shutdown-delay-duration", &mut options.shutdown_delay);
        set(matches, "shutdown-send-retry-after", &mut options.shutdown_send_retry_after);
        set(
            matches,
            "shutdown-watch-termination-grace-period",
            &mut options.shutdown_watch_termination_grace_period,
        );
        set(
            matches,
            "send-retry-after-while-not-ready-once",
            &mut options.send_retry_after_while_not_ready_once,
        );
        set(matches, "delete-collection-workers", &mut options.delete_collection_workers);
        set(matches, "enable-garbage-collector", &mut options.enable_garbage_collector);
        set(matches, "kubernetes-service-node-port", &mut options.kubernetes_service_node_port);
        options
    }

    /// The node port of the service `kubernetes`; `None` for a service without.
    pub(crate) fn node_port(&self) -> Option<u16> {
        u16::try_from(self.kubernetes_service_node_port).ok().filter(|port| *port != 0)
    }

    /// The errors of that port, which has to be in the range of node ports.
    pub(crate) fn node_port_errors(&self, range: &str) -> Vec<String> {
        let port = self.kubernetes_service_node_port;
        let mut errors = Vec::new();
        if u16::try_from(port).is_err() {
            errors.push(format!(
                "--kubernetes-service-node-port {port} must be between 0 and 65535, inclusive. If 0, the Kubernetes master \
                 service will be of type ClusterIP"
            ));
        }
        if port > 0
            && let Ok(range) = range.parse::<PortRange>()
            && range.offset(port).is_none()
        {
            errors.push(format!("kubernetes service node port range {range} doesn't contain {port}"));
        }
        errors
    }
}
