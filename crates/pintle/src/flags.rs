//! Parses the command line.

mod command_line;
mod documents;
mod help;
#[cfg(test)]
mod reference;
mod values;

use crate::snapshot::{self, SnapshotCommand};
use clap::{Arg, ArgAction, ArgMatches, Command, parser::ValueSource};
use pintle::{
    AdmissionOptions, AggregationOptions, AuditOptions, AuthenticationOptions, AuthorizationOptions,
    DebuggingOptions, FeatureOptions, KubeletOptions, LeadershipOptions, LoggingOptions, ManagementOptions,
    MetricsOptions, Options, PeerOptions, PriorityAndFairnessOptions, Refused, ServiceAccountOptions,
    ServingOptions, TracingOptions, VersionFlag,
};
use pintle_go_forms::{parse_bool, quote};
use std::{ffi::OsString, path::Path};

/// The command that the command line selects.
pub(crate) enum Invocation {
    /// Print a text.
    Print(String),
    /// Run the server.
    Serve(Box<Flags>),
    /// Check the flags and the files that they name; the problems of the flags are known.
    Check(Box<Flags>, Vec<String>),
    /// Run a snapshot command.
    Snapshot(SnapshotCommand),
}

/// The server's parsed flags.
pub(crate) struct Flags {
    pub(crate) options: Options,
    /// Warnings to log once the logger runs.
    pub(crate) warnings: Vec<String>,
}

/// Parses the command line. A subcommand ends the process by itself when it prints its help, and when its
/// arguments are wrong.
///
/// # Errors
/// When the flags of the server are wrong.
pub(crate) fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Invocation, String> {
    let path = arguments.next().unwrap_or_default();
    let arguments: Vec<OsString> = arguments.collect();
    let command = command();
    let is_subcommand = arguments
        .first()
        .is_some_and(|first| command.get_subcommands().any(|subcommand| *first == *subcommand.get_name()));
    let name = || Path::new(&path).file_name().unwrap_or_default().to_string_lossy().into_owned();
    if arguments.first().is_some_and(|first| first == CHECK) {
        let ((matches, refused), problems) =
            command_line::parse_all(&command, CHECK, arguments.into_iter().skip(1).collect());
        if matches.get_one("help") == Some(&true) {
            return Ok(Invocation::Print(help::help_of_check(&command, CHECK)));
        }
        return Ok(Invocation::Check(Box::new(read(&matches, refused)), problems));
    }
    if is_subcommand {
        let matches = command.clone().get_matches_from(std::iter::once(path.clone()).chain(arguments));
        if let Some(text) = documents::text(command, &matches) {
            return text.map(Invocation::Print);
        }
        let snapshot = matches.subcommand_matches("snapshot").and_then(snapshot::read);
        return snapshot.map(Invocation::Snapshot).ok_or_else(|| "no command".to_owned());
    }
    // The file may have the name of the reference.
    let (matches, refused) = command_line::parse(&command, &name(), arguments)?;
    if matches.get_one("help") == Some(&true) {
        return Ok(Invocation::Print(help::help(&command)));
    }
    let mut flags = read(&matches, refused);
    flags.options.debugging.flags = values::values(&command, &matches);
    Ok(match flags.options.version {
        VersionFlag::Print => Invocation::Print(format!("{}\n", pintle::version_line())),
        VersionFlag::PrintRaw => Invocation::Print(format!("{}\n", pintle::raw_version())),
        VersionFlag::Run | VersionFlag::Report(_) => Invocation::Serve(Box::new(flags)),
    })
}

fn command() -> Command {
    Command::new("pintle")
        .about("The Kubernetes API server in one small binary")
        .args_conflicts_with_subcommands(true)
        .args_override_self(true)
        .disable_help_subcommand(true)
        .disable_help_flag(true)
        .subcommand(with_help(snapshot::command()))
        .subcommand(Command::new(CHECK).about(
            "Checks the flags that follow and the files that they name, prints all problems, and starts nothing",
        ))
        .subcommands(documents::commands().map(with_help))
        .args(AuthenticationOptions::args())
        .args(ServingOptions::args())
        .args(ServiceAccountOptions::args())
        .args(PriorityAndFairnessOptions::args())
        .args(AggregationOptions::args())
        .args(PeerOptions::args())
        .args(KubeletOptions::args())
        .args(AdmissionOptions::args())
        .args(FeatureOptions::args())
        .args(ManagementOptions::args())
        .args(LeadershipOptions::args())
        .args(DebuggingOptions::args())
        .args(TracingOptions::args())
        .args(Options::args())
        .args(LoggingOptions::args())
        .args(MetricsOptions::args())
        .arg(
            Arg::new("help")
                .long("help")
                .short('h')
                .value_name("BOOL")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .value_parser(boolean)
                .help("Prints this help"),
        )
        .args(AuditOptions::args())
        .args(AuthorizationOptions::args())
        .mut_args(values::with_default)
}

/// A subcommand with a flag that prints its help: the server's has another form, so that the one of the library is disabled.
fn with_help(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let command = names.iter().fold(command, |command, name| command.mut_subcommand(name, with_help));
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help);
    command.arg(help.help("Prints this help"))
}

/// The command that checks flags.
const CHECK: &str = "check-config";

/// The deprecated flags, with the reference's messages.
const DEPRECATED: [(&str, &str); 7] = [
    (
        "admission-control",
        "Use --enable-admission-plugins or --disable-admission-plugins instead. Will be removed in a future version.",
    ),
    ("apiserver-count", "apiserver-count is deprecated and will be removed in a future version."),
    ("audit-webhook-batch-initial-backoff", "Deprecated, use --audit-webhook-initial-backoff instead."),
    (
        "default-watch-cache-size",
        "watch caches are sized automatically and this flag will be removed in a future version",
    ),
    ("enable-logs-handler", "Log handler functionality is deprecated"),
    ("kubelet-port", "kubelet-port is deprecated and will be removed."),
    ("kubelet-read-only-port", "kubelet-read-only-port is deprecated and will be removed."),
];

fn read(matches: &ArgMatches, refused: Refused) -> Flags {
    let is_given =
        |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine) || refused.contains(name);
    let deprecated = DEPRECATED.iter().filter(|(name, _)| is_given(name));
    let warnings =
        deprecated.map(|(name, message)| format!("Flag --{name} has been deprecated, {message}")).collect();
    Flags { options: Options { refused, ..Options::read(matches) }, warnings }
}

fn boolean(text: &str) -> Result<bool, String> {
    parse_bool(text).ok_or_else(|| format!("strconv.ParseBool: parsing {}: invalid syntax", quote(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle::{EndpointReconcilerType, StorageBackend, StorageMediaType};
    use std::{path::PathBuf, time::Duration};

    fn flags(arguments: &[&str]) -> Flags {
        read(&command().get_matches_from([&["pintle"], arguments].concat()), Refused::default())
    }

    #[test]
    fn flags_are_those_of_kube_apiserver() {
        let given = flags(&[
            "--secure-port=1234",
            "--request-timeout=1m30s",
            "--service-cluster-ip-range",
            "10.9.0.0/16",
            "--storage-backend=memory",
            "--endpoint-reconciler-type=master-count",
            "--apiserver-count=3",
            "--runtime-config=api/beta=true",
            "--runtime-config=apps/v1/deployments=false",
            "--event-ttl=90m",
            "--encryption-provider-config=/etc/encryption.yaml",
            "--encryption-provider-config-automatic-reload",
        ]);
        assert_eq!(given.options.secure_port, 1234);
        assert_eq!(given.options.request_timeout, Duration::from_secs(90));
        assert_eq!(given.options.service_cluster_ip_range, "10.9.0.0/16");
        assert_eq!(given.options.storage_backend, StorageBackend::Memory);
        assert_eq!(given.options.endpoint_reconciler_type, EndpointReconcilerType::MasterCount);
        assert_eq!(given.options.apiserver_count, 3);
        assert_eq!(
            given.options.runtime_config,
            "api/beta=true,apps/v1/deployments=false".parse().expect("nothing is refused here")
        );
        assert_eq!(given.options.event_ttl, Duration::from_secs(5400));
        assert_eq!(given.options.encryption_provider_config, Some(PathBuf::from("/etc/encryption.yaml")));
        assert!(given.options.encryption_provider_config_automatic_reload);
        let given = flags(&["--encryption-provider-config-automatic-reload=false"]);
        assert!(!given.options.encryption_provider_config_automatic_reload);
    }

    #[test]
    fn storage_is_told_for_each_resource() {
        let options = flags(&[]).options;
        assert!(options.watch_cache.enabled && options.storage_media_type.is_none());
        let given = flags(&[
            "--watch-cache=F",
            "--watch-cache-sizes=pods#0,nodes#10",
            "--watch-cache-sizes",
            "pods#7",
            "--storage-media-type=application/yaml",
            "--etcd-servers-overrides=/events#http://a:1,/pods#http://b:2",
            "--etcd-servers-overrides=/nodes#http://c:3",
            "--default-watch-cache-size=0",
            "--etcd-count-metric-poll-period=0",
            "--etcd-db-metric-poll-interval=1m",
        ]);
        let options = given.options;
        assert!(!options.watch_cache.enabled);
        let sizes: std::collections::BTreeMap<_, _> =
            options.watch_cache.sizes.iter().map(|(resource, size)| (resource.to_string(), *size)).collect();
        assert_eq!(sizes, [("nodes".to_owned(), 10), ("pods".to_owned(), 7)].into());
        assert_eq!(options.storage_media_type, Some(StorageMediaType::Yaml));
        assert_eq!(options.etcd_servers_overrides.0.len(), 3);
        assert_eq!(options.etcd_count_metric_poll_period, Duration::ZERO);
        assert_eq!(options.etcd_db_metric_poll_interval, Duration::from_secs(60));
        assert_eq!(given.warnings.len(), 1);
        assert!(flags(&["--watch-cache"]).options.watch_cache.enabled);
    }

    #[test]
    fn mistakes_in_flags_are_told_in_the_reference_s_words() {
        let check = |argument: &str, expected: &str| {
            let error = command().try_get_matches_from(["pintle", argument]).expect_err(argument).to_string();
            assert!(error.contains(expected), "{argument}: {error}");
        };
        check(
            "--storage-media-type=text/plain",
            "--storage-media-type \"text/plain\" invalid, allowed values: ",
        );
        check("--watch-cache-sizes=pods", "invalid value of watch cache size: pods");
        check("--etcd-servers-overrides=pods", "--etcd-servers-overrides invalid, must be of format: ");
        check("--watch-cache=perhaps", "strconv.ParseBool: parsing \"perhaps\": invalid syntax");
    }

    #[test]
    fn etcd_servers_choose_the_backend_unless_another_is_named() {
        let options = |arguments: &[&str]| flags(arguments).options;
        let etcd = options(&[
            "--etcd-servers=https://a:2379,https://b:2379",
            "--etcd-servers=https://c:2379",
            "--etcd-cafile=/ca",
            "--lease-reuse-duration-seconds=10",
            "--etcd-prefix=/other",
        ]);
        assert_eq!(etcd.storage_backend, StorageBackend::Etcd3);
        let cluster = etcd.etcd().expect("is etcd");
        assert_eq!(cluster.endpoints, ["https://a:2379", "https://b:2379", "https://c:2379"]);
        assert_eq!(cluster.ca_file, Some("/ca".into()));
        assert_eq!(cluster.lease_reuse, Duration::from_secs(10));
        assert_eq!(cluster.prefix, "/other/");

        assert!(options(&[]).etcd().is_none());
        let wrong: &[(&[&str], &str)] = &[
            (&["--storage-backend=etcd3"], "--etcd-servers must be specified"),
            (
                &["--storage-backend=embedded", "--etcd-servers=http://a:1"],
                "--etcd-servers is for --storage-backend=etcd3 only",
            ),
            (&["--etcd-keyfile=/key"], "--etcd-keyfile is for --storage-backend=etcd3 only"),
            (
                &["--etcd-servers=http://a:1", "--etcd-keyfile=/key"],
                "--etcd-certfile and --etcd-keyfile must be specified together",
            ),
        ];
        for (flags, message) in wrong {
            assert_eq!(options(flags).validate().err().as_deref(), Some(*message), "{flags:?}");
        }
    }

    #[test]
    fn every_command_prints_its_help() {
        fn check(command: &Command, path: &[&str]) {
            for flag in ["-h", "--help"] {
                let error = self::command().try_get_matches_from([path, &[flag]].concat()).expect_err(flag);
                assert_eq!(error.kind(), clap::error::ErrorKind::DisplayHelp, "{path:?}: {error}");
                let about = command.get_about().map(ToString::to_string).unwrap_or_default();
                assert!(!about.is_empty() && error.to_string().contains(&about), "{error}");
            }
            for subcommand in command.get_subcommands() {
                check(subcommand, &[path, &[subcommand.get_name()]].concat());
            }
        }
        for subcommand in command().get_subcommands().filter(|command| command.get_name() != CHECK) {
            check(subcommand, &["pintle", subcommand.get_name()]);
        }
        let Ok(Invocation::Print(help)) = parse(["pintle", CHECK, "--help"].map(Into::into).into_iter())
        else {
            panic!("no help of {CHECK}");
        };
        assert!(help.contains("starts nothing") && help.contains("pintle check-config [flags]"), "{help}");
    }

    #[test]
    fn unknown_flags_are_errors() {
        assert!(command().try_get_matches_from(["pintle", "--no-such-flag"]).is_err());
        assert!(command().try_get_matches_from(["pintle", "--request-timeout=soon"]).is_err());
        assert!(command().try_get_matches_from(["pintle", "--endpoint-reconciler-type=some"]).is_err());
        assert!(command().try_get_matches_from(["pintle", "--apiserver-count=0"]).is_err());
    }
}
