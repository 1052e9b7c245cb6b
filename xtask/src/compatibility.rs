//! Compares COMPATIBILITY.md with the reference's flags, admission plugins and feature gates, and with those of the server.
//!
//! The page lists names in tables under fixed headings, in backticks in the first cell of a row. A name that is listed and
//! not missing is an error, and so is a name that is missing and not listed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use pintle_admission::plugins::{Declaration, PLUGINS};
use pintle_feature_gates::{Gate, MinorVersion, Stage, Support};
use serde_json::Value;

use crate::{shared, task};

const PAGE: &str = "COMPATIBILITY.md";
const OWN_FLAGS: &str = "Flags that kube-apiserver does not list";
const GATES: &str = "Feature gates with both values";
const FIXED_GATES: &str = "Feature gates with one value";
/// Flags with a default of this server's own.
const OTHER_DEFAULTS: [&str; 5] =
    ["allow-privileged", "authorization-mode", "cert-dir", "service-cluster-ip-range", "storage-media-type"];
/// Gates that the reference's build has beyond Kubernetes.
const GATES_OF_A_DISTRIBUTION: [&str; 3] =
    ["MinimumKubeletVersion", "RouteExternalCertificate", "StoragePerformantSecurityPolicy"];

type Names = BTreeSet<String>;

pub(crate) fn run(root: &Path) -> Result<(), String> {
    let path = root.join(PAGE);
    let page = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let server = task::build_server(root, false)?;
    let mut differences = flags(root, &page, &server)?;
    differences.extend(admission_plugins(root)?);
    differences.extend(feature_gates(root, &page)?);
    if !differences.is_empty() {
        return Err(format!("{PAGE} and the server differ:\n{}", differences.join("\n")));
    }
    println!("{PAGE} names the flags, admission plugins and feature gates that differ");
    Ok(())
}

fn flags(root: &Path, page: &str, server: &Path) -> Result<Vec<String>, String> {
    let reference: Names = members(&reference(root, "flags.json")?)?.keys().cloned().collect();
    let help = task::output(Command::new(server).arg("--help"))?;
    let accepted = flags_of(&help);
    let listed = |heading| -> Result<Names, String> {
        let names = first_cells(page, heading)?.into_keys();
        Ok(names.map(|name| name.trim_start_matches("--").to_owned()).collect())
    };
    let refused = refused_flags(root, &accepted, server)?;
    let own = accepted.difference(&reference).cloned().collect();
    let absent = reference.difference(&accepted);
    let mut differences: Vec<String> = absent.map(|name| format!("  --{name} is not accepted")).collect();
    differences.extend(compare(OWN_FLAGS, &listed(OWN_FLAGS)?, &own));
    differences.extend(refused);
    differences.extend(defaults(root, &help)?);
    Ok(differences)
}

/// The flags whose default the help shows in another form than the reference, except those of [`OTHER_DEFAULTS`].
fn defaults(root: &Path, help: &str) -> Result<Vec<String>, String> {
    let reference = reference(root, "flags.json")?;
    let mut differences = Vec::new();
    for (name, facts) in
        members(&reference)?.iter().filter(|(name, _)| !OTHER_DEFAULTS.contains(&name.as_str()))
    {
        let default = facts.get("default").and_then(Value::as_str).filter(|default| *default != "[]");
        let expected = default.map(|default| match facts.get("type").and_then(Value::as_str) {
            Some("string") => format!("(default \"{default}\")"),
            _ => format!("(default {default})"),
        });
        let flag = format!("--{name}");
        let is_of_flag = |line: &&str| line.split_whitespace().take(2).any(|word| word == flag);
        let line = help.lines().find(is_of_flag).unwrap_or_default();
        let shown = line.find("(default ").and_then(|at| line.get(at..));
        if shown != expected.as_deref() {
            differences.push(format!("  --{name} shows {shown:?}, the reference {expected:?}"));
        }
    }
    Ok(differences)
}

/// The flags of the reference that the server refuses with a value of their type.
fn refused_flags(root: &Path, accepted: &Names, server: &Path) -> Result<Vec<String>, String> {
    let reference = reference(root, "flags.json")?;
    let mut refused = Vec::new();
    for (name, facts) in members(&reference)?.iter().filter(|(name, _)| accepted.contains(*name)) {
        let kind = facts.get("type").and_then(Value::as_str).unwrap_or_default();
        let default = facts.get("default").and_then(Value::as_str).filter(|default| *default != "[]");
        let value = match (name.as_str(), default, kind) {
            ("help" | "version", ..) => continue,
            (_, Some(default), _) => default.trim_matches(['[', ']']),
            ("etcd-servers-overrides", ..) => "/pods#http://127.0.0.1:1",
            ("watch-cache-sizes", ..) => "pods#1",
            ("storage-backend", ..) => "etcd3",
            ("show-hidden-metrics-for-version", ..) => "1.35",
            (.., "bool") => "true",
            (.., "int" | "float32" | "float" | "quantity" | "Level") => "1",
            (.., "duration") => "1s",
            (.., "ip") => "127.0.0.1",
            (.., "namedCertKey") => "a,b",
            (.., "int32Slice") => "23",
            (.., "mapStringString" | "stringToString") => "api/all=true",
            (.., "colonSeparatedMultimapStringString") => "kube:AllAlpha=false",
            (.., "pattern=N,...") => "a=1",
            _ => "x",
        };
        let spellings = [format!("--{name}={value}"), format!("--{}={value}", name.replace('-', "_"))];
        for spelling in spellings {
            if let Err(error) = task::output(Command::new(server).args([&spelling, "--version"])) {
                refused.push(format!("  {spelling} is refused: {error}"));
            }
        }
    }
    Ok(refused)
}

/// The long flags in a help text: `      --name <VALUE>`, or `  -n, --name`.
fn flags_of(help: &str) -> Names {
    let flag = |line: &str| {
        let words = line.split_whitespace().take(2);
        let mut names = words.filter_map(|word| word.strip_prefix("--"));
        let is_name = |character: char| character.is_ascii_alphanumeric() || character == '-';
        let name = names.next()?.split(|character| !is_name(character)).next()?;
        line.trim_start().starts_with('-').then(|| name.to_owned())
    };
    help.lines().filter_map(flag).collect()
}

fn admission_plugins(root: &Path) -> Result<Vec<String>, String> {
    let reference = reference(root, "admission-plugins.json")?;
    let order = strings(&reference, "order")?;
    if !order.iter().eq(PLUGINS.iter().map(|plugin| plugin.name)) {
        return Err("the names of admission plugins differ from those of the reference".to_owned());
    }
    let names_of = |chosen: fn(&Declaration) -> bool| -> Names {
        PLUGINS.iter().filter(|plugin| chosen(plugin)).map(|plugin| plugin.name.to_owned()).collect()
    };
    let by_default: Names = strings(&reference, "enabledByDefault")?.into_iter().collect();
    let mut differences = Vec::new();
    for name in by_default.symmetric_difference(&names_of(|plugin| plugin.is_default)) {
        differences.push(format!("  {name} is on by default in one of the two servers only"));
    }
    Ok(differences)
}

fn feature_gates(root: &Path, page: &str) -> Result<Vec<String>, String> {
    let reference = reference(root, "feature-gates.json")?;
    let mut differences = Vec::new();
    for (name, facts) in members(&reference)? {
        if GATES_OF_A_DISTRIBUTION.contains(&name.as_str()) {
            continue;
        }
        let Ok(gate) = name.parse::<Gate>() else {
            differences.push(format!("  the server does not know the gate {name}"));
            continue;
        };
        let stage = facts.get("stage").and_then(Value::as_str).unwrap_or_default();
        let default = facts.get("default").and_then(Value::as_bool).unwrap_or_default();
        let expected = format!("{}, {}", stage.to_lowercase(), if default { "on" } else { "off" });
        if state(gate) != expected {
            differences.push(format!("  {name}: {} here, {expected} in the reference", state(gate)));
        }
    }
    let can_be_set = |gate: &&Gate| !gate.spec(MinorVersion::BINARY).locked;
    let with = |support: Support| Gate::ALL.iter().filter(move |gate| gate.support() == support);
    let names = |gates: Vec<&Gate>| -> Names { gates.iter().map(|gate| gate.name().to_owned()).collect() };
    let listed = first_cells(page, GATES)?;
    for (name, cell) in &listed {
        let gate = name.parse::<Gate>().ok().map(state).unwrap_or_default();
        if gate != *cell {
            differences.push(format!("  {name}: the page says {cell:?}, the server {gate:?}"));
        }
    }
    let both = names(with(Support::Both).filter(can_be_set).collect());
    differences.extend(compare(GATES, &listed.into_keys().collect(), &both));
    let fixed = names(with(Support::DefaultOnly).filter(can_be_set).collect());
    let listed = first_cells(page, FIXED_GATES)?.into_keys().collect();
    differences.extend(compare(FIXED_GATES, &listed, &fixed));
    Ok(differences)
}

/// The stage and default of a gate, as the page has them: `beta, on`.
fn state(gate: Gate) -> String {
    let spec = gate.spec(MinorVersion::BINARY);
    let stage = if spec.stage == Stage::GA { "stable".to_owned() } else { spec.stage.name().to_lowercase() };
    format!("{stage}, {}", if spec.default { "on" } else { "off" })
}

/// The names in backticks in the first cells of the table under a heading, each with the row's second cell.
fn first_cells(page: &str, heading: &str) -> Result<BTreeMap<String, String>, String> {
    let title = format!("### {heading}");
    let section = page.lines().skip_while(|line| *line != title).skip(1);
    let rows = section.take_while(|line| !line.starts_with('#')).filter_map(|line| line.strip_prefix('|'));
    let mut names = BTreeMap::new();
    for row in rows {
        let mut cells = row.split('|').map(str::trim);
        let (first, second) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        for name in first.split('`').skip(1).step_by(2) {
            if names.insert(name.to_owned(), second.to_owned()).is_some() {
                return Err(format!("{PAGE}: {name} stands twice under {title:?}"));
            }
        }
    }
    match names.is_empty() {
        true => Err(format!("{PAGE}: no names under {title:?}")),
        false => Ok(names),
    }
}

fn compare(heading: &str, listed: &Names, actual: &Names) -> Vec<String> {
    let wrong = listed.difference(actual).map(|name| format!("  {heading}: {name} is listed by mistake"));
    let missing = actual.difference(listed).map(|name| format!("  {heading}: {name} is not listed"));
    wrong.chain(missing).collect()
}

fn reference(root: &Path, file: &str) -> Result<Value, String> {
    let text = shared::read(root, &format!("reference/{file}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))
}

fn members(value: &Value) -> Result<&serde_json::Map<String, Value>, String> {
    value.as_object().ok_or_else(|| "the reference's facts are no object".to_owned())
}

fn strings(value: &Value, member: &str) -> Result<Vec<String>, String> {
    let items = value.get(member).and_then(Value::as_array).ok_or_else(|| format!("there is no {member}"))?;
    Ok(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Names {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn flags_are_read_from_a_help_text() {
        let help = "Options:\n      --etcd-prefix <PREFIX>\n          see --data-dir\n      --anonymous-auth[=<BOOL>]\n  \
                    -v, --v <N>\n  -h, --help\n          Print help\n";
        assert_eq!(flags_of(help), names(&["etcd-prefix", "anonymous-auth", "v", "help"]));
    }

    #[test]
    fn names_are_read_from_the_first_cells_of_one_section() {
        let page =
            "### A\n\ntext `x`\n\n| name | why |\n|---|---|\n| `a`, `b` | as `c` |\n\n## B\n\n| `d` | |\n";
        let cells = first_cells(page, "A").unwrap();
        assert_eq!(cells, [("a", "as `c`"), ("b", "as `c`")].map(|(a, b)| (a.into(), b.into())).into());
        assert!(first_cells(page, "C").is_err());
        assert!(first_cells("### A\n| `a` |\n| `a` |\n", "A").is_err());
    }

    #[test]
    fn differences_are_told_in_both_directions() {
        let told = compare("H", &names(&["a", "b"]), &names(&["b", "c"]));
        assert_eq!(told, ["  H: a is listed by mistake", "  H: c is not listed"]);
        assert!(compare("H", &names(&["a"]), &names(&["a"])).is_empty());
    }
}
