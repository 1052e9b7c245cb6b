//! The command line of `pintle snapshot`.

use super::{Bump, SnapshotCommand, Store, default_prefix, key_prefix, print::Output};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use pintle::Options;
use std::path::PathBuf;

pub(crate) fn command() -> Command {
    Command::new("snapshot")
        .about("Saves a store into a file, tells what is in such a file, and makes a store out of it")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("save")
                .about("Saves all keys as of one revision. A server may be running")
                .arg(file("the snapshot to write; it is for its owner only, for it holds secrets"))
                .args(store("the data directory of the server whose embedded store is saved"))
                .arg(flag("overwrite", "replace the file if there is one").action(ArgAction::SetTrue))
                .arg(output()),
        )
        .subcommand(
            Command::new("status")
                .about("Verifies all of a snapshot and tells what it holds")
                .arg(file("the snapshot"))
                .arg(output()),
        )
        .subcommand(
            Command::new("restore")
                .about("Makes a store out of a snapshot, where there is none")
                .arg(file("the snapshot"))
                .args(store("the data directory in which a store is made"))
                .arg(
                    flag(
                        "bump-revision",
                        "how far the store's revision is raised beyond the snapshot's at least",
                    )
                    .value_name("N")
                    .value_parser(bump),
                )
                .arg(output()),
        )
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help)
}

fn file(help: &'static str) -> Arg {
    Arg::new("file").value_name("FILE").help(help).required(true).value_parser(value_parser!(PathBuf))
}

fn output() -> Arg {
    flag("output", "table or json").short('o').value_name("FORMAT").value_parser(["table", "json"])
}

fn store(data_dir: &'static str) -> [Arg; 2] {
    [
        flag("data-dir", data_dir).value_name("DIR").value_parser(value_parser!(PathBuf)),
        flag("etcd-prefix", "the prefix of all storage keys").value_name("PREFIX"),
    ]
}

fn bump(text: &str) -> Result<Bump, String> {
    match text {
        "false" => Ok(Bump::No),
        number => number.parse().map(Bump::By).map_err(|_| "neither a number nor false".to_owned()),
    }
}

/// What a matched command line says.
pub(crate) fn read(matches: &ArgMatches) -> Option<SnapshotCommand> {
    let (name, matches) = matches.subcommand()?;
    let file: PathBuf = matches.get_one::<PathBuf>("file")?.clone();
    let output = match matches.get_one::<String>("output") {
        Some(format) if format == "json" => Output::Json,
        _ => Output::Table,
    };
    if name == "status" {
        return Some(SnapshotCommand::Status { file, output });
    }
    let data_dir = matches.get_one("data-dir").cloned();
    let store = Store::Embedded(data_dir.unwrap_or_else(|| Options::default().data_dir));
    let prefix = matches.get_one::<String>("etcd-prefix").map(|prefix| key_prefix(prefix));
    match name {
        "save" => Some(SnapshotCommand::Save {
            file,
            store,
            prefix: prefix.unwrap_or_else(default_prefix),
            overwrite: matches.get_flag("overwrite"),
            output,
        }),
        "restore" => {
            let bump_revision = matches.get_one("bump-revision").copied().unwrap_or(Bump::By(0));
            Some(SnapshotCommand::Restore { file, store, prefix, bump_revision, output })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<SnapshotCommand, clap::Error> {
        let args = std::iter::once(&"snapshot").chain(args);
        command().try_get_matches_from(args).map(|matches| read(&matches).expect("every subcommand is read"))
    }

    #[test]
    fn save_takes_what_the_server_takes() {
        let Ok(SnapshotCommand::Save { file, store, prefix, overwrite, output }) =
            parse(&["save", "a.snap", "--data-dir=/d", "--etcd-prefix=other", "-o", "json"])
        else {
            panic!("not a save");
        };
        assert_eq!(file, PathBuf::from("a.snap"));
        let Store::Embedded(directory) = store;
        assert_eq!(directory, PathBuf::from("/d"));
        assert_eq!((prefix.as_str(), overwrite, output), ("/other/", false, Output::Json));
    }

    #[test]
    fn prefixes_are_those_of_keys() {
        for (option, prefix) in
            [("/registry", "/registry/"), ("registry/", "/registry/"), ("/a/b", "/a/b/"), ("", "/")]
        {
            assert_eq!(key_prefix(option), prefix);
        }
        assert_eq!(default_prefix(), "/registry/");
    }

    #[test]
    fn restore_reads_how_far_the_revision_is_raised() {
        for (args, expected) in [
            (&["restore", "f"][..], Bump::By(0)),
            (&["restore", "f", "--bump-revision=1000"], Bump::By(1000)),
            (&["restore", "f", "--bump-revision=false"], Bump::No),
        ] {
            let Ok(SnapshotCommand::Restore { bump_revision, prefix: None, .. }) = parse(args) else {
                panic!("{args:?}");
            };
            assert_eq!(bump_revision, expected);
        }
        for args in [
            &["restore"][..],
            &["restore", "f", "--bump-revision=soon"],
            &["status", "f", "--data-dir=x"],
            &[],
        ] {
            assert!(parse(args).is_err(), "{args:?}");
        }
    }
}
