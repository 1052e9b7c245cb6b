//! The flags of audit logging: reads and validates them and builds the auditor. Names, defaults and messages are
//! kube-apiserver's (<https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/>).

use super::arguments::{duration, flag, float32, integer, set, switch};
use clap::{Arg, ArgMatches, value_parser};
use pintle_audit::{
    AuditMetrics, Auditor, Backend, BatchConfig, Log, LogConfig, LogFormat, Mode, Policy, RotationConfig,
    Throttle, TruncateConfig, Webhook,
};
use pintle_dialer::Dialer;
use pintle_go_forms::quote;
use std::{path::PathBuf, sync::Arc, time::Duration};

/// The audit policy and its backends.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditOptions {
    /// The policy file; `None` disables audit events.
    pub policy_file: Option<PathBuf>,
    /// The log backend.
    pub log: AuditLogOptions,
    /// The webhook backend.
    pub webhook: AuditWebhookOptions,
}

/// The log backend of audit events.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditLogOptions {
    /// The log file; `-` is the standard output, `None` disables the log.
    pub path: Option<PathBuf>,
    /// How many days rotated files are kept; 0 keeps them for ever.
    pub max_age: i64,
    /// How many rotated files are kept; 0 keeps all.
    pub max_backups: i64,
    /// The size at which the file is rotated, in megabytes; 0 disables rotation.
    pub max_size: i64,
    /// The format of events: `json` or `legacy`.
    pub format: String,
    /// Whether rotated files are compressed.
    pub compress: bool,
    /// The delivery of events.
    pub delivery: AuditDeliveryOptions,
}

/// The webhook backend of audit events.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditWebhookOptions {
    /// The kubeconfig file of the webhook; `None` disables it.
    pub config_file: Option<PathBuf>,
    /// The delay after the first failed attempt.
    pub initial_backoff: Duration,
    /// The delivery of events.
    pub delivery: AuditDeliveryOptions,
}

/// The delivery of events to a backend.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditDeliveryOptions {
    /// The mode: `batch`, `blocking` or `blocking-strict`.
    pub mode: String,
    /// The capacity of the queue, in events.
    pub batch_buffer_size: i64,
    /// The maximum of events in a batch.
    pub batch_max_size: i64,
    /// How long a batch waits for more events.
    pub batch_max_wait: Duration,
    /// Whether the rate of batches is limited.
    pub batch_throttle_enable: bool,
    /// The limit, in batches per second.
    pub batch_throttle_qps: f32,
    /// How many batches may exceed the rate in a burst.
    pub batch_throttle_burst: i64,
    /// Whether large events and batches are truncated.
    pub truncate_enabled: bool,
    /// The size limit of a batch, in bytes.
    pub truncate_max_batch_size: i64,
    /// The size limit of an event, in bytes.
    pub truncate_max_event_size: i64,
    /// The group and version of the events.
    pub version: String,
}

impl Default for AuditOptions {
    fn default() -> AuditOptions {
        let log = AuditDeliveryOptions {
            mode: "blocking".to_owned(),
            batch_buffer_size: 10_000,
            batch_max_size: 1,
            batch_max_wait: Duration::ZERO,
            batch_throttle_enable: false,
            batch_throttle_qps: 0.0,
            batch_throttle_burst: 0,
            truncate_enabled: false,
            truncate_max_batch_size: 10 << 20,
            truncate_max_event_size: 100 << 10,
            version: VERSION.to_owned(),
        };
        let webhook = AuditDeliveryOptions {
            mode: "batch".to_owned(),
            batch_max_size: 400,
            batch_max_wait: Duration::from_secs(30),
            batch_throttle_enable: true,
            batch_throttle_qps: 10.0,
            batch_throttle_burst: 15,
            ..log.clone()
        };
        AuditOptions {
            policy_file: None,
            log: AuditLogOptions {
                path: None,
                max_age: 366,
                max_backups: 100,
                max_size: 100,
                format: "json".to_owned(),
                compress: false,
                delivery: log,
            },
            webhook: AuditWebhookOptions {
                config_file: None,
                initial_backoff: Duration::from_secs(10),
                delivery: webhook,
            },
        }
    }
}

const VERSION: &str = "audit.k8s.io/v1";

/// The delivery flags of a backend, with the option that each sets.
macro_rules! delivery_flags {
    ($plugin:literal) => {
        [
            flag(
                concat!("audit-", $plugin, "-mode"),
                "MODE",
                "Delivery mode of events: batch, blocking or blocking-strict",
            ),
            number(
                concat!("audit-", $plugin, "-batch-buffer-size"),
                "Capacity of the queue of events, in batch mode",
            ),
            number(
                concat!("audit-", $plugin, "-batch-max-size"),
                "Maximum number of events in a batch, in batch mode",
            ),
            time(
                concat!("audit-", $plugin, "-batch-max-wait"),
                "Time after which an incomplete batch is sent, in batch mode",
            ),
            switch(
                concat!("audit-", $plugin, "-batch-throttle-enable"),
                "Limits the rate of batches, in batch mode",
            ),
            Arg::new(concat!("audit-", $plugin, "-batch-throttle-qps"))
                .long(concat!("audit-", $plugin, "-batch-throttle-qps"))
                .value_name("N")
                .value_parser(float32)
                .help("Maximum rate in batches per second, in batch mode"),
            number(
                concat!("audit-", $plugin, "-batch-throttle-burst"),
                "Number of batches that may exceed the rate in a burst, in batch mode",
            ),
            switch(
                concat!("audit-", $plugin, "-truncate-enabled"),
                "Truncates events and splits batches that exceed the size limits",
            ),
            number(
                concat!("audit-", $plugin, "-truncate-max-batch-size"),
                "Maximum size of a batch, in bytes",
            ),
            number(
                concat!("audit-", $plugin, "-truncate-max-event-size"),
                "Maximum size of an event, in bytes",
            ),
            flag(
                concat!("audit-", $plugin, "-version"),
                "GROUP/VERSION",
                "API group and version of the events",
            ),
        ]
    };
}

impl AuditOptions {
    /// The flags.
    pub fn args() -> Vec<Arg> {
        let mut args = vec![
            path(
                "audit-policy-file",
                "File with the audit policy, which selects requests and the level of their events",
            ),
            path("audit-log-path", "File to which audit events are written; - for standard output"),
            number("audit-log-maxage", "Maximum age of rotated audit logs, in days; 0 for no limit"),
            number("audit-log-maxbackup", "Maximum number of rotated audit logs; 0 for no limit"),
            number(
                "audit-log-maxsize",
                "Size in megabytes at which the audit log is rotated; 0 disables rotation",
            ),
            flag("audit-log-format", "FORMAT", "Format of the audit log: json or legacy"),
            switch("audit-log-compress", "Compresses rotated audit logs with gzip"),
            path("audit-webhook-config-file", "Kubeconfig file of the audit webhook"),
            time(
                "audit-webhook-initial-backoff",
                "Delay after the first failed request to the audit webhook",
            ),
            time("audit-webhook-batch-initial-backoff", "Deprecated: use --audit-webhook-initial-backoff"),
        ];
        args.extend(delivery_flags!("log"));
        args.extend(delivery_flags!("webhook"));
        args
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> AuditOptions {
        let policy_file = matches.get_one("audit-policy-file").cloned();
        let mut options = AuditOptions { policy_file, ..AuditOptions::default() };
        let log = &mut options.log;
        log.path = matches.get_one("audit-log-path").cloned();
        set(matches, "audit-log-maxage", &mut log.max_age);
        set(matches, "audit-log-maxbackup", &mut log.max_backups);
        set(matches, "audit-log-maxsize", &mut log.max_size);
        set(matches, "audit-log-format", &mut log.format);
        set(matches, "audit-log-compress", &mut log.compress);
        log.delivery.read(matches, "log");
        let webhook = &mut options.webhook;
        webhook.config_file = matches.get_one("audit-webhook-config-file").cloned();
        set(matches, "audit-webhook-batch-initial-backoff", &mut webhook.initial_backoff);
        set(matches, "audit-webhook-initial-backoff", &mut webhook.initial_backoff);
        webhook.delivery.read(matches, "webhook");
        options
    }

    /// The errors of the backends that are in use.
    pub(crate) fn errors(&self) -> Vec<String> {
        let log = self.log.path.iter().flat_map(|_| self.log.errors());
        let webhook = self.webhook.config_file.iter().flat_map(|_| self.webhook.delivery.errors("webhook"));
        log.chain(webhook).collect()
    }

    /// Builds the auditor; `None` without a policy and backend. Must be called within the runtime.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub(crate) fn auditor(
        &self,
        metrics: &AuditMetrics,
        dialer: &Dialer,
    ) -> Result<Option<Arc<Auditor>>, String> {
        let policy = match &self.policy_file {
            Some(path) => Policy::read(path).map_err(|error| error.to_string())?,
            None => {
                if self.log.path.is_some() || self.webhook.config_file.is_some() {
                    tracing::warn!("no --audit-policy-file is given, so that no audit events are recorded");
                }
                return Ok(None);
            }
        };
        let mut backends = Vec::new();
        if let Some(path) = &self.log.path {
            let log = Log::open(&self.log.config(path.clone())).map_err(|error| error.to_string())?;
            let delivery = &self.log.delivery;
            let (mode, batch) = (delivery.mode(), delivery.batch());
            backends.push(Backend::log(log, mode, &batch, delivery.truncate(), metrics));
        }
        if let Some(path) = &self.webhook.config_file {
            let webhook = Webhook::new(path, self.webhook.initial_backoff, dialer)
                .map_err(|error| error.to_string())?;
            let delivery = &self.webhook.delivery;
            let (mode, batch) = (delivery.mode(), delivery.batch());
            backends.push(Backend::webhook(webhook, mode, &batch, delivery.truncate(), metrics));
        }
        Ok((!backends.is_empty()).then(|| Auditor::new(policy, backends, metrics.clone())))
    }
}

impl AuditLogOptions {
    fn errors(&self) -> Vec<String> {
        let mut errors = self.delivery.errors("log");
        if !LogFormat::ALL.iter().any(|(name, _)| *name == self.format) {
            let formats = LogFormat::ALL.map(|(name, _)| name).join(",");
            errors.push(format!(
                "invalid audit log format {}, allowed formats are {}",
                self.format,
                quote(&formats)
            ));
        }
        let sizes = [("maxage", self.max_age), ("maxbackup", self.max_backups), ("maxsize", self.max_size)];
        let negative = sizes.into_iter().filter(|(_, size)| *size < 0);
        errors.extend(
            negative.map(|(name, size)| format!("--audit-log-{name} {size} can't be a negative number")),
        );
        errors
    }

    fn config(&self, path: PathBuf) -> LogConfig {
        let format = LogFormat::ALL.iter().find(|(name, _)| *name == self.format);
        let rotation = RotationConfig {
            max_size: self.max_size.unsigned_abs().saturating_mul(1 << 20),
            max_age_days: u32::try_from(self.max_age).unwrap_or(u32::MAX),
            max_backups: u32::try_from(self.max_backups).unwrap_or(u32::MAX),
            compress: self.compress,
        };
        LogConfig {
            path,
            format: format.map_or(LogFormat::Json, |(_, format)| *format),
            rotation: (self.max_size > 0).then_some(rotation),
        }
    }
}

impl AuditDeliveryOptions {
    fn read(&mut self, matches: &ArgMatches, plugin: &str) {
        let name = |flag: &str| format!("audit-{plugin}-{flag}");
        set(matches, &name("mode"), &mut self.mode);
        set(matches, &name("batch-buffer-size"), &mut self.batch_buffer_size);
        set(matches, &name("batch-max-size"), &mut self.batch_max_size);
        set(matches, &name("batch-max-wait"), &mut self.batch_max_wait);
        set(matches, &name("batch-throttle-enable"), &mut self.batch_throttle_enable);
        set(matches, &name("batch-throttle-qps"), &mut self.batch_throttle_qps);
        set(matches, &name("batch-throttle-burst"), &mut self.batch_throttle_burst);
        set(matches, &name("truncate-enabled"), &mut self.truncate_enabled);
        set(matches, &name("truncate-max-batch-size"), &mut self.truncate_max_batch_size);
        set(matches, &name("truncate-max-event-size"), &mut self.truncate_max_event_size);
        set(matches, &name("version"), &mut self.version);
    }

    fn errors(&self, plugin: &str) -> Vec<String> {
        let checks = [self.check_mode(plugin), self.check_sizes(plugin), self.check_version()];
        checks.into_iter().filter_map(Result::err).collect()
    }

    fn check_mode(&self, plugin: &str) -> Result<(), String> {
        let Some((_, mode)) = Mode::ALL.iter().find(|(name, _)| *name == self.mode) else {
            let modes = Mode::ALL.map(|(name, _)| name).join(",");
            return Err(format!(
                "invalid audit {plugin} mode {}, allowed modes are {}",
                self.mode,
                quote(&modes)
            ));
        };
        let positive = |what: &str, value: f64| match value > 0.0 {
            true => Ok(()),
            false => Err(format!("invalid audit batch {plugin} {what} {value}, must be a positive number")),
        };
        if *mode == Mode::Batch {
            positive("buffer size", self.batch_buffer_size as f64)?;
            positive("max batch size", self.batch_max_size as f64)?;
            if self.batch_throttle_enable {
                positive("throttle QPS", self.batch_throttle_qps.into())?;
                positive("throttle burst", self.batch_throttle_burst as f64)?;
            }
        }
        Ok(())
    }

    fn check_sizes(&self, plugin: &str) -> Result<(), String> {
        let (batch, event) = (self.truncate_max_batch_size, self.truncate_max_event_size);
        if event <= 0 {
            return Err(format!(
                "invalid audit truncate {plugin} max event size {event}, must be a positive number"
            ));
        }
        if batch < event {
            return Err(format!(
                "invalid audit truncate {plugin} max batch size {batch}, must be greater than max event size ({event})"
            ));
        }
        Ok(())
    }

    fn check_version(&self) -> Result<(), String> {
        match self.version == VERSION {
            true => Ok(()),
            false => Err(format!("invalid group version, allowed versions are [{}]", quote(VERSION))),
        }
    }

    fn mode(&self) -> Mode {
        Mode::ALL.iter().find(|(name, _)| *name == self.mode).map_or(Mode::Blocking, |(_, mode)| *mode)
    }

    fn batch(&self) -> BatchConfig {
        let size = |size: i64| usize::try_from(size).unwrap_or(1);
        let throttle = Throttle {
            qps: self.batch_throttle_qps,
            burst: u32::try_from(self.batch_throttle_burst).unwrap_or(u32::MAX),
        };
        BatchConfig {
            buffer_size: size(self.batch_buffer_size),
            max_batch_size: size(self.batch_max_size),
            max_batch_wait: self.batch_max_wait,
            throttle: self.batch_throttle_enable.then_some(throttle),
        }
    }

    fn truncate(&self) -> Option<TruncateConfig> {
        let size = |size: i64| usize::try_from(size).unwrap_or(usize::MAX);
        self.truncate_enabled.then(|| TruncateConfig {
            max_event_size: size(self.truncate_max_event_size),
            max_batch_size: size(self.truncate_max_batch_size),
        })
    }
}

fn path(name: &'static str, help: &'static str) -> Arg {
    flag(name, "FILE", help).value_parser(value_parser!(PathBuf))
}

fn number(name: &'static str, help: &'static str) -> Arg {
    flag(name, "N", help).value_parser(integer::<i64>).allow_negative_numbers(true)
}

fn time(name: &'static str, help: &'static str) -> Arg {
    flag(name, "DURATION", help).value_parser(duration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    fn read(flags: &[&str]) -> AuditOptions {
        let command = Command::new("pintle").args(AuditOptions::args());
        AuditOptions::read(&command.get_matches_from([&["pintle"], flags].concat()))
    }

    #[test]
    fn flags_and_defaults_are_those_of_kube_apiserver() {
        let options = read(&[]);
        assert_eq!(options, AuditOptions::default());
        let options = read(&[
            "--audit-policy-file=/p",
            "--audit-log-path=-",
            "--audit-log-maxage=1",
            "--audit-log-compress",
            "--audit-log-mode=batch",
            "--audit-log-batch-max-size=7",
            "--audit-webhook-config-file=/w",
            "--audit-webhook-initial-backoff=1s",
            "--audit-webhook-batch-throttle-qps=2.5",
            "--audit-webhook-truncate-enabled",
        ]);
        assert_eq!(options.policy_file, Some("/p".into()));
        assert_eq!(options.log.path, Some("-".into()));
        assert!(options.log.compress && options.log.max_age == 1);
        assert_eq!(
            (options.log.delivery.mode(), options.log.delivery.batch().max_batch_size),
            (Mode::Batch, 7)
        );
        assert_eq!(options.webhook.initial_backoff, Duration::from_secs(1));
        let throttle = options.webhook.delivery.batch().throttle;
        assert_eq!(throttle, Some(Throttle { qps: 2.5, burst: 15 }));
        let truncate = TruncateConfig { max_event_size: 102_400, max_batch_size: 10_485_760 };
        assert_eq!(options.webhook.delivery.truncate(), Some(truncate));
    }

    #[test]
    fn mistakes_are_told_in_the_reference_s_words() {
        let check = |flags: &[&str], want: &str| {
            let flags = [&["--audit-log-path=/nowhere/audit.log"], flags].concat();
            let errors = read(&flags).errors().join(", ");
            assert!(errors.contains(want), "{errors}");
        };
        check(
            &["--audit-log-mode=fast"],
            "invalid audit log mode fast, allowed modes are \"batch,blocking,blocking-strict\"",
        );
        check(
            &["--audit-log-format=xml"],
            "invalid audit log format xml, allowed formats are \"legacy,json\"",
        );
        check(&["--audit-log-maxsize=-1"], "--audit-log-maxsize -1 can't be a negative number");
        check(
            &["--audit-log-mode=batch", "--audit-log-batch-buffer-size=0"],
            "invalid audit batch log buffer size 0, must be a positive number",
        );
        check(
            &["--audit-log-mode=batch", "--audit-log-batch-throttle-enable"],
            "invalid audit batch log throttle QPS 0, must be a positive number",
        );
        check(
            &["--audit-log-truncate-max-event-size=20000000"],
            "invalid audit truncate log max batch size 10485760, must be greater than max event size (20000000)",
        );
        check(
            &["--audit-log-version=audit.k8s.io/v1beta1"],
            "invalid group version, allowed versions are [\"audit.k8s.io/v1\"]",
        );
        check(&["--audit-webhook-config-file=/w", "--audit-webhook-mode=x"], "invalid audit webhook mode x");
        check(
            &[
                "--audit-log-mode=fast",
                "--audit-log-version=x",
                "--audit-log-maxage=-1",
                "--audit-log-maxsize=-2",
            ],
            "invalid audit log mode fast, allowed modes are \"batch,blocking,blocking-strict\", invalid group version, allowed \
             versions are [\"audit.k8s.io/v1\"], --audit-log-maxage -1 can't be a negative number, --audit-log-maxsize -2 can't be \
             a negative number",
        );
    }

    #[tokio::test]
    async fn a_missing_policy_is_told() {
        let options = read(&["--audit-log-path=/nowhere/audit.log", "--audit-policy-file=/nowhere/policy"]);
        let error = options.auditor(&AuditMetrics::new().unwrap(), &Dialer::default()).err().unwrap();
        let expected = "loading audit policy file: failed to read file path \"/nowhere/policy\": ";
        assert!(error.starts_with(expected), "{error}");
    }
}
