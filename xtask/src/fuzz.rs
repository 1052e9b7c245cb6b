//! Runs the fuzz targets under libFuzzer, several side by side, and prints what each has covered.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use crate::{task, tools};

/// The fuzz targets, and the dictionary of each.
const TARGETS: [(&str, &str); 35] = [
    ("abac_policies", "json"),
    ("apply", "patch"),
    ("audit_policy", "yaml"),
    ("authorization_config", "yaml"),
    ("cbor_decode", "protobuf"),
    ("cel_expression", "cel"),
    ("certificates", "protobuf"),
    ("compression", "json"),
    ("continue_token", "json"),
    ("definition", "schema"),
    ("field_selector", "query"),
    ("fields_v1", "fields"),
    ("header_blocks", "http2"),
    ("http1_requests", "http1"),
    ("json_decode", "json"),
    ("json_patch", "patch"),
    ("json_path", "jsonpath"),
    ("jwt", "jwt"),
    ("jwt_claims", "jwt"),
    ("label_selector", "query"),
    ("merge_patch", "patch"),
    ("pem_blocks", "pem"),
    ("protobuf_decode", "protobuf"),
    ("quantity", "quantity"),
    ("remote_discovery", "json"),
    ("remote_openapi", "json"),
    ("request_info", "query"),
    ("review_answer", "json"),
    ("snapshot_read", "json"),
    ("spdy_frames", "protobuf"),
    ("strategic_patch", "patch"),
    ("structural_schema", "schema"),
    ("structural_values", "schema"),
    ("websocket_frames", "protobuf"),
    ("yaml_decode", "yaml"),
];

/// The objects that are seeds of the decoders.
const OBJECTS: &str = "crates/machinery/fixtures/api-roundtrip";

/// The part of the time that goes to inputs of up to 3 MB, because bounds depend on the size of the input: one of so
/// many seconds.
const LARGE_SHARE: u64 = 4;

/// Runs the named targets, or all, for a number of seconds each.
///
/// # Errors
/// When a build fails, an argument is unknown, or a target crashes or is slow; the inputs are in `fuzz/artifacts`.
pub(crate) fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let (mut seconds, mut jobs, mut names) =
        (3600, thread::available_parallelism().map_or(1, usize::from), vec![]);
    for arg in args {
        let number = |text: &str| text.parse().map_err(|_| format!("{arg}: not a number"));
        if let Some(value) = arg.strip_prefix("--seconds=") {
            seconds = number(value)?;
        } else if let Some(value) = arg.strip_prefix("--jobs=") {
            jobs = usize::try_from(number(value)?).unwrap_or(1).max(1);
        } else {
            names.push(*arg);
        }
    }
    if let Some(unknown) = names.iter().find(|name| !TARGETS.iter().any(|(target, _)| target == *name)) {
        return Err(format!("unknown fuzz target {unknown}"));
    }
    let binaries = build(root)?;
    let chosen = TARGETS.iter().filter(|(target, _)| names.is_empty() || names.contains(target));
    let (queue, failed) = (Mutex::new(chosen), Mutex::new(Vec::new()));
    println!("{:22} {:>12} {:>8} {:>9} {:>8}", "target", "executions", "edges", "features", "inputs");
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some((target, dictionary)) = queue.lock().ok().and_then(|mut queue| queue.next()) {
                    let fuzzer = Fuzzer { root, binary: binaries.join(target), target, dictionary };
                    if let Err(error) = fuzzer.run(seconds) {
                        eprintln!("{target}: {error}");
                        failed.lock().map(|mut failed| failed.push(*target)).ok();
                    }
                }
            });
        }
    });
    match failed.into_inner().unwrap_or_default() {
        failed if failed.is_empty() => Ok(()),
        failed => Err(format!("failed: {}", failed.join(", "))),
    }
}

/// Builds all targets with the project's compiler, and returns the folder of the binaries. `-s none` leaves out the
/// address sanitizer, which finds little: almost all is safe Rust.
fn build(root: &Path) -> Result<PathBuf, String> {
    let path = tools::cargo_fuzz(root)?;
    let mut command = Command::new(path);
    // The target directory is named, because cargo-fuzz would take the workspace's.
    let directory = root.join("fuzz").join("target");
    command.args(["fuzz", "build", "-s", "none", "--target-dir"]).arg(&directory);
    task::run(command.current_dir(root).env("RUSTC_BOOTSTRAP", "1"))?;
    let host = task::output(Command::new("rustc").args(["--print", "host-tuple"]))?;
    Ok(directory.join(host.trim()).join("release"))
}

struct Fuzzer<'a> {
    root: &'a Path,
    binary: PathBuf,
    target: &'a str,
    dictionary: &'a str,
}

impl Fuzzer<'_> {
    fn run(&self, seconds: u64) -> Result<(), String> {
        let large = seconds / LARGE_SHARE;
        self.search(seconds - large, &["-max_len=32768"])?;
        self.search(large, &["-max_len=3000000", "-len_control=0"])
    }

    /// Searches for some seconds, from the corpus of earlier searches on.
    fn search(&self, seconds: u64, options: &[&str]) -> Result<(), String> {
        let folder = self.root.join("fuzz");
        let fail = |error: std::io::Error| error.to_string();
        let (corpus, artifacts) =
            (folder.join("corpus").join(self.target), folder.join("artifacts").join(self.target));
        fs::create_dir_all(&corpus).map_err(fail)?;
        fs::create_dir_all(&artifacts).map_err(fail)?;
        let log = folder.join("artifacts").join(format!("{}.log", self.target));
        let mut command = Command::new(&self.binary);
        command.arg(&corpus).args(self.seeds()).args(options);
        command.arg(format!(
            "-dict={}",
            folder.join(format!("dictionaries/{}.dict", self.dictionary)).display()
        ));
        command.arg(format!("-artifact_prefix={}/", artifacts.display()));
        command.arg(format!("-max_total_time={seconds}"));
        command.args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]);
        command.stdout(Stdio::null()).stderr(fs::File::create(&log).map_err(fail)?);
        let status = command.status().map_err(fail)?;
        let text = fs::read(&log).map_err(fail)?;
        let text = String::from_utf8_lossy(&text);
        match summary(&text) {
            Some(summary) if status.success() => println!("{:22} {summary}", self.target),
            _ => return Err(format!("{status}, see {}", log.display())),
        }
        Ok(())
    }

    fn seeds(&self) -> Option<PathBuf> {
        let own = self.root.join("fuzz/seeds").join(self.target);
        match self.target {
            _ if own.is_dir() => Some(own),
            "compression" | "json_decode" | "yaml_decode" | "protobuf_decode" => {
                Some(self.root.join(OBJECTS))
            }
            _ => None,
        }
    }
}

/// The figures of libFuzzer's last line and of its final statistics.
fn summary(log: &str) -> Option<String> {
    let executions =
        log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))?.trim();
    let last = log.lines().rev().find(|line| line.contains("\tcov: ") || line.contains(" cov: "))?;
    let after = |name: &str| {
        let value = last.split_whitespace().skip_while(|word| *word != name).nth(1)?;
        value.split('/').next()
    };
    let (edges, features, inputs) = (after("cov:")?, after("ft:")?, after("corp:")?);
    Some(format!("{executions:>12} {edges:>8} {features:>9} {inputs:>8}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_run_with_a_dictionary_that_exists() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let (_, binaries) = manifest.split_once("[[bin]]").unwrap();
        let mut declared: Vec<&str> = binaries
            .lines()
            .filter_map(|line| line.strip_prefix("name = "))
            .map(|name| name.trim_matches('"'))
            .collect();
        declared.sort_unstable();
        assert_eq!(TARGETS.map(|(target, _)| target).as_slice(), declared);
        for (target, dictionary) in TARGETS {
            assert!(folder.join(format!("dictionaries/{dictionary}.dict")).exists(), "{target}");
        }
    }

    #[test]
    fn figures_are_read_from_the_log() {
        let log = "#2\tINITED cov: 10 ft: 12 corp: 1/1b exec/s: 0\n\
                   #258852\tDONE   cov: 976 ft: 3169 corp: 532/62Kb lim: 841 exec/s: 2139 rss: 29Mb\n\
                   Done 258852 runs in 121 second(s)\nstat::number_of_executed_units: 258852\n";
        let words: Vec<String> = summary(log).unwrap().split_whitespace().map(str::to_owned).collect();
        assert_eq!(words, ["258852", "976", "3169", "532"]);
        assert_eq!(summary("ERROR: libFuzzer: deadly signal"), None);
    }
}
