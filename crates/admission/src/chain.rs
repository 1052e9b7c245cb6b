//! The admission chain: calls all plugins in their order.

use crate::{AdmissionPlugin, AdmissionRequest, plugins};
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

    /// The plugins of a default server.
    pub fn default_plugins() -> AdmissionChain {
        AdmissionChain::new(plugins::default_plugins())
    }

    /// The plugins of a default server, without those that are disabled by name.
    ///
    /// # Errors
    /// When a name is unknown, is in both lists, or is to be enabled but not implemented by this server.
    pub fn configured(enable: &[String], disable: &[String]) -> Result<AdmissionChain, String> {
        let mut chain = AdmissionChain::default_plugins();
        for (flag, names) in [("enable-admission-plugins", enable), ("disable-admission-plugins", disable)] {
            if let Some(name) = names.iter().find(|name| !plugins::NAMES.contains(&name.as_str())) {
                return Err(format!("{flag} plugin {} is unknown", quote(name)));
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
        if let Some(name) = enable.iter().find(|name| !chain.names().any(|own| own == name.as_str())) {
            return Err(format!("--enable-admission-plugins: this server does not have {name}"));
        }
        chain.plugins.retain(|plugin| !disable.iter().any(|name| name == plugin.name()));
        Ok(chain)
    }

    /// The names of the plugins, in call order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.plugins.iter().map(|plugin| plugin.name())
    }

    /// Calls [`AdmissionPlugin::admit`] of every plugin that handles the request; plugins may change the object.
    ///
    /// # Errors
    /// The `Status` of the first refusal.
    pub async fn admit(&self, request: &mut AdmissionRequest<'_>) -> Result<(), Status> {
        for plugin in &self.plugins {
            if plugin.handles(request) {
                plugin.admit(request).await?;
            }
        }
        Ok(())
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
        let expected: Vec<_> = plugins::NAMES.iter().copied().filter(|name| own.contains(name)).collect();
        assert_eq!(own, expected);
    }

    #[test]
    fn plugins_are_switched_off_by_name() {
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
            (&["AlwaysDeny"], &[], "--enable-admission-plugins: this server does not have AlwaysDeny"),
        ] {
            assert_eq!(names(enable, disable).unwrap_err(), expected);
        }
    }
}
