//! Shell completions and the manual page, generated from the flags.

use super::help::{section_of, sections};
use clap::{Arg, ArgMatches, Command};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

const COMPLETION: &str = "completion";
const MANUAL: &str = "man";

/// The commands that print the documents.
pub(super) fn commands() -> [Command; 2] {
    let shell = Arg::new("shell")
        .value_name("SHELL")
        .required(true)
        .help("bash, zsh or fish")
        .value_parser(["bash", "zsh", "fish"]);
    [
        Command::new(COMPLETION).about("Prints the completions of a shell").arg(shell),
        Command::new(MANUAL).about("Prints the manual page"),
    ]
}

/// The document that is asked for, of the whole command.
pub(super) fn text(command: Command, matches: &ArgMatches) -> Option<String> {
    match matches.subcommand()? {
        (COMPLETION, matches) => {
            let shell = matches.get_one::<String>("shell")?.parse().ok()?;
            Some(completion(command, shell))
        }
        (MANUAL, _) => Some(manual(command)),
        _ => None,
    }
}

fn completion(mut command: Command, shell: Shell) -> String {
    let mut text = Vec::new();
    let name = command.get_name().to_owned();
    generate(shell, &mut command, name, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn manual(command: Command) -> String {
    let mut page = Command::new("pintle")
        .about(command.get_about().cloned().unwrap_or_default())
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .subcommands(command.get_subcommands().cloned());
    for section in sections() {
        let of_section = |arg: &&Arg| section_of(arg.get_id().as_str()) == section;
        let mut args: Vec<Arg> = command.get_arguments().filter(of_section).cloned().collect();
        args.sort_by_key(|arg| arg.get_id().to_string());
        page = page.args(args.into_iter().map(|arg| arg.help_heading(section)));
    }
    let page = Man::new(page).section("8");
    let mut text = Vec::new();
    // Writing to memory does not fail. The synopsis would be a second list of all flags.
    let _ = page.render_title(&mut text);
    let _ = page.render_name_section(&mut text);
    let _ = page.render_description_section(&mut text);
    let _ = page.render_subcommands_section(&mut text);
    let _ = page.render_options_section(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::command;
    use std::process::Command as Process;

    #[test]
    fn completions_have_the_flags_and_the_commands() {
        for (shell, flag) in [
            (Shell::Bash, "--etcd-servers"),
            (Shell::Zsh, "--etcd-servers="),
            (Shell::Fish, "-l etcd-servers "),
        ] {
            let text = completion(command(), shell);
            assert!(text.contains(flag) && text.contains("check-config"), "{shell}: {text}");
        }
    }

    #[test]
    fn bash_completes_a_flag() {
        let script = format!(
            "{}\nCOMP_WORDS=(pintle --etcd-serv) COMP_CWORD=1\n_pintle pintle --etcd-serv pintle\necho \"${{COMPREPLY[@]}}\"",
            completion(command(), Shell::Bash)
        );
        let output = Process::new("bash").args(["-c", &script]).output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            "--etcd-servers --etcd-servers-overrides",
            "{output:?}"
        );
    }

    #[test]
    fn the_manual_has_the_sections_of_the_help() {
        let text = manual(command());
        for part in [".TH pintle 8", ".SH ETCD", "etcd\\-servers", ".SH OWN", "data\\-dir"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
