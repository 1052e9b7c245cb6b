//! The clients of webhooks, which keep connections.

use super::plugin_config::ConfiguredUsers;
use parking_lot::Mutex;
use pintle_dialer::Outbound;
use pintle_webhook::{ClientConfig, WebhookClient};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Weak},
};

/// The clients of all webhooks of a server. Webhooks with one address and one CA bundle share a client, and so its
/// connections, also when their configuration is replaced by another one.
pub struct WebhookClients {
    outbound: Outbound,
    users: ConfiguredUsers,
    /// Clients that are in use.
    clients: Mutex<HashMap<ClientConfig, Weak<WebhookClient>>>,
}

impl fmt::Debug for WebhookClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookClients").finish_non_exhaustive()
    }
}

impl WebhookClients {
    /// Clients that reach their webhooks by `outbound` and identify themselves as `users` say.
    pub fn new(outbound: Outbound, users: ConfiguredUsers) -> WebhookClients {
        WebhookClients { outbound, users, clients: Mutex::default() }
    }

    /// The client of a webhook, which does not connect yet.
    ///
    /// # Errors
    /// When the URL, the CA bundle or the user's credentials cannot be used.
    pub(super) fn client(&self, config: &ClientConfig) -> Result<Arc<WebhookClient>, String> {
        let mut clients = self.clients.lock();
        if let Some(client) = clients.get(config).and_then(Weak::upgrade) {
            return Ok(client);
        }
        let user = self.users.of_webhook(&config.endpoint);
        let client =
            WebhookClient::of_user(config, &self.outbound, user).map_err(|error| error.to_string())?;
        let client = Arc::new(client);
        clients.retain(|_, client| client.strong_count() > 0);
        clients.insert(config.clone(), Arc::downgrade(&client));
        Ok(client)
    }
}

#[cfg(test)]
impl WebhookClients {
    /// Clients for webhooks that are not called.
    pub(super) fn unused() -> Arc<WebhookClients> {
        struct NoServices;
        impl pintle_dialer::ServiceResolver for NoServices {
            fn resolve<'a>(
                &'a self,
                _: &'a str,
                _: &'a str,
                _: u16,
            ) -> pintle_registry::BoxFuture<'a, Result<String, String>> {
                unreachable!("the webhooks are not called")
            }
        }
        Arc::new(WebhookClients::new(Outbound::direct(Arc::new(NoServices)), ConfiguredUsers::default()))
    }
}
