//! Finds dependency cycles of modules. Modules in a cycle can only be understood, tested and moved together, so each
//! cycle is listed with its reason.

use super::modules::{Modules, Uses};
use super::{files, read, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The known cycles and their reasons.
const LIST: &str = "xtask/module-circles.txt";

/// A crate's name and the modules of one of its cycles.
type Circle = (String, BTreeSet<String>);

/// Checks that the list has each cycle with exactly its modules, and no other cycle.
#[test]
fn circles_of_modules_are_listed() {
    let listed = listed();
    let mut wrong = String::new();
    let mut found = BTreeSet::new();
    for (name, file) in crates() {
        let uses = Modules::read(&file).uses();
        for modules in circles(&uses) {
            let circle = (name.clone(), modules);
            if !listed.contains_key(&circle) {
                let nearest = listed.keys().filter(|listed| overlap(listed, &circle) > 0);
                describe(&mut wrong, &circle, nearest.max_by_key(|listed| overlap(listed, &circle)), &uses);
            }
            found.insert(circle);
        }
    }
    for listed in listed.keys().filter(|listed| found.iter().all(|circle| overlap(listed, circle) == 0)) {
        writeln!(wrong, "{}: this circle is gone: {}\n", listed.0, names(&listed.1)).unwrap();
    }
    assert!(wrong.is_empty(), "{LIST} differs from the sources.\n\n{wrong}");
}

/// The crates' names and the files that are their roots.
fn crates() -> Vec<(String, String)> {
    let folders = ["crates", "tests"]
        .map(|folder| files(folder).into_iter().map(move |name| format!("{folder}/{name}")));
    let folders = folders.into_iter().flatten().chain(["xtask".to_owned()]);
    let roots = folders.flat_map(|folder| ["lib.rs", "main.rs"].map(|file| format!("{folder}/src/{file}")));
    let roots = roots.filter(|file| root().join(file).exists());
    roots
        .map(|file| (file.split("/src/").next().unwrap().rsplit('/').next().unwrap().to_owned(), file))
        .collect()
}

/// The strongly connected components of more than one module.
fn circles(uses: &Uses) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|module| (module.as_str(), reached_from(module, uses))).collect();
    let mut circles: Vec<BTreeSet<String>> = Vec::new();
    for (module, others) in &reached {
        let is_mutual = |other: &&&str| reached.get(**other).is_some_and(|back| back.contains(module));
        let circle: BTreeSet<String> =
            others.iter().filter(is_mutual).map(|name| (*name).to_owned()).collect();
        if circle.len() > 1 && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

fn reached_from<'a>(module: &str, uses: &'a Uses) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut pending: Vec<&str> = vec![module];
    while let Some(next) = pending.pop() {
        for used in uses.get(next).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(used.as_str()) {
                pending.push(used);
            }
        }
    }
    reached
}

/// The number of modules that are in both cycles.
fn overlap(one: &Circle, other: &Circle) -> usize {
    if one.0 == other.0 { one.1.intersection(&other.1).count() } else { 0 }
}

/// Writes a cycle in the form of the list, and its differences from the nearest listed cycle.
fn describe(text: &mut String, (name, modules): &Circle, nearest: Option<&Circle>, uses: &Uses) {
    let empty = BTreeSet::new();
    let known = nearest.map_or(&empty, |(_, modules)| modules);
    writeln!(text, "# {name}: new in this circle: {}", names(modules.difference(known))).unwrap();
    writeln!(text, "# no longer in it: {}", names(known.difference(modules))).unwrap();
    for (from, (to, place)) in modules.iter().flat_map(|from| uses[from].iter().map(move |to| (from, to))) {
        if modules.contains(to) && !(known.contains(from) && known.contains(to)) {
            writeln!(text, "# {from} uses {to} ({place})").unwrap();
        }
    }
    writeln!(text, "{name}: to be untangled").unwrap();
    for module in modules {
        writeln!(text, "    {module}").unwrap();
    }
    text.push('\n');
}

fn names<'a>(modules: impl IntoIterator<Item = &'a String>) -> String {
    let names: Vec<&str> = modules.into_iter().map(String::as_str).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// The cycles of the list and their reasons.
fn listed() -> BTreeMap<Circle, String> {
    let mut listed = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let list = read(LIST);
    let lines: Vec<&str> =
        list.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).collect();
    let mut lines = lines.into_iter().peekable();
    while let Some(line) = lines.next() {
        let (name, reason) =
            line.split_once(": ").unwrap_or_else(|| panic!("{LIST}: `crate: reason`, not {line}"));
        let mut modules = BTreeSet::new();
        while let Some(module) = lines.next_if(|line| line.starts_with(' ')) {
            assert!(
                seen.insert((name.to_owned(), module.trim())),
                "{LIST}: {name} has {module} in two circles, or twice"
            );
            modules.insert(module.trim().to_owned());
        }
        assert!(!reason.trim().is_empty(), "{LIST}: {name} has a circle without a reason");
        listed.insert((name.to_owned(), modules), reason.to_owned());
    }
    listed
}

#[test]
fn strongly_connected_modules_are_circles() {
    // Uses, and the cycles that they form.
    let rows =
        [("a>b b>c", ""), ("a>b b>a b>c", "a,b"), ("a>b b>c c>a d>a e>f f>e", "a,b,c e,f"), ("a>a", "")];
    for (edges, expected) in rows {
        let mut uses = Uses::new();
        for (from, to) in edges.split(' ').filter_map(|edge| edge.split_once('>')) {
            uses.entry(from.to_owned()).or_default().insert(to.to_owned(), String::new());
        }
        let circles: Vec<String> =
            circles(&uses).into_iter().map(|circle| Vec::from_iter(circle).join(",")).collect();
        assert_eq!(circles.join(" "), expected, "{edges}");
    }
}
