//! Tests streams to a kubelet: kubectl over both of its transports and the Python client, in a network of its own.

use crate::Result;
use pintle_e2e::{Cli, PATIENCE, config, variable};
use pintle_harness::{Config, Server, in_own_network, is_in_own_network};
use pintle_kubelet::Kubelet;
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpStream},
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// Runs a test of this module in a network of its own, by another process of this program.
fn in_network(test: &str, body: fn() -> Result) -> Result {
    if is_in_own_network() {
        return body();
    }
    let output = in_own_network(std::env::current_exe()?)
        .args(["--exact", &format!("streams::{test}"), "--nocapture"])
        .output()?;
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    match output.status.success() && text.contains("1 passed") {
        true => Ok(()),
        false => Err(text.into()),
    }
}

/// A server with a node and a pod.
struct Cluster {
    server: Server,
    _kubelet: Kubelet,
    files: TempDir,
}

impl Cluster {
    fn start(is_native: bool) -> Result<Cluster> {
        Cluster::start_with(is_native, config()?)
    }

    fn start_with(is_native: bool, config: Config) -> Result<Cluster> {
        let server = Server::start(config)?;
        let files = TempDir::with_prefix("pintle-kubelet-")?;
        let kubelet = Kubelet::start(files.path().to_owned())?;
        kubelet.register(&server, is_native)?;
        Ok(Cluster { server, _kubelet: kubelet, files })
    }

    /// kubectl over WebSocket or over SPDY.
    fn kubectl(&self, websockets: bool, args: &[&str]) -> Result<Command> {
        let mut command = Cli::kubectl(&self.server)?.command(args);
        for name in ["KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "KUBECTL_PORT_FORWARD_WEBSOCKETS"] {
            command.env(name, websockets.to_string());
        }
        Ok(command)
    }

    /// Runs kubectl with an input. It returns the exit code and both outputs.
    fn run(&self, websockets: bool, args: &[&str], input: &str) -> Result<(i32, String, String)> {
        let mut child = self.kubectl(websockets, args)?.stdin(Stdio::piped()).spawn()?;
        let mut stdin = child.stdin.take().ok_or("no input")?;
        let input = input.to_owned();
        let feeding = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output()?;
        feeding.join().map_err(|_| "the input failed")?.ok();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr)))
    }
}

/// Runs kubectl's streaming commands with a pod, over one transport.
fn use_pod(cluster: &Cluster, websockets: bool) -> Result {
    let run = |args: &[&str], input: &str| cluster.run(websockets, args, input);
    let (code, out, err) = run(&["exec", "one", "--", "echo", "hello", "two words"], "")?;
    assert_eq!((code, &out[..]), (0, "hello two words\n"), "{err}");
    let (code, out, err) = run(&["exec", "one", "--", "fail", "42"], "")?;
    assert_eq!((code, &out[..]), (42, "some output\n"), "{err}");
    assert!(err.starts_with("some complaint\n"), "{err}");
    let much = "0123456789".repeat(100_000);
    let (code, out, err) = run(&["exec", "-i", "one", "--", "cat"], &much)?;
    assert!(code == 0 && out == much, "{} bytes: {err}", out.len());
    let (code, _, err) = run(&["exec", "one", "--", "nonesuch"], "")?;
    assert!(code == 1 && err.contains("no such command"), "{err}");
    let (code, out, err) = run(&["attach", "one", "-i"], "input\n")?;
    assert_eq!((code, &out[..]), (0, "first\nsecond\ninput\n"), "{err}");
    let (code, out, err) = run(&["logs", "-f", "one"], "")?;
    assert_eq!((code, &out[..]), (0, "main line 1\nmain line 2\nmain line 3\n"), "{err}");

    let home = cluster.server.directory();
    fs::write(home.join("local"), &much)?;
    let (code, _, err) = run(&["cp", "local", "one:/copied"], "")?;
    assert_eq!(code, 0, "{err}");
    assert!(fs::read_to_string(cluster.files.path().join("copied"))? == much);
    let (code, _, err) = run(&["cp", "one:/copied", "back"], "")?;
    assert_eq!(code, 0, "{err}");
    assert!(fs::read_to_string(home.join("back"))? == much);

    let mut forward = cluster.kubectl(websockets, &["port-forward", "one", ":8080"])?.spawn()?;
    let mut lines = BufReader::new(forward.stdout.take().ok_or("no output")?).lines();
    let line = lines.next().ok_or("no line")??;
    let address = line.strip_prefix("Forwarding from ").and_then(|rest| rest.split(' ').next());
    let address = address.ok_or_else(|| line.clone())?.to_owned();
    for round in 0..3 {
        let mut connection = TcpStream::connect(&address)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        write!(connection, "ping {round}")?;
        connection.shutdown(Shutdown::Write)?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        assert_eq!(answer, format!("8080:ping {round}"));
    }
    forward.kill()?;
    forward.wait()?;
    Ok(())
}

#[test]
fn kubectl_uses_a_pod_of_a_node_that_speaks_spdy() -> Result {
    in_network("kubectl_uses_a_pod_of_a_node_that_speaks_spdy", || {
        let cluster = Cluster::start(false)?;
        use_pod(&cluster, true)?;
        use_pod(&cluster, false)?;
        let (_, out, err) = cluster.run(true, &["get", "--raw", "/api/v1/nodes/node/proxy/healthz"], "")?;
        assert_eq!(out, "GET /healthz\n", "{err}");
        let metrics = Cli::kubectl(&cluster.server)?.run(&["get", "--raw", "/metrics"])?;
        for metric in [
            r#"apiserver_stream_translator_requests_total{code="200"}"#,
            r#"apiserver_stream_translator_requests_total{code="500"}"#,
            r#"apiserver_stream_tunnel_requests_total{code="101"}"#,
            r#"apiserver_websocket_streaming_requests_total{proxy_type="translated_at_apiserver",subresource="exec"}"#,
        ] {
            assert!(metrics.contains(metric), "{metric} is missing");
        }
        Ok(())
    })
}

#[test]
fn kubectl_uses_a_pod_of_a_node_that_speaks_websocket() -> Result {
    in_network("kubectl_uses_a_pod_of_a_node_that_speaks_websocket", || {
        let cluster = Cluster::start(true)?;
        use_pod(&cluster, true)?;
        use_pod(&cluster, false)
    })
}

/// kubectl then falls back to SPDY: the kubelet of this node speaks nothing else.
#[test]
fn streams_are_not_translated_where_the_gates_are_closed() -> Result {
    in_network("streams_are_not_translated_where_the_gates_are_closed", || {
        let gates = "TranslateStreamCloseWebsocketRequests=false,PortForwardWebsockets=false";
        let cluster = Cluster::start_with(false, config()?.flag(format!("--feature-gates={gates}")))?;
        use_pod(&cluster, true)?;
        let metrics = Cli::kubectl(&cluster.server)?.run(&["get", "--raw", "/metrics"])?;
        for metric in
            ["apiserver_stream_translator_requests_total{", "apiserver_websocket_streaming_requests_total{"]
        {
            assert!(!metrics.contains(metric), "{metric}");
        }
        Ok(())
    })
}

#[test]
fn the_python_client_runs_commands_and_forwards_ports() -> Result {
    in_network("the_python_client_runs_commands_and_forwards_ports", || {
        let cluster = Cluster::start(false)?;
        let output = Command::new("python3")
            .args(["-c", include_str!("streams_client.py")])
            .env("PYTHONPATH", variable("PINTLE_PYTHONPATH")?)
            .env("KUBECONFIG", cluster.server.kubeconfig())
            .output()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().last(), Some("ok"));
        Ok(())
    })
}

#[test]
fn the_javascript_client_runs_commands_and_forwards_ports() -> Result {
    in_network("the_javascript_client_runs_commands_and_forwards_ports", || {
        let cluster = Cluster::start(false)?;
        let output = Command::new(variable("PINTLE_NODE")?)
            .arg("tests/e2e/tests/e2e/streams_client.mjs")
            .current_dir(variable("PINTLE_ROOT")?)
            .env("NODE_PATH", variable("PINTLE_NODE_PATH")?)
            .env("KUBECONFIG", cluster.server.kubeconfig())
            .output()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().last(), Some("ok"));
        Ok(())
    })
}

/// `script` gives kubectl a terminal.
#[test]
fn the_size_of_kubectls_terminal_reaches_the_command() -> Result {
    in_network("the_size_of_kubectls_terminal_reaches_the_command", || {
        let cluster = Cluster::start(false)?;
        for websockets in [true, false] {
            let program = variable("PINTLE_KUBECTL")?.into_string().map_err(|_| "the path is no text")?;
            let line = format!("stty rows 30 cols 100; '{program}' exec -it one -- resize 1");
            let mut command = Command::new("script");
            command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
            for (name, value) in cluster.kubectl(websockets, &[])?.get_envs() {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
            let output = command.current_dir(cluster.server.directory()).stdin(Stdio::null()).output()?;
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("100x30"), "{text}");
        }
        Ok(())
    })
}
