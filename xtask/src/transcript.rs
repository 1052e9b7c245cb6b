//! Runs the README's transcript and compares its output.
//!
//! A transcript is a block marked `console`: a line after `$ ` is a command, the lines after it are its output. Ages
//! and cluster addresses differ from run to run, and so do the widths of their columns: the comparison ignores them and
//! treats several spaces as one.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use pintle_harness::{Config, Server};

use crate::{task, tools};

const DOCUMENT: &str = "README.md";

struct Step {
    command: String,
    output: Vec<String>,
}

pub(crate) fn run(root: &Path) -> Result<(), String> {
    let tools = tools::install(root)?;
    let server = task::build_server(root, false)?;
    check(root, &server, &tools.kubectl)
}

/// Runs the transcript against a fresh server.
///
/// # Errors
/// When the output of a command differs.
pub(crate) fn check(root: &Path, server: &Path, kubectl: &Path) -> Result<(), String> {
    let text = fs::read_to_string(root.join(DOCUMENT)).map_err(|error| format!("{DOCUMENT}: {error}"))?;
    let steps = steps(&text);
    if steps.is_empty() {
        return Err(format!("{DOCUMENT}: there is no transcript"));
    }
    let server = Server::start(Config::new(server)).map_err(|error| error.to_string())?;
    let directory = kubectl.parent().ok_or("kubectl is in no directory")?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(std::iter::once(directory.to_path_buf()).chain(std::env::split_paths(&path)))
            .map_err(|error| error.to_string())?;
    for step in &steps {
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1; {}", step.command)])
            .env("PATH", &path)
            .env("KUBECONFIG", server.kubeconfig())
            .env("HOME", server.directory())
            .current_dir(server.directory())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("sh: {error}"))?;
        let actual = String::from_utf8_lossy(&output.stdout).into_owned();
        let actual_lines = normalized(actual.lines());
        let expected = normalized(step.output.iter().map(String::as_str));
        if actual_lines != expected {
            return Err(format!(
                "{DOCUMENT}: `{}` prints\n{actual}\nand not\n{}",
                step.command,
                step.output.join("\n")
            ));
        }
    }
    println!("{DOCUMENT}: {} commands print what the transcript says", steps.len());
    Ok(())
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let (true, Some(command)) = (inside, line.strip_prefix("$ ")) {
            steps.push(Step { command: command.to_owned(), output: Vec::new() });
        } else if let (true, Some(step)) = (inside, steps.last_mut()) {
            step.output.push(line.to_owned());
        }
    }
    steps
}

/// Lines as words, without empty lines.
fn normalized<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    lines
        .map(|line| line.split_whitespace().map(word).collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect()
}

fn word(word: &str) -> &str {
    let is_age = word
        .strip_suffix('s')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
    let is_address = word.parse::<std::net::IpAddr>().is_ok();
    match (is_age, is_address) {
        (true, _) => "<age>",
        (_, true) => "<address>",
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_is_read_from_console_blocks_only() {
        let steps = steps("```sh\n$ no\n```\n```console\n$ a b\nc\n\n$ d\n```\nmore\n");
        let found: Vec<_> = steps.iter().map(|step| (step.command.as_str(), step.output.len())).collect();
        assert_eq!(found, [("a b", 2), ("d", 0)]);
    }

    #[test]
    fn ages_addresses_and_spaces_do_not_matter_and_all_else_does() {
        let same = |a: &'static str, b: &'static str| normalized(a.lines()) == normalized(b.lines());
        assert!(same("web   10.0.0.4   12s\n\n", "web 10.0.0.99 3s"));
        assert!(!same("web 10.0.0.4", "web pending"));
        assert!(!same("pods", "s"));
    }
}
