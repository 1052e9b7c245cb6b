//! The commands.

use crate::streams::{Streams, Wanted};
use bytes::Bytes;
use serde_json::{Value, json};
use std::{path::Path, process::Stdio};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
    sync::mpsc,
};

/// Runs a command, and returns the final status for the client.
///
/// - `echo A B…` prints its arguments, `env` what was asked for, `cat` its input;
/// - `attach` prints two lines, then its input;
/// - `fail N` exits with a code, `resize N` prints the first sizes of the terminal;
/// - `sh`, `tar` and `test` run for real, in the folder `root`.
pub(crate) async fn run(command: &[String], wanted: Wanted, mut streams: Streams, root: &Path) -> Value {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    match *words {
        ["echo", ref words @ ..] => say(&streams.stdout, format!("{}\n", words.join(" "))).await,
        ["env"] => {
            let Wanted { stdin, stdout, stderr, tty } = wanted;
            say(&streams.stdout, format!("stdin={stdin} stdout={stdout} stderr={stderr} tty={tty}\n")).await;
        }
        ["cat"] => copy(&mut streams).await,
        ["attach"] => {
            for line in ["first\n", "second\n"] {
                say(&streams.stdout, line.to_owned()).await;
            }
            if wanted.stdin {
                copy(&mut streams).await;
            }
        }
        ["fail", code] => {
            say(&streams.stdout, "some output\n".to_owned()).await;
            say(&streams.stderr, "some complaint\n".to_owned()).await;
            return exited(code.parse().unwrap_or(1));
        }
        ["resize", count] => {
            for _ in 0..count.parse().unwrap_or(1) {
                let Some(size) = streams.sizes.recv().await else { break };
                let size: Value = serde_json::from_slice(&size).unwrap_or_default();
                let side = |name: &str| size.get(name).and_then(Value::as_u64).unwrap_or_default();
                say(&streams.stdout, format!("{}x{}\n", side("Width"), side("Height"))).await;
            }
        }
        [program @ ("sh" | "tar" | "test"), ref arguments @ ..] => {
            return really(program, arguments, streams, root).await;
        }
        _ => return internal_error(&format!("no such command: {words:?}")),
    }
    json!({"metadata": {}, "status": "Success"})
}

async fn copy(streams: &mut Streams) {
    while let Some(bytes) = streams.stdin.recv().await {
        streams.stdout.send(bytes).await.ok();
    }
}

async fn say(stream: &mpsc::Sender<Bytes>, text: String) {
    stream.send(text.into()).await.ok();
}

/// Runs a program, for which absolute paths begin in `root`.
async fn really(program: &str, arguments: &[&str], streams: Streams, root: &Path) -> Value {
    let arguments = arguments.iter().map(|argument| match argument.strip_prefix('/') {
        Some("") => ".",
        Some(relative) => relative,
        None => argument,
    });
    let child = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return internal_error(&error.to_string()),
    };
    let Streams { mut stdin, stdout, stderr, .. } = streams;
    let mut input = child.stdin.take();
    let feeding = tokio::spawn(async move {
        while let Some(bytes) = stdin.recv().await {
            if let Some(input) = &mut input
                && input.write_all(&bytes).await.is_err()
            {
                break;
            }
        }
    });
    let output = pump(child.stdout.take(), stdout);
    let errors = pump(child.stderr.take(), stderr);
    let (_, _, status) = tokio::join!(output, errors, child.wait());
    feeding.abort();
    match status {
        Ok(status) if status.success() => json!({"metadata": {}, "status": "Success"}),
        Ok(status) => exited(status.code().unwrap_or(137)),
        Err(error) => internal_error(&error.to_string()),
    }
}

async fn pump(stream: Option<impl AsyncReadExt + Unpin>, to: mpsc::Sender<Bytes>) {
    let Some(mut stream) = stream else { return };
    let mut buffer = vec![0; 16 << 10];
    while let Ok(read) = stream.read(&mut buffer).await {
        match buffer.get(..read) {
            None | Some([]) => break,
            Some(bytes) => drop(to.send(Bytes::copy_from_slice(bytes)).await),
        }
    }
}

fn exited(code: i32) -> Value {
    json!({"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": format!("command terminated with non-zero exit code: exit code {code}"),
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]}})
}

fn internal_error(why: &str) -> Value {
    json!({"metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
        "message": format!("Internal error occurred: {why}")})
}
