//! Measures the cost of custom resource definitions, from the first to the last of many: the memory and CPU of defining
//! and using each one once, then those of the documents about all of them.

use std::path::Path;
use std::time::{Duration, Instant};

use pintle_harness::{Client, Config, Connection, Server, definition, wait_for};

use crate::task;

const GOAL_MB: f64 = 0.3;
const GOAL_CPU: Duration = Duration::from_millis(8);
/// The maximum ratio of the cost of the last definitions to that of the first: measurements of small costs vary.
const GOAL_GROWTH: f64 = 1.5;
/// The number of lines to print.
const STEPS: usize = 10;
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let count = match args {
        [] => 1_000,
        [arg] => arg
            .strip_prefix("--count=")
            .and_then(|count| count.parse().ok())
            .filter(|count| *count >= 2 * STEPS)
            .ok_or_else(|| format!("{arg}: the flag is --count=N, {} or more", 2 * STEPS))?,
        _ => return Err("the flag is --count=N".to_owned()),
    };
    let binary = task::build_server(root, true)?;
    measure(&binary, count).map_err(|error| error.to_string())
}

fn measure(binary: &Path, count: usize) -> Result<(), pintle_harness::Error> {
    let server = Server::start(Config::new(binary))?;
    let client = server.client()?;
    let mut connection = client.connect()?;
    println!("| definitions | memory | memory each | CPU each |");
    println!("|---|---|---|---|");
    let start = server.memory_kb("VmRSS")?;
    println!("| 0 | {} MB | | |", start / 1024);
    let step = count / STEPS;
    let mut cpu = Vec::new();
    let mut memory = start;
    for from in (0..step * STEPS).step_by(step) {
        let before = server.cpu_time()?;
        for index in from..from + step {
            define_and_use(&mut connection, index)?;
        }
        let each = (server.cpu_time()? - before) / step as u32;
        cpu.push(each);
        let now = server.memory_kb("VmRSS")?;
        let each_mb = (now as f64 - memory as f64) / 1024.0 / step as f64;
        println!(
            "| {} | {} MB | {each_mb:.3} MB | {:.2} ms |",
            from + step,
            now / 1024,
            each.as_secs_f64() * 1e3
        );
        memory = now;
    }
    let each_mb = (memory - start) as f64 / 1024.0 / (step * STEPS) as f64;
    let each_cpu = cpu.iter().sum::<Duration>() / STEPS as u32;
    let (first, last) = (cpu.first().copied().unwrap_or_default(), cpu.last().copied().unwrap_or_default());
    let growth = last.as_secs_f64() / first.as_secs_f64();
    println!();
    println!("| a definition | | goal | |");
    println!("|---|---|---|---|");
    let verdicts = [
        ("memory", format!("{each_mb:.3} MB"), format!("< {GOAL_MB} MB"), each_mb < GOAL_MB),
        ("CPU", format!("{each_cpu:.2?}"), format!("< {GOAL_CPU:?}"), each_cpu < GOAL_CPU),
        ("last to first", format!("{growth:.2}"), format!("< {GOAL_GROWTH}"), growth < GOAL_GROWTH),
    ];
    for (what, is, goal, is_met) in &verdicts {
        println!("| {what} | {is} | {goal} | {} |", super::verdict(*is_met));
    }
    println!();
    read_everything(&server, &client, step * STEPS)?;
    match verdicts.iter().all(|(_, _, _, is_met)| *is_met) {
        true => Ok(()),
        false => Err("a goal is missed".into()),
    }
}

fn define_and_use(connection: &mut Connection, index: usize) -> Result<(), pintle_harness::Error> {
    let body = definition::definition(index).to_string();
    let headers = [("content-type", "application/json")];
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = connection.request("POST", path, &headers, body.as_bytes())?;
    if made.status != 201 {
        return Err(made.text().into());
    }
    let path = definition::path_of(index);
    wait_for(&path, PATIENCE, || {
        let answer = connection.request("GET", &path, &[], b"").ok()?;
        (answer.status == 200).then_some(())
    })
}

/// Measures the cost of the documents about all definitions, of the first request and of a repeated one.
fn read_everything(server: &Server, client: &Client, count: usize) -> Result<(), pintle_harness::Error> {
    const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    println!("| read with {count} definitions | size | first | again | memory after |");
    println!("|---|---|---|---|---|");
    let document = format!("/openapi/v3/apis/{}/v1", definition::group_of(0));
    for (path, accept) in [
        ("/openapi/v3", "*/*"),
        (document.as_str(), "application/json"),
        ("/openapi/v2", PROTOBUF),
        ("/openapi/v2", "application/json"),
        ("/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
    ] {
        let mut times = Vec::new();
        let mut size = 0;
        for _ in 0..2 {
            let started = Instant::now();
            let answer =
                client.request("GET", path, &[("accept", accept), ("accept-encoding", "gzip")], b"")?;
            times.push(started.elapsed());
            size = answer.body.len();
        }
        println!(
            "| `{path}` {accept} | {} KB | {:.1?} | {:.1?} | {} MB |",
            size / 1024,
            times.first().copied().unwrap_or_default(),
            times.last().copied().unwrap_or_default(),
            server.memory_kb("VmRSS")? / 1024
        );
    }
    Ok(())
}
