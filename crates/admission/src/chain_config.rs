//! Creates the chain of the server's flags and configuration file.

use crate::{
    AdmissionChain, AdmissionConfiguration, AdmissionError, AdmissionPlugin, PluginError, PluginFactory,
    PluginFlags, PluginSettings,
    plugins::{Declaration, PLUGINS},
};
use pintle_go_forms::quote;
use pintle_machinery::status::aggregate;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Selects and configures the plugins of a chain.
#[derive(Default)]
pub struct ChainConfig {
    /// The plugins to call besides the default ones: `--enable-admission-plugins`; `None` when the flag is absent.
    pub enable: Option<Vec<String>>,
    /// The default plugins not to call: `--disable-admission-plugins`; `None` when the flag is absent.
    pub disable: Option<Vec<String>>,
    /// The only plugins to call: `--admission-control`, which is deprecated; `None` when the flag is absent.
    pub only: Option<Vec<String>>,
    /// Plugins that are called by default in this server, when none of the three flags is given.
    pub further_defaults: Vec<&'static str>,
    /// The configurations of plugins.
    pub configuration: AdmissionConfiguration,
    /// The flags of single plugins.
    pub flags: PluginFlags,
    /// The factories of plugins that this crate does not have.
    pub factories: PluginFactories,
}

/// The factories of plugins whose declarations have none, by the plugin's name.
#[derive(Default)]
pub struct PluginFactories(BTreeMap<&'static str, Box<PluginFactory>>);

impl PluginFactories {
    /// Adds the factory of a plugin. It is called once, when the chain is created and has the plugin.
    pub fn add(
        &mut self,
        name: &'static str,
        create: impl Fn(&PluginSettings<'_>) -> Result<Arc<dyn AdmissionPlugin>, PluginError>
        + Send
        + Sync
        + 'static,
    ) {
        self.0.insert(name, Box::new(create));
    }
}

impl ChainConfig {
    /// Creates the chain: the plugins in the order of Kubernetes. Default plugins without a factory are left out.
    ///
    /// # Errors
    /// When the flags are contradictory, name an unknown plugin, or enable one that has no factory; when a plugin of the
    /// chain cannot be created.
    pub fn chain(&self) -> Result<AdmissionChain, AdmissionError> {
        let errors = self.flag_errors();
        if !errors.is_empty() {
            return Err(AdmissionError::Flags(aggregate(errors.into_iter())));
        }
        let called = PLUGINS.iter().filter(|plugin| self.is_called(plugin));
        let plugins = called.map(|plugin| self.create(plugin)).filter_map(Result::transpose);
        Ok(AdmissionChain::new(plugins.collect::<Result<_, _>>()?))
    }

    /// The errors of the lists of plugins.
    pub fn flag_errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        if self.only.is_some() && (self.enable.is_some() || self.disable.is_some()) {
            let flags = "admission-control and enable-admission-plugins/disable-admission-plugins flags";
            errors.push(format!("{flags} are mutually exclusive"));
        }
        let [only, enable, disable] =
            [&self.only, &self.enable, &self.disable].map(|names| names.as_deref().unwrap_or_default());
        for (flag, names) in [
            ("admission-control", only),
            ("enable-admission-plugins", enable),
            ("disable-admission-plugins", disable),
        ] {
            let unknown =
                names.iter().filter(|name| PLUGINS.iter().all(|plugin| plugin.name != name.as_str()));
            errors.extend(unknown.map(|name| format!("{flag} plugin {} is unknown", quote(name))));
        }
        let both: BTreeSet<&str> =
            enable.iter().filter(|name| disable.contains(name)).map(String::as_str).collect();
        if !both.is_empty() {
            let both: Vec<&str> = both.into_iter().collect();
            errors.push(format!(
                "[{}] in enable-admission-plugins and disable-admission-plugins overlapped",
                both.join(" ")
            ));
        }
        errors
    }

    fn is_called(&self, plugin: &Declaration) -> bool {
        let is_in = |names: &Option<Vec<String>>| names.iter().flatten().any(|name| name == plugin.name);
        if self.only.is_some() {
            return is_in(&self.only);
        }
        let has_no_flags = self.enable.is_none() && self.disable.is_none();
        let is_default = plugin.is_default || has_no_flags && self.further_defaults.contains(&plugin.name);
        (is_default || is_in(&self.enable)) && !is_in(&self.disable)
    }

    /// Creates a plugin; `None` when it is a default one without a factory.
    fn create(&self, plugin: &Declaration) -> Result<Option<Arc<dyn AdmissionPlugin>>, AdmissionError> {
        let configuration = self.configuration.of_plugin(plugin.name)?;
        let settings = PluginSettings { configuration: configuration.as_deref(), flags: &self.flags };
        let created = match (self.factories.0.get(plugin.name), plugin.create) {
            (Some(create), _) => create(&settings),
            (None, Some(create)) => create(&settings),
            (None, None) if plugin.is_default => return Ok(None),
            (None, None) => {
                let reason = format!("--enable-admission-plugins: this server does not have {}", plugin.name);
                return Err(AdmissionError::Flags(reason));
            }
        };
        let plugin = plugin.name;
        created.map(Some).map_err(|error| match error {
            PluginError::Configuration(reason) => AdmissionError::Configuration { plugin, reason },
            PluginError::Initialization(reason) => AdmissionError::Initialization { plugin, reason },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::AlwaysAdmit;

    fn owned(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn names(enable: &[&str], disable: &[&str]) -> Result<Vec<&'static str>, String> {
        let config = ChainConfig { enable: owned(enable), disable: owned(disable), ..ChainConfig::default() };
        names_of(&config)
    }

    fn names_of(config: &ChainConfig) -> Result<Vec<&'static str>, String> {
        config.chain().map(|chain| chain.names().collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn plugins_are_called_in_the_order_of_kubernetes() {
        let own = names(&[], &[]).unwrap();
        let expected: Vec<_> =
            PLUGINS.iter().map(|plugin| plugin.name).filter(|name| own.contains(name)).collect();
        assert_eq!(own, expected);
    }

    #[test]
    fn plugins_have_the_names_of_their_declarations() {
        let flags = PluginFlags::default();
        let settings = PluginSettings { configuration: None, flags: &flags };
        for plugin in PLUGINS {
            let created = plugin.create.and_then(|create| create(&settings).ok());
            assert!(created.is_none_or(|created| created.name() == plugin.name), "{}", plugin.name);
        }
    }

    #[test]
    fn plugins_are_switched_on_and_off_by_name() {
        let with = names(&["AlwaysPullImages", "NamespaceExists"], &[]).unwrap();
        assert!(with.contains(&"AlwaysPullImages") && with.contains(&"NamespaceExists"));
        let without = names(&["LimitRanger"], &["ServiceAccount", "MutatingAdmissionWebhook"]).unwrap();
        let expected: Vec<_> =
            names(&[], &[]).unwrap().into_iter().filter(|name| *name != "ServiceAccount").collect();
        assert_eq!(without, expected);
        let only = owned(&["LimitRanger", "AlwaysAdmit"]);
        assert_eq!(
            names_of(&ChainConfig { only, ..ChainConfig::default() }).unwrap(),
            ["AlwaysAdmit", "LimitRanger"]
        );
    }

    #[test]
    fn further_defaults_hold_without_flags_only() {
        let has_node_restriction = |enable, disable, only| {
            let further_defaults = vec!["NodeRestriction"];
            let config = ChainConfig { enable, disable, only, further_defaults, ..ChainConfig::default() };
            names_of(&config).unwrap().contains(&"NodeRestriction")
        };
        assert!(has_node_restriction(None, None, None));
        assert!(!has_node_restriction(owned(&["AlwaysAdmit"]), None, None));
        assert!(!has_node_restriction(None, owned(&["LimitRanger"]), None));
        assert!(!has_node_restriction(None, None, owned(&["LimitRanger"])));
    }

    #[test]
    fn contradictions_of_flags_are_refused() {
        for (enable, disable, expected) in [
            (&["Nonsense"][..], &[][..], "enable-admission-plugins plugin \"Nonsense\" is unknown"),
            (&[], &["limitranger"], "disable-admission-plugins plugin \"limitranger\" is unknown"),
            (
                &["A", "B"],
                &[],
                "[enable-admission-plugins plugin \"A\" is unknown, enable-admission-plugins plugin \"B\" is unknown]",
            ),
            (
                &["Priority", "LimitRanger"],
                &["LimitRanger", "Priority"],
                "[LimitRanger Priority] in enable-admission-plugins and disable-admission-plugins overlapped",
            ),
            (
                &["ImagePolicyWebhook"],
                &[],
                "--enable-admission-plugins: this server does not have ImagePolicyWebhook",
            ),
        ] {
            assert_eq!(names(enable, disable).unwrap_err(), expected);
        }
        let config = ChainConfig { only: owned(&["X"]), enable: owned(&[]), ..ChainConfig::default() };
        assert_eq!(
            names_of(&config).unwrap_err(),
            "[admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive, \
             admission-control plugin \"X\" is unknown]"
        );
    }

    #[test]
    fn plugins_of_other_crates_are_created_by_their_factories() {
        let mut config = ChainConfig { enable: owned(&["ImagePolicyWebhook"]), ..ChainConfig::default() };
        config
            .factories
            .add("ImagePolicyWebhook", |_| Err(PluginError::configuration("no config specified")));
        assert_eq!(
            names_of(&config).unwrap_err(),
            "failed to apply admission: couldn't init admission plugin \"ImagePolicyWebhook\": no config specified"
        );
        let failed = || PluginError::Initialization("missing client".to_owned());
        config.factories.add("ImagePolicyWebhook", move |_| Err(failed()));
        assert_eq!(
            names_of(&config).unwrap_err(),
            "failed to apply admission: failed to initialize admission plugin \"ImagePolicyWebhook\": missing client"
        );
        config.factories.add("ImagePolicyWebhook", |_| Ok(Arc::new(AlwaysAdmit)));
        assert!(names_of(&config).unwrap().contains(&"AlwaysAdmit"));
    }
}
