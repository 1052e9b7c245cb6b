//! Selects the providers of a resource.
//!
//! A resource's own rule has precedence over that of its group (`*.apps`), which has precedence over the rule for all
//! resources (`*.*`); of several rules with the same name, the providers of the earlier one come first. A rule after
//! a wildcard that includes it is an error, since it would have no effect.

use crate::{
    aes_cbc::aes_cbc,
    aes_gcm::aes_gcm,
    cipher::Cipher,
    config::{EncryptionConfiguration, Key, KmsApiVersion, KmsConfiguration, ProviderConfiguration},
    failure::Failure,
    key_ring::KeyRing,
    kms::{GrpcService, KmsService, KmsTransformer, Probe},
    metrics::EncryptionMetrics,
    provider::{
        AES_CBC_PREFIX, AES_GCM_PREFIX, KMS_V2_PREFIX, Provider, ProviderKind, Providers, SECRETBOX_PREFIX,
    },
    secretbox::secretbox,
};
use pintle_go_forms::quote;
use pintle_machinery::GroupResource;
use std::{collections::HashMap, sync::Arc, time::Duration};

/// An instantiated configuration.
pub(crate) struct Rules {
    providers: HashMap<GroupResource, Providers>,
    /// The probes of the KMS plugins, in the order of the configuration.
    pub(crate) probes: Vec<Arc<Probe>>,
    /// The sum of the time-outs of all KMS plugins.
    pub(crate) kms_timeouts: Duration,
    /// The hash of the configuration.
    pub(crate) hash: String,
}

/// The three names under which a resource may have a rule.
#[derive(Clone)]
pub(crate) struct RuleNames([GroupResource; 3]);

impl RuleNames {
    pub(crate) fn of(resource: &GroupResource) -> RuleNames {
        RuleNames([resource.clone(), GroupResource::new(resource.group.clone(), "*"), everything()])
    }
}

impl Rules {
    /// Instantiates the providers of a configuration. Must be called on a runtime; makes no call to KMS plugins yet.
    pub(crate) fn new(
        config: EncryptionConfiguration,
        metrics: &Arc<EncryptionMetrics>,
    ) -> Result<Rules, Failure> {
        let mut rules = Rules {
            providers: HashMap::new(),
            probes: Vec::new(),
            kms_timeouts: Duration::ZERO,
            hash: config.hash,
        };
        for rule in config.resources {
            let providers: Result<Vec<_>, _> =
                rule.providers.into_iter().map(|provider| rules.provider(provider, metrics)).collect();
            let providers = providers?;
            for resource in rule.resources {
                rules.add(resource, &providers)?;
            }
        }
        Ok(rules)
    }

    /// The providers of a resource; `None` when no rule names it.
    pub(crate) fn providers(&self, names: &RuleNames) -> Option<&Providers> {
        names.0.iter().find_map(|name| self.providers.get(name))
    }

    fn add(&mut self, resource: GroupResource, providers: &[Arc<Provider>]) -> Result<(), Failure> {
        for wildcard in [GroupResource::new(resource.group.clone(), "*"), everything()] {
            if self.providers.contains_key(&wildcard) {
                return Err(Failure::new(format!(
                    "resource {} is masked by earlier rule {}",
                    quote(&yaml_name(&resource)),
                    quote(&yaml_name(&wildcard)),
                )));
            }
        }
        self.providers.entry(resource).or_default().extend(providers);
        Ok(())
    }

    fn provider(
        &mut self,
        config: ProviderConfiguration,
        metrics: &Arc<EncryptionMetrics>,
    ) -> Result<Arc<Provider>, Failure> {
        let aes = "no matching key was found for the provided AES transformer";
        let keys = |prefix: &str, keys: Vec<Key>, cipher: CipherOfKey, no_match| {
            let kind = ProviderKind::Keys(key_ring(keys, cipher, no_match)?);
            Ok(Provider { prefix: prefix.to_owned(), kind })
        };
        let provider: Result<Provider, Failure> = match config {
            ProviderConfiguration::AesGcm(list) => keys(AES_GCM_PREFIX, list, aes_gcm, aes),
            ProviderConfiguration::AesCbc(list) => keys(AES_CBC_PREFIX, list, aes_cbc, aes),
            ProviderConfiguration::Secretbox(list) => {
                let no_match = "no matching key was found for the provided Secretbox transformer";
                keys(SECRETBOX_PREFIX, list, secretbox, no_match)
            }
            ProviderConfiguration::Identity => {
                Ok(Provider { prefix: String::new(), kind: ProviderKind::Identity })
            }
            ProviderConfiguration::Kms(config) => self.kms(config, metrics),
        };
        provider.map(Arc::new)
    }

    fn kms(
        &mut self,
        config: KmsConfiguration,
        metrics: &Arc<EncryptionMetrics>,
    ) -> Result<Provider, Failure> {
        if config.api_version == KmsApiVersion::V1 {
            return Err(Failure::new(format!(
                "KMS provider {}: KMSv1 is deprecated and will only receive security updates going forward. \
                 Use KMSv2 instead.",
                quote(&config.name)
            )));
        }
        let service: Arc<dyn KmsService> =
            Arc::new(GrpcService::new(&config.endpoint, config.timeout, &config.name, metrics.clone()));
        let probe = Probe::new(&config.name, service.clone(), metrics.clone());
        self.probes.push(probe.clone());
        self.kms_timeouts += config.timeout;
        let transformer = KmsTransformer::new(&config.name, service, probe, metrics.clone());
        Ok(Provider {
            prefix: format!("{KMS_V2_PREFIX}{}:", config.name),
            kind: ProviderKind::Kms(Arc::new(transformer)),
        })
    }
}

type CipherOfKey = fn(&[u8]) -> Result<Box<dyn Cipher>, Failure>;

fn key_ring(keys: Vec<Key>, cipher: CipherOfKey, no_match: &'static str) -> Result<KeyRing, Failure> {
    let named = keys.into_iter().map(|key| match cipher(&key.secret) {
        Ok(cipher) => Ok((key.name, cipher)),
        Err(failure) => {
            Err(Failure::new(format!("error while creating cipher for named key {}: {failure}", key.name)))
        }
    });
    Ok(KeyRing::new(named.collect::<Result<_, _>>()?, no_match))
}

fn everything() -> GroupResource {
    GroupResource::new("*", "*")
}

/// The name of a resource as the file writes it.
fn yaml_name(resource: &GroupResource) -> String {
    match resource.group.is_empty() && resource.resource == "*" {
        true => "*.".to_owned(),
        false => resource.to_string(),
    }
}
