//! The admission chain: calls all plugins in their order.

use crate::{
    AdmissionPlugin, AdmissionRequest,
    plugins::{Declaration, PLUGINS},
};
use pintle_go_forms::quote;
use pintle_machinery::Status;
use std::{collections::BTreeSet, sync::Arc};

/// The plugins that every write passes. The first refusal ends the request.
#[derive(Clone, Default)]
pub struct AdmissionChain {
    plugins: Vec<Arc<dyn AdmissionPlugin>>,
}

impl AdmissionChain {
    /// A chain of these plugins, called in this order.
    pub fn new(plugins: Vec<Arc<dyn AdmissionPlugin>>) -> AdmissionChain {
        AdmissionChain { plugins }
    }

    /// The chain of these flags: the default plugins and those to be enabled, without those to be disabled.
    ///
    /// # Errors
    /// When a name is unknown, is in both lists, or is to be enabled but not implemented by this server.
    pub fn configured(enable: &[String], disable: &[String]) -> Result<AdmissionChain, String> {
        let find = |name: &String| PLUGINS.iter().find(|plugin| plugin.name == name.as_str());
        for (flag, names) in [("enable-admission-plugins", enable), ("disable-admission-plugins", disable)] {
            let unknown: Vec<String> =
                names.iter().filter(|name| find(name).is_none()).map(|name| quote(name)).collect();
            match unknown.as_slice() {
                [] => {}
                [only] => return Err(format!("{flag} plugin {only} is unknown")),
                all => {
                    let all: Vec<String> =
                        all.iter().map(|name| format!("{flag} plugin {name} is unknown")).collect();
                    return Err(format!("[{}]", all.join(", ")));
                }
            }
        }
        let both: BTreeSet<&str> =
            enable.iter().filter(|name| disable.contains(name)).map(String::as_str).collect();
        if !both.is_empty() {
            let both: Vec<&str> = both.into_iter().collect();
            return Err(format!(
                "[{}] in enable-admission-plugins and disable-admission-plugins overlapped",
                both.join(" ")
            ));
        }
        let absent = |name: &&String| find(name).is_some_and(|plugin| plugin.create.is_none());
        if let Some(name) = enable.iter().find(absent) {
            return Err(format!("--enable-admission-plugins: this server does not have {name}"));
        }
        let is_named = |names: &[String], plugin: &Declaration| names.iter().any(|name| name == plugin.name);
        let called = PLUGINS
            .iter()
            .filter(|plugin| (plugin.is_default || is_named(enable, plugin)) && !is_named(disable, plugin));
        Ok(AdmissionChain::new(called.filter_map(|plugin| plugin.create.map(|create| create())).collect()))
    }

    /// The names of the plugins, in call order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.plugins.iter().map(|plugin| plugin.name())
    }

    /// Calls [`AdmissionPlugin::admit`] of every plugin that handles the request; plugins may change the object. All are
    /// called once more if one of them asks for it with [`crate::Reinvocation::request`].
    ///
    /// # Errors
    /// The `Status` of the first refusal.
    pub async fn admit(&self, request: &mut AdmissionRequest<'_>) -> Result<(), Status> {
        loop {
            for plugin in &self.plugins {
                if plugin.handles(request) {
                    plugin.admit(request).await?;
                }
            }
            if !request.reinvocation.begin_second_round() {
                return Ok(());
            }
        }
    }

    /// Calls [`AdmissionPlugin::validate`] of every plugin that handles the request. Plugins may add warnings but not
    /// change the object.
    ///
    /// # Errors
    /// The `Status` of the first refusal.
    pub async fn validate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), Status> {
        for plugin in &self.plugins {
            if plugin.handles(request) {
                plugin.validate(request).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(enable: &[&str], disable: &[&str]) -> Result<Vec<&'static str>, String> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        AdmissionChain::configured(&owned(enable), &owned(disable)).map(|chain| chain.names().collect())
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
        for plugin in &PLUGINS {
            assert!(plugin.create.is_none_or(|create| create().name() == plugin.name), "{}", plugin.name);
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
    }

    #[test]
    fn what_cannot_be_is_told() {
        for (enable, disable, expected) in [
            (&["Nonsense"][..], &[][..], "enable-admission-plugins plugin \"Nonsense\" is unknown"),
            (&[], &["limitranger"], "disable-admission-plugins plugin \"limitranger\" is unknown"),
            (
                &["Priority", "LimitRanger"],
                &["LimitRanger", "Priority"],
                "[LimitRanger Priority] in enable-admission-plugins and disable-admission-plugins overlapped",
            ),
            (
                &["EventRateLimit"],
                &[],
                "--enable-admission-plugins: this server does not have EventRateLimit",
            ),
        ] {
            assert_eq!(names(enable, disable).unwrap_err(), expected);
        }
    }
}
