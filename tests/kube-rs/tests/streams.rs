//! Tests the streams of kube-rs to a pod: commands, ports and logs, in a network of its own.

use futures_util::{AsyncBufReadExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Config,
    api::{AttachParams, AttachedProcess, LogParams, TerminalSize},
    config::{KubeConfigOptions, Kubeconfig},
};
use pintle_harness::{Server, in_own_network, is_in_own_network};
use pintle_kubelet::Kubelet;
use std::{path::PathBuf, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

type Result<T = ()> = std::result::Result<T, pintle_harness::Error>;

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn kube_rs_runs_commands_forwards_ports_and_reads_logs() -> Result {
    if !is_in_own_network() {
        let output = in_own_network(std::env::current_exe()?).arg("--nocapture").output()?;
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return Ok(());
    }
    let binary =
        std::env::var_os("PINTLE_SERVER").ok_or("PINTLE_SERVER is not set: run `cargo xtask test e2e`")?;
    // A node that speaks WebSocket itself, and one for which the server translates.
    for is_native in [false, true] {
        let server = Server::start(pintle_harness::Config::new(PathBuf::from(&binary)))?;
        let files = server.directory().join("pod");
        std::fs::create_dir(&files)?;
        let kubelet = Kubelet::start(files)?;
        kubelet.register(&server, is_native)?;
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(async { timeout(PATIENCE, use_pod(&server)).await? })?;
    }
    Ok(())
}

async fn use_pod(server: &Server) -> Result {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig())?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let pods: Api<Pod> = Api::default_namespaced(Client::try_from(config)?);

    let only_output = AttachParams::default().stderr(false);
    let mut process = pods.exec(Kubelet::POD, ["echo", "hello", "two words"], &only_output).await?;
    assert_eq!(output(&mut process).await?, "hello two words\n");
    assert_eq!(process.take_status().ok_or("no status")?.await.and_then(|it| it.status), Some("Success".into()));
    process.join().await?;

    let mut process = pods.exec(Kubelet::POD, ["fail", "42"], &AttachParams::default()).await?;
    assert_eq!(output(&mut process).await?, "some output\n");
    let status = process.take_status().ok_or("no status")?.await.ok_or("no final status")?;
    assert_eq!(status.reason.as_deref(), Some("NonZeroExitCode"));
    process.join().await?;

    // The end of the input ends the command.
    let much = "0123456789".repeat(20_000);
    let with_input = AttachParams::default().stdin(true).stderr(false);
    let mut process = pods.exec(Kubelet::POD, ["cat"], &with_input).await?;
    let mut input = process.stdin().ok_or("no input")?;
    let feeding = async {
        input.write_all(much.as_bytes()).await?;
        input.shutdown().await?;
        drop(input);
        Result::Ok(())
    };
    let mut stdout = process.stdout().ok_or("no output")?;
    let mut heard = vec![0; much.len()];
    let (fed, read) = tokio::join!(feeding, stdout.read_exact(&mut heard));
    fed?;
    read?;
    assert!(heard == much.as_bytes());
    drop(stdout);
    process.abort();

    let mut process = pods.exec(Kubelet::POD, ["resize", "1"], &AttachParams::interactive_tty()).await?;
    let mut sizes = process.terminal_size().ok_or("no terminal")?;
    futures_util::SinkExt::send(&mut sizes, TerminalSize { width: 100, height: 30 }).await?;
    assert_eq!(output(&mut process).await?, "100x30\n");

    let mut forwarder = pods.portforward(Kubelet::POD, &[8080]).await?;
    let mut port = forwarder.take_stream(8080).ok_or("no stream")?;
    port.write_all(b"ping").await?;
    let mut answer = [0; 9];
    port.read_exact(&mut answer).await?;
    assert_eq!(&answer, b"8080:ping");
    drop(port);
    forwarder.abort();

    let follow = LogParams { follow: true, ..LogParams::default() };
    let lines: Vec<String> = pods.log_stream(Kubelet::POD, &follow).await?.lines().try_collect().await?;
    assert_eq!(lines, ["main line 1", "main line 2", "main line 3"]);
    Ok(())
}

async fn output(process: &mut AttachedProcess) -> Result<String> {
    let mut text = String::new();
    process.stdout().ok_or("no output")?.read_to_string(&mut text).await?;
    Ok(text)
}
