//! Replays the recorded conversations with the reference server against Pintle.
//!
//! Each area gets a fresh server, since scenarios use fixed names. A folder with the flags of its server is an area of its
//! own, and those are replayed one after the other: they share the port of the webhook that their flags name, and some
//! count seconds. Areas whose scenarios have servers that API objects name are replayed in a network namespace each, since
//! those cannot have loopback addresses. `conformance-floors.json` has the percentage of an area's steps that must pass:
//! `--bless` raises it when more pass, and it is never lowered without a reason in the commit. A scenario whose kubelet is a
//! program that `FAKEKUBELET` names has a floor of its own, since it is left out where there is no such program.
//!
//! `--compare` replays on several engines and requires the same steps to pass on all of them: the engine behind the
//! [`Storage`](../../crates/storage/src/lib.rs) trait must not be observable.

mod schedule;
mod server_flags;
mod streaming;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pintle_harness::{Config, Etcd, EtcdConfig, MASTER_TOKEN, Server, in_own_network, is_in_own_network};
use serde_json::Value;

use crate::{shared, task, tools};

const FLOORS: &str = "conformance-floors.json";

/// The command line.
struct Request<'a> {
    bless: bool,
    debug: bool,
    /// The engines to replay on; several engines are compared.
    engines: Vec<Engine>,
    areas: Vec<&'a str>,
    /// The binary, in a process that replays one area in a network of its own: it was built before.
    binary: Option<PathBuf>,
}

/// The storage engine of the replayed server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Engine {
    Memory,
    Embedded,
    Etcd,
}

impl Engine {
    fn parse(name: &str) -> Result<Engine, String> {
        match name {
            "memory" => Ok(Engine::Memory),
            "embedded" => Ok(Engine::Embedded),
            "etcd" => Ok(Engine::Etcd),
            _ => Err(format!("unknown engine {name}; there are memory, embedded and etcd")),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Engine::Memory => "memory",
            Engine::Embedded => "embedded",
            Engine::Etcd => "etcd",
        }
    }
}

/// The number of steps of an area, or of a part of it, and of those that passed.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: u64,
}

impl Count {
    fn total(self) -> u64 {
        self.passed + self.failed
    }

    /// Rounded down, so that a floor set from it is reached.
    fn percent(self) -> u64 {
        (self.passed * 100).checked_div(self.total()).unwrap_or(0)
    }
}

/// The result of an area: all its steps, and those of scenarios without server-side apply and custom resources.
#[derive(Clone)]
struct Outcome {
    all: Count,
    without_apply: Count,
    /// The count of each scenario, by which engines are compared.
    scenarios: BTreeMap<String, Count>,
}

impl Outcome {
    fn of(scenarios: BTreeMap<String, Count>) -> Outcome {
        let later =
            |name: &str| ["apply", "managed", "custom-resource"].iter().any(|word| name.contains(word));
        let sum = |counts: &mut dyn Iterator<Item = &Count>| {
            counts.fold(Count::default(), |sum, count| Count {
                passed: sum.passed + count.passed,
                failed: sum.failed + count.failed,
            })
        };
        let all = sum(&mut scenarios.values());
        let others = &mut scenarios.iter().filter(|(name, _)| !later(name)).map(|(_, count)| count);
        let without_apply = sum(others);
        Outcome { all, without_apply, scenarios }
    }

    /// Of each scenario, the replay that passed more steps.
    fn best(&self, again: &Outcome) -> Outcome {
        let mut scenarios = self.scenarios.clone();
        for (name, count) in &again.scenarios {
            let best = scenarios.entry(name.clone()).or_default();
            if count.passed > best.passed {
                *best = *count;
            }
        }
        Outcome::of(scenarios)
    }

    /// The count of the area, and those of the scenarios with floors of their own, by name.
    fn counts(&self, area: &str, apart: &[String]) -> BTreeMap<String, Count> {
        let mut rest = self.all;
        let mut counts = BTreeMap::new();
        for (name, count) in self.scenarios.iter().filter(|(name, _)| apart.contains(name)) {
            rest = Count { passed: rest.passed - count.passed, failed: rest.failed - count.failed };
            counts.insert(name.clone(), *count);
        }
        counts.insert(area.to_owned(), rest);
        counts
    }
}

pub(crate) fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let request = parse(args)?;
    let scenarios = shared::directory(root).join("conformance/scenarios");
    if !scenarios.is_dir() {
        return Err(format!("{}: there are no recorded conversations", scenarios.display()));
    }
    let known = areas(&scenarios)?;
    let mut floors = floors(root)?;
    let areas: Vec<&str> = if request.areas.is_empty() {
        let (with_floor, without): (Vec<&str>, Vec<&str>) =
            known.iter().map(String::as_str).partition(|area| floors.contains_key(*area));
        if !without.is_empty() {
            println!("LEFT OUT, since {FLOORS} has no floor for them: {}", without.join(", "));
        }
        with_floor
    } else {
        request.areas.clone()
    };
    if areas.is_empty() {
        return Err(format!("{FLOORS} names no area"));
    }
    if let Some(unknown) = areas.iter().find(|area| !known.iter().any(|known| known == *area)) {
        return Err(format!("no such area: {unknown}; there are {}", known.join(", ")));
    }
    let binary = match &request.binary {
        Some(binary) => binary.clone(),
        None => task::build_server(root, !request.debug)?,
    };
    let python_path = tools::python(root)?;
    let etcd = match request.engines.contains(&Engine::Etcd) {
        true => Some(tools::etcd(root)?.current),
        false => None,
    };
    let replay =
        |engine| Replay { root, engine, binary: &binary, etcd: etcd.as_deref(), python_path: &python_path };
    let replays: Vec<Replay<'_>> = request.engines.iter().copied().map(replay).collect();
    let mut results = replay_all(&replays, &areas)?;
    if request.binary.is_some() {
        return Ok(());
    }
    // The floors are for the last replay of an area, engines are compared by the best one.
    let mut best = results.clone();
    for _ in 0..REPLAYS_OF_DIFFERENT {
        let different = areas_that_differ(&best);
        if different.is_empty() {
            break;
        }
        println!("the engines differ, replayed again: {}", different.join(", "));
        let again = replay_all(&replays, &different)?;
        for (((_, outcomes), (_, best)), (_, replayed)) in results.iter_mut().zip(&mut best).zip(again) {
            for (area, outcome) in &replayed {
                if let Some(best) = best.get_mut(area) {
                    *best = best.best(outcome);
                }
            }
            outcomes.extend(replayed);
        }
    }
    let details = task::target_directory(root).join("conformance");
    println!("what differs: {}/*.log", details.display());
    let (Some((_, first)), Some(((engine, best), others))) = (results.first(), best.split_first()) else {
        return Err("no engine to replay on".to_owned());
    };
    for (other, outcomes) in others {
        compare((*engine, best), (*other, outcomes))?;
    }
    let mut counts = BTreeMap::new();
    for (area, outcome) in first {
        let apart = streaming::scenarios(area, &scenarios.join(area))?;
        counts.extend(outcome.counts(area, &apart));
    }
    judge(root, &counts, &mut floors, request.bless)
}

/// Whether the engines are compared in an area. They are not in the area of the transport, whose steps read connections
/// for fractions of a second, in those of aggregation and connections, whose servers come and go by the clock, and in those of admission,
/// where webhooks tell whether a write began with an outdated guess of its object: on a busy machine the cache may not have
/// the write of the step before.
fn is_compared(area: &str) -> bool {
    let by_the_clock = ["admission", "aggregation", "connections"];
    area != "serving" && !by_the_clock.iter().any(|prefix| area.starts_with(prefix))
}

/// How often an area is replayed again on all engines because they differ. A step can fail on either by the clock: the
/// column of an age shows another second when the replay crosses one, as it does with the reference. Engines are compared by
/// the best replay of each scenario: an area has so many such columns that no single replay may pass them all, and an engine
/// that answers differently does so each time.
const REPLAYS_OF_DIFFERENT: usize = 2;

/// A scenario of which two engines passed different numbers of steps.
struct Difference<'a> {
    area: &'a str,
    scenario: &'a str,
    passed: u64,
    passed_by_other: u64,
}

/// The scenarios of which two engines passed different numbers of steps.
fn differences<'a>(
    outcomes: &'a BTreeMap<&'a str, Outcome>,
    others: &BTreeMap<&str, Outcome>,
) -> Vec<Difference<'a>> {
    let mut different = Vec::new();
    for (area, outcome) in outcomes.iter().filter(|(area, _)| is_compared(area)) {
        let of_other = others.get(area).map(|outcome| &outcome.scenarios);
        for (scenario, count) in &outcome.scenarios {
            let other_count =
                of_other.and_then(|scenarios| scenarios.get(scenario)).copied().unwrap_or_default();
            if *count != other_count {
                different.push(Difference {
                    area,
                    scenario,
                    passed: count.passed,
                    passed_by_other: other_count.passed,
                });
            }
        }
    }
    different
}

/// The areas in which an engine differs from the first one.
fn areas_that_differ<'a>(results: &[(Engine, BTreeMap<&'a str, Outcome>)]) -> Vec<&'a str> {
    let Some(((_, first), others)) = results.split_first() else {
        return Vec::new();
    };
    let areas = first.keys().copied();
    areas
        .filter(|area| {
            others.iter().any(|(_, other)| differences(first, other).iter().any(|found| found.area == *area))
        })
        .collect()
}

/// Fails unless two engines passed the same number of steps of every scenario.
fn compare(
    (engine, outcomes): (Engine, &BTreeMap<&str, Outcome>),
    (other, others): (Engine, &BTreeMap<&str, Outcome>),
) -> Result<(), String> {
    let different = differences(outcomes, others);
    let told = different.iter().map(|Difference { area, scenario, passed, passed_by_other }| {
        let (engine, other) = (engine.name(), other.name());
        format!("{area}/{scenario}: {passed} steps pass on {engine}, {passed_by_other} on {other}")
    });
    if different.is_empty() { Ok(()) } else { Err(told.collect::<Vec<_>>().join("\n")) }
}

fn parse<'a>(args: &[&'a str]) -> Result<Request<'a>, String> {
    let mut request = Request {
        bless: false,
        debug: false,
        engines: vec![Engine::Memory],
        areas: Vec::new(),
        binary: None,
    };
    for arg in args {
        match *arg {
            "--bless" => request.bless = true,
            "--debug" => request.debug = true,
            arg => match arg.split_once('=') {
                Some(("--storage", engines)) => {
                    request.engines = engines.split(',').map(Engine::parse).collect::<Result<_, _>>()?;
                }
                Some((BINARY, binary)) => request.binary = Some(binary.into()),
                _ if arg.starts_with('-') => return Err(format!("unknown flag {arg}")),
                _ => request.areas.push(arg),
            },
        }
    }
    Ok(request)
}

/// The flag of [`Request::binary`].
const BINARY: &str = "--binary";

/// The folders of scenarios: those in the given folder, and those with flags of their own in them.
fn areas(scenarios: &Path) -> Result<Vec<String>, String> {
    let mut areas = Vec::new();
    for area in folders(scenarios)? {
        let inner = folders(&scenarios.join(&area))?.into_iter();
        let inner = inner.map(|inner| format!("{area}/{inner}"));
        areas.extend(inner.filter(|inner| scenarios.join(inner).join(server_flags::FILE).is_file()));
        areas.push(area);
    }
    Ok(areas)
}

fn folders(directory: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut folders: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    folders.sort();
    Ok(folders)
}

/// The outcomes of the areas on each engine.
type Results<'a> = Vec<(Engine, BTreeMap<&'a str, Outcome>)>;

/// The inputs of the replays.
struct Replay<'a> {
    root: &'a Path,
    engine: Engine,
    binary: &'a Path,
    /// The etcd binary, if the engine is etcd.
    etcd: Option<&'a Path>,
    python_path: &'a Path,
}

/// Replays the areas on each engine, and prints their counts. Areas with flags of their own and without a network of
/// their own are replayed one after the other, on all engines; the others at the same time.
fn replay_all<'a>(replays: &[Replay<'_>], areas: &[&'a str]) -> Result<Results<'a>, String> {
    let (mut in_order, mut batches) = (Vec::new(), Vec::new());
    let mut areas = areas.to_vec();
    // The largest first, so that no long one begins when all others are over.
    areas.sort_by_cached_key(|area| Reverse(replays.first().map(|replay| size(&replay.folder(area)))));
    for area in &areas {
        for replay in replays {
            let folder = replay.folder(area);
            match folder.join(server_flags::FILE).is_file() && !has_peers(&folder)? {
                true => in_order.push((replay, *area)),
                false => batches.push(vec![(replay, *area)]),
            }
        }
    }
    batches.insert(0, in_order);
    let replayed = schedule::run(batches, |(replay, area)| (replay.engine, area, replay.area(area)))?;
    let mut results: Results<'a> = replays.iter().map(|replay| (replay.engine, BTreeMap::new())).collect();
    for (replay, (_, outcomes)) in replays.iter().zip(&mut results) {
        for (_, area, outcome) in replayed.iter().filter(|(engine, ..)| *engine == replay.engine) {
            let outcome = outcome.clone()?;
            replay.print(area, &outcome)?;
            outcomes.insert(*area, outcome);
        }
    }
    Ok(results)
}

impl Replay<'_> {
    fn print(&self, area: &str, outcome: &Outcome) -> Result<(), String> {
        println!(
            "{area} on {}: {} of {} steps as recorded ({}%); without server-side apply and custom resources {} of {} \
             ({}%)",
            self.engine.name(),
            outcome.all.passed,
            outcome.all.total(),
            outcome.all.percent(),
            outcome.without_apply.passed,
            outcome.without_apply.total(),
            outcome.without_apply.percent(),
        );
        let apart = streaming::scenarios(area, &self.folder(area))?;
        if !apart.is_empty() && !streaming::has_program() {
            println!("{}", streaming::left_out(&apart));
        }
        for (name, count) in outcome.counts(area, &apart).iter().filter(|(name, _)| apart.contains(name)) {
            println!("{name}: {} of {} steps of these ({}%)", count.passed, count.total(), count.percent());
        }
        Ok(())
    }

    /// The folder with the scenarios of an area.
    fn folder(&self, area: &str) -> PathBuf {
        shared::directory(self.root).join("conformance/scenarios").join(area)
    }

    /// Replays an area and counts the steps that passed.
    fn area(&self, area: &str) -> Result<Outcome, String> {
        let details = task::target_directory(self.root).join("conformance");
        fs::create_dir_all(&details).map_err(|error| error.to_string())?;
        let name = format!("{}-{}", area.replace('/', "-"), self.engine.name());
        let result = details.join(format!("{name}.json"));
        // Without this, the result of an earlier run could be mistaken for that of this run.
        let _ = fs::remove_file(&result);
        let log = details.join(format!("{name}.log"));
        let output = match has_peers(&self.folder(area))? && !is_in_own_network() {
            true => self.replay_in_own_network(area),
            false => self.replay(area, &details, &result, &log),
        }?;
        let text =
            fs::read_to_string(&result).map_err(|error| format!("{area}: no result ({error}):\n{output}"))?;
        let result: Value = serde_json::from_str(&text).map_err(|error| format!("{area}: {error}"))?;
        count(area, &result)
    }

    /// Replays an area by another process of this program, which leaves the result. Returns its output.
    fn replay_in_own_network(&self, area: &str) -> Result<String, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let output = in_own_network(program)
            .args(["conformance", area, &format!("--storage={}", self.engine.name())])
            .arg(format!("{BINARY}={}", self.binary.display()))
            .current_dir(self.root)
            .output()
            .map_err(|error| format!("{area}: unshare: {error}"))?;
        Ok(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
    }

    /// Replays an area; `replay.py` writes `result`. Returns its errors.
    fn replay(&self, area: &str, details: &Path, result: &Path, log: &Path) -> Result<String, String> {
        let mut config = Config::new(self.binary)
            .flag("--service-cluster-ip-range=10.0.0.0/24")
            .flag("--advertise-address=10.20.30.40");
        let copies = details.join(self.engine.name());
        let (flags, folder) = server_flags::of(area, &self.folder(area), &copies)?;
        for flag in flags {
            config = config.flag(flag);
        }
        if folder.starts_with(&copies) && !streaming::has_program() {
            streaming::remove(area, &folder)?;
        }
        // Dropped, and so killed, at the end of the replay.
        let etcd = match self.etcd {
            Some(etcd) if self.engine == Engine::Etcd => {
                Some(Etcd::launch(EtcdConfig::new(etcd)).map_err(|error| error.to_string())?)
            }
            _ => None,
        };
        config = match &etcd {
            Some(etcd) => config.flag(format!("--etcd-servers={}", etcd.urls())),
            None => config.flag(format!("--storage-backend={}", self.engine.name())),
        };
        let mut server = Server::start(config).map_err(|error| error.to_string())?;
        let conformance = shared::directory(self.root).join("conformance");
        let output = Command::new("python3")
            .env("PYTHONPATH", self.python_path)
            .arg(conformance.join("replay.py"))
            .args(["check", "--without", "managedFields", "--token", MASTER_TOKEN, "--server", &server.url()])
            .arg("--json")
            .arg(result)
            .arg(folder)
            .output()
            .map_err(|error| format!("python3: {error}"))?;
        fs::write(log, &output.stdout).map_err(|error| error.to_string())?;
        if !server.is_running() {
            let log = server.log().map_err(|error| error.to_string())?;
            return Err(format!("{area}: the server died; its log:\n{log}"));
        }
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// The length of the files in the folder, in bytes.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// Whether scenarios of the folder have servers that API objects name.
fn has_peers(folder: &Path) -> Result<bool, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)?.filter_map(Result::ok) {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = fs::read_to_string(&path).map_err(failed)?;
            if text.lines().any(|line| line.trim() == "peers:") {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn count(area: &str, result: &Value) -> Result<Outcome, String> {
    let scenarios = result.as_object().ok_or_else(|| format!("{area}: the result is no object"))?;
    let scenarios = scenarios.iter().map(|(name, scenario)| {
        let number = |key: &str| scenario.get(key).and_then(Value::as_u64).unwrap_or_default();
        let differences = scenario.get("diffs").and_then(Value::as_object).into_iter().flatten();
        let ticks = differences.filter(|(_, found)| is_tick(found)).count() as u64;
        (name.clone(), Count { passed: number("passed") + ticks, failed: number("failed") - ticks })
    });
    let outcome = Outcome::of(scenarios.collect());
    if outcome.all.total() == 0 {
        return Err(format!("{area}: no step was replayed"));
    }
    Ok(outcome)
}

/// Whether all differences of a step are ages in a table, of objects that became a second older between their creation
/// and the request. They depend on the clock alone.
fn is_tick(differences: &Value) -> bool {
    let age = |text: &str| text.trim_matches('"').strip_suffix('s')?.parse::<u64>().ok();
    let is_next_second = |difference: &str| {
        let (path, values) = difference.split_once(": want ")?;
        let (wanted, got) = values.split_once(" got ")?;
        Some(path.contains(".cells[") && age(got)? == age(wanted)? + 1)
    };
    let differences = differences.as_array().map(Vec::as_slice).unwrap_or_default();
    !differences.is_empty()
        && differences.iter().all(|found| found.as_str().and_then(is_next_second).unwrap_or_default())
}

fn floors(root: &Path) -> Result<BTreeMap<String, u64>, String> {
    let text = fs::read_to_string(root.join(FLOORS)).map_err(|error| format!("{FLOORS}: {error}"))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("{FLOORS}: {error}"))?;
    let object = value.as_object().ok_or_else(|| format!("{FLOORS}: not an object"))?;
    object
        .iter()
        .map(|(area, floor)| Some((area.clone(), floor.as_u64()?)))
        .collect::<Option<_>>()
        .ok_or_else(|| format!("{FLOORS}: a floor is a whole number of percents"))
}

/// Compares the results with the floors, or raises the floors.
fn judge(
    root: &Path,
    outcomes: &BTreeMap<String, Count>,
    floors: &mut BTreeMap<String, u64>,
    bless: bool,
) -> Result<(), String> {
    let mut below = Vec::new();
    for (area, count) in outcomes {
        let floor = floors.get(area).copied().unwrap_or(0);
        if count.percent() < floor {
            below.push(format!("{area}: {}% of the steps pass, the floor is {floor}%", count.percent()));
        } else if bless {
            floors.insert(area.clone(), count.percent());
        }
    }
    if bless {
        let text = serde_json::to_string_pretty(&floors).map_err(|error| error.to_string())?;
        fs::write(root.join(FLOORS), text + "\n").map_err(|error| format!("{FLOORS}: {error}"))?;
    }
    if below.is_empty() { Ok(()) } else { Err(below.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(scenarios: &[(&str, u64, u64)]) -> Outcome {
        let counts = scenarios
            .iter()
            .map(|(name, passed, failed)| ((*name).to_owned(), Count { passed: *passed, failed: *failed }));
        Outcome::of(counts.collect())
    }

    fn compared(first: Outcome, other: Outcome) -> Result<(), String> {
        let by_area = |outcome| BTreeMap::from([("core", outcome)]);
        compare((Engine::Embedded, &by_area(first)), (Engine::Etcd, &by_area(other)))
    }

    #[test]
    fn ages_may_be_a_second_older_and_nothing_else() {
        let check = |differences: &[&str], passed: u64| {
            let scenario = serde_json::json!({"passed": 1, "failed": 1, "diffs": {"table": differences}});
            let outcome = count("core", &serde_json::json!({"a": scenario})).expect("an outcome");
            assert_eq!((outcome.all.passed, outcome.all.total()), (passed, 2), "{differences:?}");
        };
        let age = r#"body.rows[0].cells[2]: want "0s" got "1s""#;
        check(&[age], 2);
        check(&[age, r#"body.rows[1].cells[2]: want "0s" got "1s""#], 2);
        check(&[age, "body.kind: want \"A\" got \"B\""], 1);
        check(&[r#"body.rows[0].cells[2]: want "0s" got "2s""#], 1);
        check(&[r#"body.rows[0].cells[2]: want "1s" got "0s""#], 1);
        check(&[r#"body.spec.ttl: want "0s" got "1s""#], 1);
        check(&[r#"body.rows[0].cells[4]: want "324d" got "329d""#], 1);
        check(&[], 1);
    }

    #[test]
    fn a_step_that_fails_by_the_clock_is_no_difference() {
        let embedded = outcome(&[("a", 9, 1), ("b", 10, 0)]).best(&outcome(&[("a", 10, 0), ("b", 9, 1)]));
        assert!(embedded.all == Count { passed: 20, failed: 0 }, "the best of each scenario");
        compared(embedded, outcome(&[("a", 10, 0), ("b", 10, 0)])).expect("no difference");
    }

    #[test]
    fn a_step_that_fails_each_time_on_one_engine_is_a_difference() {
        let etcd = outcome(&[("a", 9, 1), ("b", 10, 0)]).best(&outcome(&[("a", 9, 1), ("b", 10, 0)]));
        let told = compared(outcome(&[("a", 10, 0), ("b", 10, 0)]), etcd).expect_err("a difference");
        assert_eq!(told, "core/a: 10 steps pass on embedded, 9 on etcd");
    }
}
