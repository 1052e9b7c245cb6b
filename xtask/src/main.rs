//! Project tasks: `cargo xtask --help`.

use std::path::Path;
use std::process::ExitCode;

mod bench;
mod codegen;
mod compatibility;
mod conformance;
mod crash;
mod differential;
mod dist;
mod fuzz;
mod openapi;
mod roundtrip;
mod sbom;
mod shared;
mod task;
mod test;
#[cfg(test)]
mod tidy;
mod tools;
mod transcript;

const HELP: &str = "\
Usage: cargo xtask <task>

Tasks:
  test [unit] [doc] [etcd] [attacks] [e2e]
                      run all tests, or those parts; installs what they need in .tools/
  sweep               every attack, with each list and map of each kind in a body of 1.2 MB, on a release build
  conformance [--bless] [--debug] [--storage=memory|embedded|etcd[,...]] [AREA...]
                      replay ../shared/conformance and compare with conformance-floors.json; of several engines
                      the first is compared with the floors, the others with the first
  bench [--objects=N] [--seconds=N] [--watchers=N] [--storage=embedded|memory] [--run=a,b,...]
        [--binary=PATH]
                      measure a release build with ../shared/loadgen
  bench admission [--creates=N] [--policies=N]
                      the cost that policies and a webhook add to the creation of a pod
  bench aggregation [--gets=N] [--events=N] [--megabytes=N]
                      what a proxied GET, an event of a proxied watch and a large body cost
  bench cluster [--sizes=N,...] [--churn=N] [--seconds=N] [--full] [--storage=embedded|memory]
                [--soak=SECONDS [--warm-up=SECONDS] [--growth=PERCENT]] [--binary=PATH] [--loadgen=PATH] [--output=DIR]
                      clusters of several sizes: latencies, CPU and memory, kept and drawn in docs/;
                      with --soak, one size for long, which fails if memory or disk grow after the warm-up
  bench connections [--megabytes=N] [--idle=N] [--reference=KUBE_APISERVER,ETCD]
                      streams to nodes: the CPU of a gigabyte, the memory of idle ones
  bench definitions [--count=N]
                      memory and CPU of custom resource definitions, from the first to the last
  bench instructions [--binary=FILE] [--run=LIST]
                      the instructions of an operation, counted by valgrind
  bench writers [--objects=N] [--of=engines|servers]
                      creates by 16 and 64 writers, embedded and on a real etcd
  crash [engine] [power] [server] [consistency]
                      kill the engine and a release build a thousand times each, cut the power twenty thousand times,
                      and check that clients see one history through a hundred faults
  churn               write what a cluster of 5,000 pods writes in a week, and print the disk use
  fuzz [--seconds=N] [--jobs=N] [TARGET...]
                      run fuzz targets, or all, for N seconds each (3600), N side by side (one for each core)
  differential --reference=KUBE_APISERVER,ETCD [--binary=PATH] [--seed=N] [--changes=N] [--ignore=TEXT]... [SET...]
                      send requests that no recording has to a kube-apiserver and to the server, and tell what differs;
                      the sets are creates, updates, metadata, forms and protobuf
  transcript          run the README's transcript against a server
  codegen [--check]   make the built-in schema table from ../shared/reference/types.json
  openapi --check     compare the OpenAPI documents with ../shared/reference/openapi-v3
  compatibility       compare COMPATIBILITY.md with the flags, admission plugins and feature gates of ../shared/reference
                      and of the server
  dist [--target=TRIPLE] [--verify[=BINARY]]
                      build what is packaged in target/dist/: the static binary, manual pages, completions, bill of
                      materials; with --verify, build it again from another path and compare the binaries, or compare
                      with a binary that was built elsewhere
  sbom                print the bill of materials
  roundtrip           convert every object of ../shared/reference/api-roundtrip/ between its forms
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let Some(root) = Path::new(env!("CARGO_MANIFEST_DIR")).parent() else {
        eprintln!("error: the task runner is not in a workspace");
        return ExitCode::FAILURE;
    };
    let result = match args.as_slice() {
        ["test", args @ ..] => test::run(root, args),
        ["sweep"] => test::sweep(root),
        ["conformance", args @ ..] => conformance::run(root, args),
        ["bench", "admission", args @ ..] => bench::admission::run(root, args),
        ["bench", "aggregation", args @ ..] => bench::aggregation::run(root, args),
        ["bench", "cluster", args @ ..] => bench::cluster::run(root, args),
        ["bench", "connections", args @ ..] => bench::connections::run(root, args),
        ["bench", "definitions", args @ ..] => bench::definitions::run(root, args),
        ["bench", "instructions", args @ ..] => bench::instructions::run(root, args),
        ["bench", "writers", args @ ..] => bench::writers::run(root, args),
        ["bench", args @ ..] => bench::run(root, args),
        ["crash", args @ ..] => crash::run(root, args),
        ["churn"] => crash::churn(root),
        ["fuzz", args @ ..] => fuzz::run(root, args),
        ["differential", args @ ..] => differential::run(root, args),
        ["transcript"] => transcript::run(root),
        ["codegen"] => codegen::run(root, false),
        ["codegen", "--check"] => codegen::run(root, true),
        ["openapi", "--check"] => openapi::run(root),
        ["compatibility"] => compatibility::run(root),
        ["roundtrip"] => roundtrip::run(root),
        ["dist", args @ ..] => dist::run(root, args),
        ["sbom"] => sbom::bill(root, dist::HOST).map(|bill| println!("{bill}")),
        ["-h" | "--help" | "help"] | [] => {
            print!("{HELP}");
            Ok(())
        }
        _ => Err(format!("unknown task {args:?}\n\n{HELP}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
