//! `pods/exec`, `pods/attach` and `pods/portforward`: streams to a kubelet.

use super::container::choose;
use crate::core::{connecting::read, node::KubeletAddresses};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{Status, Value, ValueExt};
use pintle_registry::{BoxFuture, ConnectService, Connecter, Destination, RequestContext, Stream, Transport};

/// The parameters of a kubelet for the standard streams, by option.
const STANDARD_STREAMS: [(&str, &str); 4] =
    [("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty")];

/// The kinds of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// Runs a command in a container.
    Exec,
    /// The streams of the container's own command.
    Attach,
    /// Connections to ports of the pod.
    PortForward,
}

/// Connects streams to the kubelet of a pod's node.
pub(super) struct PodStream {
    pub(super) kind: StreamKind,
    pub(super) kubelets: KubeletAddresses,
}

impl Connecter for PodStream {
    /// A GET that upgrades to WebSocket does the same as a POST that upgrades to SPDY, and needs the same permission
    /// (<https://github.com/kubernetes/kubernetes/issues/133515>).
    fn required_verb(&self) -> Option<&'static str> {
        enabled(Gate::AuthorizePodWebsocketUpgradeCreatePermission).then_some("create")
    }

    fn connect<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        options: &'a Value,
    ) -> BoxFuture<'a, Result<Option<Destination>, Status>> {
        Box::pin(async move {
            let pod = read(context, "pods", "pods", context.namespace, context.name).await?;
            let target = match self.kind {
                StreamKind::PortForward => format!("{}/{}", context.namespace, context.name),
                StreamKind::Exec | StreamKind::Attach => {
                    let container = choose(&pod, options.str_at("container"))?;
                    format!("{}/{}/{container}", context.namespace, context.name)
                }
            };
            let node = pod.str_at("spec.nodeName");
            if node.is_empty() {
                let message = format!("pod {} does not have a host assigned", context.name);
                return Err(Status::bad_request(message));
            }
            let kubelet = self.kubelets.find(context, "pods", node).await?;
            let stream = match kubelet.has_websockets && enabled(Gate::ExtendWebSocketsToKubelet) {
                _ if !enabled(self.translation()) => Stream::Untranslated,
                true => Stream::Native,
                false => self.stream(options),
            };
            let path = match self.kind {
                StreamKind::Exec => format!("/exec/{target}"),
                StreamKind::Attach => format!("/attach/{target}"),
                StreamKind::PortForward => format!("/portForward/{target}"),
            };
            Ok(Some(Destination {
                location: kubelet.location(path, self.parameters(options)),
                transport: Transport::Kubelet,
                service: ConnectService::Upgrade(stream),
            }))
        })
    }
}

impl PodStream {
    /// The gate of the translation of the streams.
    fn translation(&self) -> Gate {
        match self.kind {
            StreamKind::PortForward => Gate::PortForwardWebsockets,
            StreamKind::Exec | StreamKind::Attach => Gate::TranslateStreamCloseWebsocketRequests,
        }
    }

    fn stream(&self, options: &Value) -> Stream {
        match self.kind {
            StreamKind::PortForward => Stream::Ports,
            StreamKind::Exec | StreamKind::Attach => Stream::Command {
                stdin: options.bool_at("stdin"),
                stdout: options.bool_at("stdout"),
                stderr: options.bool_at("stderr"),
                tty: options.bool_at("tty"),
            },
        }
    }

    /// The parameters that the kubelet gets.
    fn parameters(&self, options: &Value) -> Vec<(&'static str, String)> {
        let strings = |name: &str| options.items_at(name).iter();
        if self.kind == StreamKind::PortForward {
            let ports = strings("ports").map(ToString::to_string).collect::<Vec<_>>().join(",");
            return if ports.is_empty() { Vec::new() } else { vec![("port", ports)] };
        }
        let command =
            strings("command").map(|word| ("command", word.as_str().unwrap_or_default().to_owned()));
        let given = STANDARD_STREAMS.iter().filter(|(option, _)| options.bool_at(option));
        command.chain(given.map(|(_, parameter)| (*parameter, "1".to_owned()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::connect;
    use pintle_feature_gates::{FeatureGates, testing::override_gates};
    use pintle_machinery::json;

    #[tokio::test]
    async fn streams_go_to_the_kubelet() {
        let pod = |name: &str, node: &str| {
            json!({"metadata": {"name": name, "namespace": "ns"},
                "spec": {"nodeName": node, "containers": [{"name": "c"}]}})
        };
        let node = |name: &str, features: Value| {
            json!({"metadata": {"name": name}, "status": {"declaredFeatures": features,
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}})
        };
        let objects = [
            ("pods", pod("p", "n")),
            ("pods", pod("native", "new")),
            ("pods", pod("unscheduled", "")),
            ("pods", pod("lost", "none")),
            ("nodes", node("n", json!([]))),
            ("nodes", node("new", json!(["ExtendWebSocketsToKubelet"]))),
        ];
        let check = async |kind: StreamKind, name: &str, options: Value, expected: &str| {
            let stream = PodStream { kind, kubelets: KubeletAddresses::default() };
            assert_eq!(connect(&stream, &objects, name, options).await, expected);
        };
        let all =
            json!({"command": ["a", "b c"], "stdin": true, "stdout": true, "stderr": false, "tty": true});
        let parameters = "command=a&command=b c&input=1&output=1&tty=1";
        let host = "Kubelet https://10.0.0.1:10250";
        check(StreamKind::Exec, "p", all.clone(), &format!("{host}/exec/ns/p/c?{parameters}")).await;
        check(StreamKind::Attach, "native", json!({}), &format!("{host}/attach/ns/native/c")).await;
        let ports = json!({"ports": [80, 81]});
        check(StreamKind::PortForward, "p", ports, &format!("{host}/portForward/ns/p?port=80,81")).await;
        check(StreamKind::Exec, "x", json!({}), "404 pods \"x\" not found").await;
        check(StreamKind::Exec, "lost", json!({}), "404 pods \"none\" not found").await;
        let unscheduled = "400 pod unscheduled does not have a host assigned";
        check(StreamKind::Attach, "unscheduled", json!({}), unscheduled).await;
        let unknown = "400 container x is not valid for pod p";
        check(StreamKind::Exec, "p", json!({"container": "x"}), unknown).await;
    }

    #[test]
    fn streams_are_translated_unless_the_kubelet_speaks_them() {
        let stream = PodStream { kind: StreamKind::Exec, kubelets: KubeletAddresses::default() };
        let expected = Stream::Command { stdin: true, stdout: false, stderr: true, tty: false };
        assert_eq!(stream.stream(&json!({"stdin": true, "stderr": true})), expected);
        assert_eq!(stream.required_verb(), Some("create"));
        let gates = FeatureGates::default().with(Gate::AuthorizePodWebsocketUpgradeCreatePermission, false);
        let _gates = override_gates(&gates);
        assert_eq!(stream.required_verb(), None);
    }
}
