//! Sends the same requests to a server and to a kube-apiserver, and tells where their answers differ.
//!
//! The requests are made of the recorded objects and of the facts about every kind, changed by dice that a seed throws:
//! they are others than those of the recordings, and any number of them can be made. Both servers begin empty, so that a
//! difference of answers is one of the servers. Some differences mean nothing, such as the order of a Go map or a race of
//! the reference; the reader of the report decides.

mod answer;
mod case;
mod changes;
mod corpus;
mod dice;
mod report;
mod sets;

use std::path::{Path, PathBuf};

use pintle_harness::{Config, Error, Server};
use serde_json::json;

use crate::task;
use answer::Answer;
use case::{Case, NAMESPACE};
use corpus::Corpus;
use report::Report;
use sets::Set;

struct Request {
    reference: (PathBuf, PathBuf),
    /// The server's binary, when it is built already.
    binary: Option<PathBuf>,
    seed: u64,
    /// The number of changed objects made of each object.
    changes: usize,
    /// Differences that contain one of these texts are not reported.
    ignored: Vec<String>,
    sets: Vec<Set>,
}

pub(crate) fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let request = parse(args)?;
    let corpus = Corpus::read(root)?;
    let binary = match &request.binary {
        Some(binary) => binary.clone(),
        None => task::build_server(root, false)?,
    };
    let mut differing = 0;
    for set in &request.sets {
        let cases = set.cases(&corpus, request.seed, request.changes);
        let report = compare(&binary, &request, &cases).map_err(|error| format!("{set}: {error}"))?;
        println!("{set}: {} of {} requests differ\n{report}", report.differing(), cases.len());
        differing += report.differing();
    }
    match differing {
        0 => Ok(()),
        _ => Err(format!("{differing} answers differ")),
    }
}

fn parse(args: &[&str]) -> Result<Request, String> {
    let (mut reference, mut binary, mut seed, mut changes) = (None, None, 1, 20);
    let (mut ignored, mut sets) = (Vec::new(), Vec::new());
    for arg in args {
        let Some((flag, value)) = arg.split_once('=') else {
            sets.push(Set::named(arg)?);
            continue;
        };
        let number = || value.parse::<u64>().map_err(|error| format!("{flag}: {error}"));
        match flag {
            "--reference" => {
                let (server, etcd) = value.split_once(',').ok_or("--reference=KUBE_APISERVER,ETCD")?;
                reference = Some((server.into(), etcd.into()));
            }
            "--binary" => binary = Some(value.into()),
            "--seed" => seed = number()?,
            "--changes" => changes = usize::try_from(number()?).map_err(|error| error.to_string())?,
            "--ignore" => ignored.push(value.to_owned()),
            _ => return Err(format!("unknown flag {flag}")),
        }
    }
    if sets.is_empty() {
        sets = Set::ALL.to_vec();
    }
    let reference = reference.ok_or("--reference=KUBE_APISERVER,ETCD is required")?;
    Ok(Request { reference, binary, seed, changes, ignored, sets })
}

/// Sends the requests to both servers at the same time, to each in their order.
fn compare(binary: &Path, request: &Request, cases: &[Case]) -> Result<Report, Error> {
    let (kube_apiserver, etcd) = &request.reference;
    let configurations = [
        Config::reference(kube_apiserver, etcd),
        // The reference has the plugin only where a flag names it.
        Config::new(binary).flag("--disable-admission-plugins=NodeRestriction"),
    ]
    .map(|config| config.flag("--allow-privileged=true"));
    let [reference, own] = std::thread::scope(|scope| {
        configurations
            .map(|config| scope.spawn(|| answers(config, cases).map_err(|error| error.to_string())))
            .map(|thread| thread.join().unwrap_or_else(|_| Err("the thread panicked".to_owned())))
    });
    let own = own.map_err(|error| format!("Pintle: {error}"))?;
    let reference = reference.map_err(|error| format!("the reference: {error}"))?;
    let mut report = Report::default();
    for (case, (expected, found)) in cases.iter().zip(reference.iter().zip(&own)) {
        let mut differences = expected.differences(found);
        differences.retain(|text| !request.ignored.iter().any(|ignored| text.contains(ignored.as_str())));
        report.add(case, expected.status, found.status, differences);
    }
    Ok(report)
}

/// The answers of a new server.
fn answers(config: Config, cases: &[Case]) -> Result<Vec<Answer>, Error> {
    let server = Server::start(config)?;
    let client = server.client()?;
    for (path, name) in [
        ("/api/v1/namespaces".to_owned(), NAMESPACE),
        (case::namespaced("/api/v1", "serviceaccounts"), "default"),
    ] {
        let created = client.post(&path, &json!({"metadata": {"name": name}}))?;
        if created.status != 201 {
            return Err(format!("{path}: {} {}", created.status, created.text()).into());
        }
    }
    let mut connection = client.connect()?;
    let mut answers = Vec::with_capacity(cases.len());
    for case in cases {
        let headers: Vec<(&str, &str)> =
            case.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut response = connection.request(&case.method, &case.path, &headers, &case.body);
        if response.is_err() {
            // A server may close a connection after any answer.
            connection = client.connect()?;
            response = connection.request(&case.method, &case.path, &headers, &case.body);
        }
        answers.push(match response {
            Ok(response) => Answer::of(&response, case),
            Err(_) => {
                connection = client.connect()?;
                Answer::none()
            }
        });
    }
    Ok(answers)
}
