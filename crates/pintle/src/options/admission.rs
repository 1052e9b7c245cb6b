//! The flags of admission: plugins to enable and disable, and their configuration. Names and messages are kube-apiserver's
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/>).

use super::arguments::{flag, integer, list, set, texts};
use clap::{Arg, ArgMatches, value_parser};
use pintle_admission::{ChainConfig, PluginFlags};
use std::path::PathBuf;

/// The selection of admission plugins, by name, and their configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdmissionOptions {
    /// Plugins to enable besides the default ones; `None` when the flag is absent.
    pub enable_plugins: Option<Vec<String>>,
    /// Plugins to disable; `None` when the flag is absent.
    pub disable_plugins: Option<Vec<String>>,
    /// The only plugins to enable (deprecated); `None` when the flag is absent.
    pub only_plugins: Option<Vec<String>>,
    /// The file with the configurations of plugins.
    pub config_file: Option<PathBuf>,
    /// The flags of single plugins.
    pub plugin_flags: PluginFlags,
}

const ENABLE: &str = "enable-admission-plugins";
const DISABLE: &str = "disable-admission-plugins";
const ONLY: &str = "admission-control";
const CONFIG: &str = "admission-control-config-file";
const NOT_READY: &str = "default-not-ready-toleration-seconds";
const UNREACHABLE: &str = "default-unreachable-toleration-seconds";

impl AdmissionOptions {
    /// The flags.
    pub fn args() -> [Arg; 6] {
        let seconds = |name, help| flag(name, "SECONDS", help).value_parser(integer::<i64>);
        [
            list(ENABLE, "NAME,…", "Admission plugins to enable in addition to the default ones"),
            list(DISABLE, "NAME,…", "Admission plugins to disable"),
            list(ONLY, "NAME,…", "Deprecated: the complete list of enabled admission plugins"),
            flag(CONFIG, "FILE", "File with the configuration of admission plugins")
                .value_parser(value_parser!(PathBuf)),
            seconds(NOT_READY, "Default toleration of pods for nodes that are not ready")
                .allow_negative_numbers(true),
            seconds(UNREACHABLE, "Default toleration of pods for unreachable nodes")
                .allow_negative_numbers(true),
        ]
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> AdmissionOptions {
        let mut options = AdmissionOptions {
            enable_plugins: texts(matches, ENABLE),
            disable_plugins: texts(matches, DISABLE),
            only_plugins: texts(matches, ONLY),
            config_file: matches.get_one(CONFIG).cloned(),
            plugin_flags: PluginFlags::default(),
        };
        let flags = &mut options.plugin_flags;
        set(matches, NOT_READY, &mut flags.default_not_ready_toleration_seconds);
        set(matches, UNREACHABLE, &mut flags.default_unreachable_toleration_seconds);
        options
    }

    /// The configuration of the chain, as far as it follows from these options.
    pub(crate) fn chain_config(&self) -> ChainConfig {
        ChainConfig {
            enable: self.enable_plugins.clone(),
            disable: self.disable_plugins.clone(),
            only: self.only_plugins.clone(),
            flags: self.plugin_flags,
            ..ChainConfig::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    fn read(flags: &[&str]) -> AdmissionOptions {
        let command = Command::new("pintle").args(AdmissionOptions::args());
        AdmissionOptions::read(&command.get_matches_from([&["pintle"], flags].concat()))
    }

    #[test]
    fn an_empty_list_differs_from_an_absent_one() {
        assert_eq!(read(&[]), AdmissionOptions::default());
        assert_eq!(read(&["--enable-admission-plugins="]).enable_plugins, Some(Vec::new()));
        let options = read(&["--admission-control=A,B", "--admission-control", "C"]);
        assert_eq!(options.only_plugins.unwrap(), ["A", "B", "C"]);
    }

    #[test]
    fn plugins_have_flags_of_their_own() {
        let options = read(&["--default-not-ready-toleration-seconds=-1"]);
        assert_eq!(options.plugin_flags.default_not_ready_toleration_seconds, -1);
        assert_eq!(options.plugin_flags.default_unreachable_toleration_seconds, 300);
    }
}
