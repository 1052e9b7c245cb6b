//! Shell completions and the manual pages, generated from the flags: a page of the server, and one of each command.

use super::help::{section_of, sections};
use clap::{Arg, ArgMatches, Command};
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use std::{
    fs,
    path::{Path, PathBuf},
};

const COMPLETION: &str = "completion";
const MANUAL: &str = "man";

/// The commands that print the documents.
pub(super) fn commands() -> [Command; 2] {
    let shell = Arg::new("shell")
        .value_name("SHELL")
        .required(true)
        .help("Shell: bash, zsh or fish")
        .value_parser(["bash", "zsh", "fish"]);
    let page = Arg::new("command")
        .value_name("COMMAND")
        .num_args(0..)
        .help("Command, such as `snapshot save`; the server by default");
    let directory = Arg::new("directory")
        .long("directory")
        .value_name("DIRECTORY")
        .conflicts_with("command")
        .help("Writes the pages of all commands to this directory, and prints the names of the files")
        .value_parser(clap::value_parser!(PathBuf));
    [
        Command::new(COMPLETION).about("Prints the completion script of a shell").arg(shell),
        Command::new(MANUAL).about("Prints a manual page, or writes all").args([page, directory]),
    ]
}

/// The document that is requested, of the whole command; `None` for other commands.
///
/// # Errors
/// When there is no such document, or it cannot be written.
pub(super) fn text(command: Command, matches: &ArgMatches) -> Option<Result<String, String>> {
    match matches.subcommand()? {
        (COMPLETION, matches) => {
            let shell = matches.get_one::<String>("shell")?.parse().ok()?;
            Some(Ok(completion(command, shell)))
        }
        (MANUAL, matches) => {
            let pages = pages(command);
            if let Some(directory) = matches.get_one::<PathBuf>("directory") {
                return Some(write(&pages, directory));
            }
            let words = matches.get_many::<String>("command").into_iter().flatten();
            let name = words.fold("pintle".to_owned(), |name, word| format!("{name}-{word}"));
            let found = pages.into_iter().find(|page| page.name == name);
            Some(found.map(|page| page.text).ok_or_else(|| format!("there is no manual page {name}")))
        }
        _ => None,
    }
}

/// A manual page.
struct Page {
    name: String,
    text: String,
}

/// The section of the pages: commands of administrators.
const SECTION: &str = "8";

/// All manual pages, that of the server first.
fn pages(mut command: Command) -> Vec<Page> {
    let mut pages = vec![Page { name: "pintle".to_owned(), text: manual(command.clone()) }];
    // Gives the commands their full names, such as `pintle-snapshot-save`.
    command.build();
    command.get_subcommands().for_each(|subcommand| add_page(&mut pages, subcommand));
    pages
}

fn add_page(pages: &mut Vec<Page>, command: &Command) {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = Man::new(command.clone()).section(SECTION).source("Pintle").render(&mut text);
    pages.push(Page { name, text: String::from_utf8_lossy(&text).into_owned() });
    command.get_subcommands().for_each(|subcommand| add_page(pages, subcommand));
}

/// Writes the pages, and returns the names of their files, one a line.
fn write(pages: &[Page], directory: &Path) -> Result<String, String> {
    let mut written = String::new();
    for Page { name, text } in pages {
        let file = format!("{name}.{SECTION}");
        let path = directory.join(&file);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        written.push_str(&file);
        written.push('\n');
    }
    Ok(written)
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
    let page = Man::new(page).section(SECTION).source("Pintle");
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
    fn each_command_has_a_page_of_its_options() {
        let pages = pages(command());
        for (name, part) in [
            ("pintle", ".SH ETCD"),
            ("pintle-check-config", "starts nothing"),
            ("pintle-completion", "bash, zsh or fish"),
            ("pintle-man", "\\-\\-directory"),
            ("pintle-snapshot", "pintle\\-snapshot\\-save(8)"),
            ("pintle-snapshot-save", "data\\-dir"),
        ] {
            let page = pages.iter().find(|page| page.name == name).unwrap_or_else(|| panic!("no {name}"));
            assert!(page.text.contains(part), "{name}: {part}: {}", page.text);
        }
        // Every page that a page names exists.
        for page in &pages {
            for word in page.text.split_whitespace().filter_map(|word| word.strip_suffix("(8)")) {
                let name = word.replace('\\', "");
                assert!(pages.iter().any(|page| page.name == name), "{} names {name}", page.name);
            }
        }
    }

    #[test]
    fn the_manual_has_the_sections_of_the_help() {
        let text = manual(command());
        for part in [".TH pintle 8", ".SH ETCD", "etcd\\-servers", ".SH OWN", "data\\-dir"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
