//! Answers requests by other servers of the cluster.

use crate::{
    PeerProxy,
    discovery::{PEER_PROXIED, TRUE},
    metrics::ProxyError,
};
use http::{HeaderMap, StatusCode};
use pintle_aggregator::remote_user;
use pintle_apiserver::{
    base::{
        handler::Handler,
        request::Request,
        request_info::RequestInfo,
        response::{Response, negotiated_failure},
    },
    proxying::{self, Origin, Proxying, Target},
    server::PeerResources,
};
use pintle_machinery::{GroupVersionResource, Status, UserInfo};
use rand::seq::SliceRandom;
use std::{net::SocketAddr, sync::Arc};

/// The proxy as a handler of requests.
#[derive(Clone)]
pub struct Forwarder(pub Arc<PeerProxy>);

impl PeerResources for Forwarder {
    fn handler(&self, info: &RequestInfo, headers: &HeaderMap) -> Option<Handler> {
        if headers.get(PEER_PROXIED) == Some(&TRUE) || !self.0.is_synced() {
            return None;
        }
        let resource = info.group_version_resource();
        let servers = self.0.catalog().servers_of(&resource).to_vec();
        if servers.is_empty() {
            return None;
        }
        let proxy = self.clone();
        Some(Handler::new(move |request| {
            let (proxy, servers, resource) = (proxy.clone(), servers.clone(), resource.clone());
            async move { proxy.answer(servers, &resource, request).await }
        }))
    }
}

impl Forwarder {
    async fn answer(
        &self,
        servers: Vec<Arc<str>>,
        resource: &GroupVersionResource,
        request: Request,
    ) -> Response {
        let Forwarder(proxy) = self;
        let Some(address) = self.locate(servers).await else {
            proxy.metrics.count_proxy_error(ProxyError::EndpointResolution, resource);
            let message = "Error getting ip and port info of the remote server while proxying";
            let status = Status::service_unavailable(message);
            return negotiated_failure(&status, request.headers(), None);
        };
        let target = Target::of(request.uri(), &address.to_string());
        let user = request.extensions().get::<Arc<UserInfo>>().cloned();
        let (Ok(target), Some(user)) = (target, user) else {
            proxy.metrics.count_proxy_error(ProxyError::ProxyTransport, resource);
            return proxying::failure(StatusCode::INTERNAL_SERVER_ERROR, "missing user");
        };
        tracing::debug!(path = request.uri().path(), %address, "forwarding a request to another server");
        let client = proxy.client.current();
        let proxying = Proxying {
            client: &client,
            target,
            origin: Origin::Backend,
            rejects_redirects: false,
            limit: None,
            carry: None,
        };
        let answer = proxying.answer(request, |headers| {
            headers.insert(PEER_PROXIED, TRUE);
            remote_user::set(headers, &user)
        });
        let response = answer.await.unwrap_or_else(|failure| {
            tracing::warn!(%address, %failure, "a request could not be forwarded to another server");
            proxying::failure(StatusCode::SERVICE_UNAVAILABLE, &failure.to_string())
        });
        proxy.metrics.count_rerouted(response.status().as_u16(), Some(resource));
        response
    }

    /// The address of a random one of the servers that has an address.
    async fn locate(&self, mut servers: Vec<Arc<str>>) -> Option<SocketAddr> {
        servers.shuffle(&mut rand::rng());
        for id in servers {
            match self.0.leases.address(&id).await {
                Ok(address) => return Some(address),
                Err(error) => tracing::warn!(%id, error, "the address of another server is unknown"),
            }
        }
        None
    }
}
