//! Reads the modules of a crate and the dependencies between them.
//!
//! A module is a file; an inline module belongs to its file. A module uses another one if its code names an item that the other
//! one defines, in a `use` or in a path. Names are followed through re-exports to the module that defines
//! them, so that `use crate::Store` is a use of `crate::store`, not of the crate's root.
//!
//! - `use crate::store;` alone is no use: the paths that begin with `store` are.
//! - `mod child;` and `pub use child::Name` are no uses: a parent may declare and re-export its children. A parent uses a child
//!   if its own code names an item of the child, re-exported or not, or imports it privately (`use child::Name`).
//! - A child that names its parent's items uses the parent.
//! - Methods are not resolved: `store.create()` is no use, but naming the type `Store` is.
//! - Macros are not expanded: a path to an item that a macro generates is a use of the module with the longest matching
//!   path.

use super::root;
use super::source::{Token, after_closing, attribute, tokens_of, without_tests};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The modules of one crate, the root first.
#[derive(Debug, Default)]
pub(super) struct Modules {
    modules: Vec<Module>,
}

#[derive(Debug, Default)]
struct Module {
    /// As written in Rust: `crate::store::create`.
    path: String,
    parent: Option<usize>,
    /// The module whose file contains this one: itself, unless it is inline.
    file: usize,
    children: HashMap<String, usize>,
    items: HashSet<String>,
    /// The root's exported macros and the modules that define them.
    macros: HashMap<String, usize>,
    imports: Vec<Import>,
    paths: Vec<Named>,
}

/// One name that a `use` imports, or all names of a module (`*`).
#[derive(Debug)]
struct Import {
    name: String,
    is_public: bool,
    path: Named,
}

#[derive(Debug, Clone)]
struct Named {
    segments: Vec<String>,
    line: usize,
}

/// The meaning of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Module(usize),
    /// An item that the module defines.
    ItemOf(usize),
    /// An item of another crate, a variable, or a name of the prelude.
    Foreign,
}

/// The modules that each module uses, and the place of the first use.
pub(super) type Uses = BTreeMap<String, BTreeMap<String, String>>;

impl Modules {
    /// Reads the crate whose root is `file`, a path in the repository.
    pub(super) fn read(file: &str) -> Modules {
        let mut modules = Modules::default();
        modules.modules.push(Module { path: "crate".to_owned(), ..Module::default() });
        let (folder, _) = file.rsplit_once('/').unwrap();
        modules.read_file(0, file, folder);
        modules
    }

    pub(super) fn uses(&self) -> Uses {
        let mut uses = Uses::new();
        for (index, module) in self.modules.iter().enumerate() {
            let from = &self.modules[module.file].path;
            let imports = module.imports.iter().filter(|import| !import.is_public);
            let imports = imports.map(|import| (&import.path, import.name != "*"));
            let edges = uses.entry(from.clone()).or_default();
            for (named, is_name) in imports.chain(module.paths.iter().map(|path| (path, false))) {
                let target = match self.resolve(index, &named.segments, &mut Vec::new()) {
                    // The paths that go through an imported module are the uses.
                    Target::Module(_) if is_name => continue,
                    Target::Module(target) | Target::ItemOf(target) => target,
                    Target::Foreign => continue,
                };
                let to = &self.modules[self.modules[target].file].path;
                if to != from {
                    let place = || format!("line {}: {}", named.line, named.segments.join("::"));
                    edges.entry(to.clone()).or_insert_with(place);
                }
            }
        }
        uses
    }

    fn read_file(&mut self, module: usize, file: &str, folder: &str) {
        let tokens = without_tests(&tokens_of(file));
        self.scan(module, &tokens, folder);
    }

    /// Records the items, imports and paths of a module and reads its children, whose files are in `folder`.
    fn scan(&mut self, module: usize, tokens: &[Token], folder: &str) {
        let (mut at, mut depth) = (0, 0);
        let (mut is_public, mut is_exported) = (false, false);
        let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
        while let Some(token) = tokens.get(at) {
            if let Some(attribute) = attribute(tokens, at) {
                is_exported |= attribute.iter().any(|token| token.is("macro_export"));
                at += attribute.len();
                continue;
            }
            if token.is("pub") {
                is_public = true;
                at = if text(at + 1) == "(" && ["crate", "super", "self", "in"].contains(&text(at + 2)) {
                    after_closing(tokens, at + 1)
                } else {
                    at + 1
                };
                continue;
            }
            let next_is_name = tokens.get(at + 1).is_some_and(Token::is_name);
            if token.is("{") {
                depth += 1;
                at += 1;
            } else if token.is("}") {
                depth -= 1;
                at += 1;
            } else if token.is("use") && text(at + 1) != "<" {
                let end = (at..tokens.len()).find(|at| tokens[*at].is(";")).unwrap();
                self.import(module, is_public, &tokens[at + 1..end], &[]);
                at = end + 1;
            } else if token.is("mod") && next_is_name && [";", "{"].contains(&text(at + 2)) {
                let name = text(at + 1);
                let is_inline = text(at + 2) == "{";
                let child = self.add(module, name, is_inline);
                let below = format!("{folder}/{name}");
                if is_inline {
                    let end = after_closing(tokens, at + 2);
                    self.scan(child, &tokens[at + 3..end - 1], &below);
                    at = end;
                } else {
                    let file = [format!("{below}.rs"), format!("{below}/mod.rs")];
                    let file = file.iter().find(|file| root().join(file).exists());
                    self.read_file(child, file.unwrap_or_else(|| panic!("{below}: no such module")), &below);
                    at += 3;
                }
            } else if token.is("macro_rules") && text(at + 1) == "!" {
                self.modules[module].items.insert(text(at + 2).to_owned());
                if is_exported {
                    self.modules[0].macros.insert(text(at + 2).to_owned(), module);
                }
                at += 3;
            } else if next_is_name
                && ["fn", "struct", "enum", "trait", "type", "const", "static", "union"].contains(&text(at))
                && !["fn", "unsafe", "async", "extern", "mut"].contains(&text(at + 1))
            {
                if depth == 0 {
                    self.modules[module].items.insert(text(at + 1).to_owned());
                }
                at += 2;
            } else if token.is_name() {
                at = self.note_path(module, tokens, at);
            } else {
                at += 1;
            }
            (is_public, is_exported) = (false, false);
        }
    }

    /// Records the path that begins at `at`, and returns the index of its end.
    fn note_path(&mut self, module: usize, tokens: &[Token], at: usize) -> usize {
        let mut segments = vec![tokens[at].text.clone()];
        let mut end = at + 1;
        while let [separator, name, ..] = &tokens[end..] {
            if !separator.is("::") || !name.is_name() {
                break;
            }
            segments.push(name.text.clone());
            end += 2;
        }
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        let continues = before.is_some_and(|token| token.is(".") || token.is("::"));
        let is_variable = before.is_some_and(|token| token.is("$")) && segments[0] != "crate";
        let is_one = segments.len() == 1;
        let is_label = is_one && tokens.get(end).is_some_and(|token| token.is(":"));
        let is_keyword = is_one && ["crate", "self", "super", "Self"].contains(&segments[0].as_str());
        // Variables have names of functions, too.
        let is_called = tokens.get(end).is_some_and(|token| token.is("(") || token.is("!") || token.is("::"));
        let is_value = is_one && segments[0].starts_with(|first: char| first.is_lowercase()) && !is_called;
        if !(continues || is_variable || is_label || is_keyword || is_value) {
            self.modules[module].paths.push(Named { segments, line: tokens[at].line });
        }
        end
    }

    /// Records the names of a `use` whose tokens, less the keyword and the semicolon, are `tree`.
    fn import(&mut self, module: usize, is_public: bool, tree: &[Token], prefix: &[String]) {
        let mut segments = prefix.to_vec();
        let mut at = 0;
        while let Some(token) = tree.get(at) {
            if token.is("{") {
                for branch in branches(&tree[at + 1..after_closing(tree, at) - 1]) {
                    self.import(module, is_public, branch, &segments);
                }
                return;
            }
            if token.is("as") {
                break;
            }
            if token.is_name() || token.is("*") {
                segments.push(token.text.clone());
            }
            at += 1;
        }
        // `{self, …}` names the module before the group.
        if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
            segments.pop();
        }
        let (Some(first), Some(last)) = (tree.first(), segments.last()) else { return };
        let name = if tree.get(at).is_some_and(|token| token.is("as")) { &tree[at + 1].text } else { last };
        let import = Import {
            name: name.clone(),
            is_public,
            path: Named { line: first.line, segments: segments.clone() },
        };
        self.modules[module].imports.push(import);
    }

    fn add(&mut self, parent: usize, name: &str, is_inline: bool) -> usize {
        let index = self.modules.len();
        let file = if is_inline { self.modules[parent].file } else { index };
        let path = format!("{}::{name}", self.modules[parent].path);
        self.modules.push(Module { path, parent: Some(parent), file, ..Module::default() });
        self.modules[parent].children.insert(name.to_owned(), index);
        index
    }

    /// Follows a path that is written in `module`. `pending` has the imports that are being followed.
    fn resolve(&self, module: usize, segments: &[String], pending: &mut Vec<(usize, String)>) -> Target {
        let (mut at, mut rest) = match segments {
            [first, rest @ ..] if first == "crate" => (0, rest),
            [first, rest @ ..] if first == "self" => (module, rest),
            [first, ..] if first == "super" => (module, segments),
            [first] => {
                // The name of a child alone may also be that of a variable.
                let target = self.find(module, first, false, pending);
                return target
                    .filter(|target| matches!(target, Target::ItemOf(_)))
                    .unwrap_or(Target::Foreign);
            }
            [first, rest @ ..] => match self.find(module, first, true, pending) {
                Some(Target::Module(next)) => (next, rest),
                other => return other.unwrap_or(Target::Foreign),
            },
            [] => return Target::Foreign,
        };
        while let [segment, after @ ..] = rest {
            if segment == "super" {
                at = self.modules[at].parent.unwrap_or(0);
            } else if segment == "*" {
                return Target::Module(at);
            } else {
                match self.find(at, segment, !after.is_empty(), pending) {
                    Some(Target::Module(next)) => at = next,
                    // Not found: a variant, or an item that a macro generates.
                    other => return other.unwrap_or(Target::ItemOf(at)),
                }
            }
            rest = after;
        }
        Target::Module(at)
    }

    /// Looks a name up in a module. If the path continues after the name (`goes_on`), a module is preferred to an item
    /// of the same name.
    fn find(
        &self,
        module: usize,
        name: &str,
        goes_on: bool,
        pending: &mut Vec<(usize, String)>,
    ) -> Option<Target> {
        let this = &self.modules[module];
        let child = this.children.get(name).map(|child| Target::Module(*child));
        if goes_on && child.is_some() {
            return child;
        }
        if this.items.contains(name) {
            return Some(Target::ItemOf(module));
        }
        if let Some(definer) = this.macros.get(name) {
            return Some(Target::ItemOf(*definer));
        }
        let key = (module, name.to_owned());
        if pending.contains(&key) {
            return child;
        }
        pending.push(key);
        let mut found = None;
        for import in this.imports.iter().filter(|import| import.name == name) {
            // A name may be imported twice: a module and a function, say.
            let target = self.resolve_import(module, &import.path.segments, goes_on, pending);
            if found.is_none() || matches!(target, Target::Module(_)) == goes_on {
                found = Some(target);
            }
        }
        let globs = this.imports.iter().filter(|import| import.name == "*");
        for glob in globs {
            if found.is_some() {
                break;
            }
            if let Target::Module(target) = self.resolve(module, &glob.path.segments, pending) {
                found = self.find(target, name, goes_on, pending);
            }
        }
        pending.pop();
        found.or(child)
    }

    fn resolve_import(
        &self,
        module: usize,
        segments: &[String],
        goes_on: bool,
        pending: &mut Vec<(usize, String)>,
    ) -> Target {
        let target = self.resolve(module, segments, pending);
        let [above @ .., last] = segments else { return target };
        match (target, above) {
            // The name of a child alone: `use child as other`.
            (Target::Foreign, []) => {
                let child = self.modules[module].children.get(last);
                child.map_or(target, |child| Target::Module(*child))
            }
            // An item and a module have this name: the path continues into the module.
            (Target::ItemOf(_), [_, ..]) if goes_on => match self.resolve(module, above, pending) {
                Target::Module(parent) => {
                    let child = self.modules[parent].children.get(last);
                    child.map_or(target, |child| Target::Module(*child))
                }
                _ => target,
            },
            _ => target,
        }
    }
}

/// The parts of a group between its commas.
fn branches(group: &[Token]) -> Vec<&[Token]> {
    let mut depth = 0;
    group
        .split(|token| {
            match token.text.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            depth == 0 && token.is(",")
        })
        .filter(|branch| !branch.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::source::tokens;
    use super::*;

    /// The modules `crate::a`, `crate::a::b` and `crate::c`, each with the source given for it.
    fn uses(sources: [&str; 4]) -> Vec<String> {
        let mut modules = Modules::default();
        modules.modules.push(Module { path: "crate".to_owned(), ..Module::default() });
        let a = modules.add(0, "a", false);
        let b = modules.add(a, "b", false);
        let c = modules.add(0, "c", false);
        for (module, source) in [0, a, b, c].into_iter().zip(sources) {
            modules.scan(module, &without_tests(&tokens(source)), "");
        }
        let short = |path: &str| path.rsplit("::").next().unwrap().to_owned();
        let uses = modules.uses();
        uses.iter()
            .flat_map(|(from, to)| to.keys().map(move |to| format!("{} {}", short(from), short(to))))
            .collect()
    }

    #[test]
    fn modules_use_what_their_code_names() {
        let rows: &[([&str; 4], &[&str])] = &[
            (["", "use crate::c; fn f() { c::g() }", "", ""], &["a c"]),
            (["", "use crate::c::*;", "", ""], &["a c"]),
            (["", "use crate::{c::{X, Y}, a};", "", "struct X;"], &["a c"]),
            (["", "use super::c::X as Y;", "", ""], &["a c"]),
            (["", "fn f(x: crate::c::X) {}", "", ""], &["a c"]),
            (["", "fn f() { super::c::X::new() }", "", ""], &["a c"]),
            (["", "fn f() { use super::a::b::X; }", "", "fn g() { super::a::b::X }"], &["a b", "c b"]),
            // Through re-exports to the definition.
            (["pub use c::X;", "use crate::X;", "", "pub struct X;"], &["a c"]),
            (["pub use a::X;", "pub use self::b::*;", "pub struct X;", "use crate::X;"], &["c b"]),
            (["", "pub use b::X; fn f(x: X) {}", "pub struct X;", ""], &["a b"]),
            (["", "use b::X;", "pub struct X;", ""], &["a b"]),
            (["", "pub use crate::c::*; fn f() { d() }", "", "fn d() {}"], &["a c"]),
            (["use other::X;", "use super::X;", "", ""], &[]),
            // A module that was imported.
            (["", "use crate::c; fn f() { c::X }", "use crate::a::b; use super::c::Y;", ""], &["a c", "b c"]),
            (["", "", "use super::super::c; fn f() { c::f() }", "fn f() {}"], &["b c"]),
            // Parents and children.
            (["mod x {}", "fn f() { b::g() } pub struct X;", "use super::X; fn g() {}", ""], &["a b", "b a"]),
            (["fn f() { a::b::g() }", "", "fn g() {}", ""], &["crate b"]),
            // Not uses.
            (["", "pub use b::get; fn f() { x.get(); S { get: 1 }; d::get() }", "pub fn get() {}", ""], &[]),
            (
                [
                    "",
                    "#[cfg(test)] mod tests { use crate::c; } // crate::c\n fn f() { \"crate::c\" }",
                    "",
                    "",
                ],
                &[],
            ),
            (["", "pub(in crate::c) fn f() -> impl X + use<'a> {}", "", ""], &[]),
            (["", "fn f() { let c = 1; c }", "", ""], &[]),
            (["", "pub use crate::c::*; fn f() { let d = 1; d }", "", "fn d() {}"], &[]),
            // Macros, and modules inside a file.
            (
                ["", "crate::m!();", "", "#[macro_export] macro_rules! m { () => { $crate::a::X } }"],
                &["a c", "c a"],
            ),
            (
                ["", "use crate::c::inner::X;", "", "mod inner { pub struct X; use super::Y; } struct Y;"],
                &["a c"],
            ),
        ];
        for (sources, expected) in rows {
            assert_eq!(uses(*sources), *expected, "{sources:?}");
        }
    }
}
