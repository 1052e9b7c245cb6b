//! Measures how large a cluster the server carries: the load generator behaves as all components of a cluster of each
//! size do, against a fresh server. The figures are printed, kept in `docs/cluster.jsonl` and drawn in
//! `docs/cluster.svg`. With `--soak`, one size runs for long instead, and must need no more memory and disk at its end
//! than after its warm-up.
//!
//! The load generator runs beside the server: on a small machine it takes part of the server's CPU, so that a size that
//! is not carried there may be carried by the same server with the generator elsewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_harness::{Config, Server};

use crate::{shared, task};
use generator::{Generator, Load};
use outcome::Outcome;
use soak::{Growth, Limits, Sample};

mod chart;
mod generator;
mod outcome;
mod soak;

/// The name of the measured server in `docs/cluster.jsonl` and in the legend.
const PINTLE: &str = "Pintle";
const REFERENCE: &str = "kube-apiserver + etcd";
/// Fewer nodes than in the other runs: a soak is to find what grows with time.
const SOAK_NODES: u32 = 200;

struct Request {
    sizes: Vec<u32>,
    churn: f64,
    seconds: u32,
    is_full: bool,
    storage: String,
    /// The server's binary, when it is built already.
    binary: Option<PathBuf>,
    /// The load generator's binary, when it is built already.
    load_generator: Option<PathBuf>,
    /// The directory of the figures and of the drawing.
    output: PathBuf,
    soak: Option<Limits>,
}

pub(crate) fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let request = parse(root, args)?;
    let binary = match &request.binary {
        Some(binary) => binary.clone(),
        None => task::build_server(root, true)?,
    };
    let load_generator = match &request.load_generator {
        Some(binary) => binary.clone(),
        None => super::load_generator(root)?,
    };
    match &request.soak {
        Some(limits) => soak(&binary, &load_generator, &request, limits),
        None => sizes(root, &binary, &load_generator, &request),
    }
}

fn parse(root: &Path, args: &[&str]) -> Result<Request, String> {
    let mut request = Request {
        sizes: Vec::new(),
        churn: 10.0,
        seconds: 30,
        is_full: false,
        storage: "embedded".to_owned(),
        binary: None,
        load_generator: None,
        output: root.join("docs"),
        soak: None,
    };
    let (mut soak, mut warm_up, mut growth) = (None, None, None);
    for arg in args {
        if *arg == "--full" {
            request.is_full = true;
            continue;
        }
        let (flag, value) = arg.split_once('=').ok_or_else(|| format!("{arg}: flags are --name=value"))?;
        let wrong = |error: &dyn std::fmt::Display| format!("{flag}: {error}");
        let number = || value.parse::<u32>().map_err(|error| wrong(&error));
        match flag {
            "--sizes" => {
                let sizes = value.split(',').map(|size| size.parse::<u32>().map_err(|error| wrong(&error)));
                request.sizes = sizes.collect::<Result<_, _>>()?;
                if request.sizes.contains(&0) {
                    return Err(wrong(&"a cluster has nodes"));
                }
            }
            "--churn" => {
                request.churn = value.parse().map_err(|error| wrong(&error))?;
                if !(request.churn >= 0.0 && request.churn.is_finite()) {
                    return Err(wrong(&"pods a second are 0 or more"));
                }
            }
            "--seconds" => request.seconds = number()?.max(1),
            "--storage" => request.storage = value.to_owned(),
            "--binary" => request.binary = Some(value.into()),
            "--loadgen" => request.load_generator = Some(value.into()),
            "--output" => request.output = value.into(),
            "--soak" => soak = Some(number()?),
            "--warm-up" => warm_up = Some(number()?),
            "--growth" => growth = Some(f64::from(number()?) / 100.0),
            _ => return Err(format!("unknown flag {flag}")),
        }
    }
    match soak {
        Some(seconds) => {
            request.soak = Some(Limits::new(seconds, warm_up, growth)?);
            request.seconds = seconds;
            if request.sizes.is_empty() {
                request.sizes = vec![SOAK_NODES];
            }
            if request.sizes.len() > 1 {
                return Err("--soak runs one size".to_owned());
            }
        }
        None if warm_up.is_some() || growth.is_some() => {
            return Err("--warm-up and --growth are flags of --soak".to_owned());
        }
        None if request.sizes.is_empty() => request.sizes = vec![200, 1000, 5000],
        None => {}
    }
    Ok(request)
}

impl Request {
    fn config(&self, binary: &Path) -> Config {
        Config::new(binary).flag(format!("--storage-backend={}", self.storage))
    }

    fn load(&self, nodes: u32) -> Load {
        Load { nodes, churn: self.churn, seconds: self.seconds, is_full: self.is_full }
    }
}

/// Measures each size, prints a table, and writes the figures and their drawing.
fn sizes(root: &Path, binary: &Path, load_generator: &Path, request: &Request) -> Result<(), String> {
    let reference = outcome::all(REFERENCE, &shared::read(root, "loadgen/reference-cluster.jsonl")?)?;
    println!("{}", outcome::TABLE_HEAD);
    for outcome in &reference {
        println!("{}", outcome.row());
    }
    let mut outcomes = Vec::new();
    for nodes in &request.sizes {
        let server = Server::start(request.config(binary)).map_err(|error| error.to_string())?;
        let generator = Generator::start(load_generator, &server, &request.load(*nodes))?;
        let outcome = finish(generator, server)?;
        println!("{}", outcome.row());
        outcomes.push(outcome);
    }
    println!();
    for outcome in &outcomes {
        println!("{}", outcome.verdict());
    }
    let failed = outcomes.iter().any(|outcome| !outcome.is_carried());
    outcomes.extend(reference);
    for (name, text) in
        [("cluster.jsonl", outcome::lines(&outcomes)), ("cluster.svg", chart::draw(&outcomes))]
    {
        let path = request.output.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", path.display());
    }
    if failed { Err("not every size is carried".to_owned()) } else { Ok(()) }
}

/// Waits for the end of a load, and returns its outcome.
fn finish(generator: Generator, mut server: Server) -> Result<Outcome, String> {
    let told = generator.wait();
    if !server.is_running() {
        let log = server.log().map_err(|error| error.to_string())?;
        return Err(format!("the server died; its log:\n{log}"));
    }
    let mut outcomes = outcome::all(PINTLE, &told?)?;
    outcomes.pop().ok_or_else(|| "the load generator told nothing about the cluster".to_owned())
}

/// Runs one size for long, prints samples of memory and disk, and compares the last ones with those after the warm-up.
fn soak(binary: &Path, load_generator: &Path, request: &Request, limits: &Limits) -> Result<(), String> {
    let mut config = request.config(binary);
    for flag in limits.server_flags() {
        println!("the server has {flag}");
        config = config.flag(flag);
    }
    let server = Server::start(config).map_err(|error| error.to_string())?;
    let nodes = request.sizes.first().copied().unwrap_or(SOAK_NODES);
    let mut generator = Generator::start(load_generator, &server, &request.load(nodes))?;
    println!("| seconds | resident MB | disk MB | |");
    println!("|---|---|---|---|");
    let mut loaded_at = None;
    let mut samples = Vec::new();
    while !generator.ends_within(soak::SAMPLE_EVERY)? {
        if loaded_at.is_none() && generator.is_loaded()? {
            loaded_at = Some(std::time::Instant::now());
        }
        let elapsed = loaded_at.map(|at| at.elapsed());
        let sample = Sample::take(&server, elapsed.unwrap_or_default()).map_err(|error| error.to_string())?;
        let phase = match elapsed {
            None => "making objects",
            Some(elapsed) if elapsed < limits.warm_up => "warm-up",
            Some(elapsed) if elapsed > Duration::from_secs(request.seconds.into()) => "end",
            Some(_) => "",
        };
        println!("{}", sample.row(phase));
        if matches!(phase, "warm-up" | "") {
            samples.push(sample);
        }
    }
    let outcome = finish(generator, server)?;
    println!();
    println!("{}\n{}\n\n{}", outcome::TABLE_HEAD, outcome.row(), outcome.verdict());
    let growth = Growth::of(&samples, limits)?;
    println!("{growth}");
    match outcome.is_carried() && growth.is_within(limits) {
        true => Ok(()),
        false => Err("the soak failed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_select_sizes_and_limits() {
        let parsed = |args: &[&str]| parse(Path::new("/p"), args);
        let default = parsed(&[]).unwrap();
        assert_eq!((default.sizes, default.churn, default.seconds), (vec![200, 1000, 5000], 10.0, 30));
        assert!(default.soak.is_none() && !default.is_full);
        assert_eq!(default.output, Path::new("/p/docs"));
        let given = parsed(&["--sizes=50,100", "--churn=2.5", "--full", "--seconds=5"]).unwrap();
        assert_eq!((given.sizes, given.churn, given.is_full, given.seconds), (vec![50, 100], 2.5, true, 5));
        let soak = parsed(&["--soak=600", "--growth=5"]).unwrap();
        assert_eq!((soak.sizes, soak.seconds), (vec![SOAK_NODES], 600));
        for wrong in [
            &["--sizes=0"][..],
            &["--sizes=1,x"],
            &["--churn=-1"],
            &["--churn=inf"],
            &["--soak=600", "--sizes=1,2"],
            &["--soak=60"],
            &["--growth=5"],
            &["--fool"],
            &["--fool=1"],
        ] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_drawing_in_the_documents_is_that_of_the_figures() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let text = fs::read_to_string(docs.join("cluster.jsonl")).unwrap();
        let outcomes = outcome::read_lines(&text).unwrap();
        assert!(outcomes.len() > 1);
        assert_eq!(outcome::lines(&outcomes), text);
        let drawing = fs::read_to_string(docs.join("cluster.svg")).unwrap();
        assert!(drawing == chart::draw(&outcomes), "docs/cluster.svg is of other figures");
    }
}
