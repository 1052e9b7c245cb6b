//! Parses the command line of `pintle snapshot`.

use super::{Bump, SnapshotCommand, Store, default_prefix, key_prefix, print::Output};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use pintle::Options;
use pintle_storage::EtcdOptions;
use std::path::PathBuf;

pub(crate) fn command() -> Command {
    Command::new("snapshot")
        .about("Saves a store into a file, describes such a file, and restores it into a store")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("save")
                .about("Saves all keys as of one revision. A server may be running")
                .arg(file("File to write, readable by its owner only, as it holds secrets"))
                .args(store("Data directory of the server whose embedded store is saved"))
                .arg(flag("overwrite", "Replaces an existing file").action(ArgAction::SetTrue))
                .arg(output()),
        )
        .subcommand(
            Command::new("status")
                .about("Verifies all of a snapshot and prints its summary")
                .arg(file("Snapshot file"))
                .arg(output()),
        )
        .subcommand(
            Command::new("restore")
                .about("Restores a snapshot into a new store")
                .arg(file("Snapshot file"))
                .args(store("Data directory in which the embedded store is created"))
                .arg(
                    flag(
                        "bump-revision",
                        "Minimum by which the store's revision exceeds the snapshot's; false does not raise it",
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
    flag("output", "Output format: table or json")
        .short('o')
        .value_name("FORMAT")
        .value_parser(["table", "json"])
}

fn store(data_dir: &'static str) -> [Arg; 6] {
    let path =
        |arg: Arg| arg.value_name("FILE").value_parser(value_parser!(PathBuf)).requires("etcd-servers");
    [
        flag("data-dir", data_dir)
            .value_name("DIR")
            .value_parser(value_parser!(PathBuf))
            .conflicts_with("etcd-servers"),
        flag("etcd-prefix", "Prefix of all storage keys").value_name("PREFIX"),
        flag("etcd-servers", "Client URLs of the etcd cluster, instead of an embedded store")
            .value_name("URL,…")
            .value_delimiter(',')
            .action(ArgAction::Append),
        path(flag("etcd-cafile", "Certificate authorities of etcd's serving certificates")),
        path(flag("etcd-certfile", "Client certificate for etcd")),
        path(flag("etcd-keyfile", "Private key of --etcd-certfile")),
    ]
}

/// The store that the flags select.
fn read_store(matches: &ArgMatches) -> Store {
    let Some(servers) = matches.get_many::<String>("etcd-servers") else {
        let data_dir = matches.get_one("data-dir").cloned();
        return Store::Embedded(data_dir.unwrap_or_else(|| Options::default().data_dir));
    };
    let mut options = EtcdOptions::new(servers, "");
    options.ca_file = matches.get_one("etcd-cafile").cloned();
    options.cert_file = matches.get_one("etcd-certfile").cloned();
    options.key_file = matches.get_one("etcd-keyfile").cloned();
    Store::Etcd(Box::new(options))
}

fn bump(text: &str) -> Result<Bump, String> {
    match text {
        "false" => Ok(Bump::No),
        number => number.parse().map(Bump::By).map_err(|_| "neither a number nor false".to_owned()),
    }
}

/// Reads the flags of the selected subcommand.
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
    let store = read_store(matches);
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
        let Store::Embedded(directory) = store else { panic!("not embedded") };
        assert_eq!(directory, PathBuf::from("/d"));
        assert_eq!((prefix.as_str(), overwrite, output), ("/other/", false, Output::Json));
    }

    #[test]
    fn a_cluster_is_named_as_the_server_names_it() {
        let servers = ["--etcd-servers=https://a:1,https://b:2", "--etcd-servers", "https://c:3"];
        let files = ["--etcd-cafile=ca", "--etcd-certfile=cert", "--etcd-keyfile=key"];
        let Ok(SnapshotCommand::Restore { store: Store::Etcd(options), .. }) =
            parse(&[&["restore", "f"], &servers[..], &files[..]].concat())
        else {
            panic!("not etcd");
        };
        assert_eq!(options.endpoints, ["https://a:1", "https://b:2", "https://c:3"]);
        assert_eq!(options.ca_file, Some(PathBuf::from("ca")));
        assert_eq!(options.cert_file, Some(PathBuf::from("cert")));
        assert_eq!(options.key_file, Some(PathBuf::from("key")));
        assert!(parse(&["save", "f", "--etcd-servers=http://a:1", "--data-dir=d"]).is_err());
        assert!(parse(&["save", "f", "--etcd-cafile=ca"]).is_err());
    }

    #[test]
    fn prefixes_are_those_of_keys() {
        for (option, prefix) in [
            ("/registry", "/registry/"),
            ("registry/", "/registry/"),
            ("a//b/./c/../d", "/a/b/d/"),
            ("", "/"),
        ] {
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
