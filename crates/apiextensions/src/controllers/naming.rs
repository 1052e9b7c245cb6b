//! Accepts the requested names of each definition that no other definition of its group has.

use super::{Context, Controller, condition};
use crate::{definition_view::Names, informer::Change};
use parking_lot::Mutex;
use pintle_go_forms::quote;
use pintle_machinery::{Status, Value, ValueExt, json, status::aggregate};
use pintle_registry::BoxFuture;
use serde::Deserialize as _;
use std::collections::{HashMap, HashSet};

pub(crate) struct Naming {
    context: Context,
    groups: Mutex<HashMap<String, Group>>,
}

/// The maximum number of conflicting short names in a condition.
const MAX_TOLD: usize = 100;

/// The owners of the names in a group. A name may have several owners briefly, or permanently in a store that an older
/// server wrote.
#[derive(Default)]
struct Group {
    resources: Owners,
    kinds: Owners,
    accepted: HashMap<String, Names>,
    /// The definitions that lack some of their requested names.
    waiting: HashSet<String>,
}

#[derive(Default)]
struct Owners(HashMap<String, HashSet<String>>);

impl Owners {
    fn add(&mut self, name: &str, owner: &str) {
        self.0.entry(name.to_owned()).or_default().insert(owner.to_owned());
    }

    fn remove(&mut self, name: &str, owner: &str) {
        if let Some(owners) = self.0.get_mut(name) {
            owners.remove(owner);
            if owners.is_empty() {
                self.0.remove(name);
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

impl Group {
    fn set(&mut self, definition: &str, names: Option<Names>) {
        if let Some(old) = self.accepted.remove(definition) {
            for name in resource_names(&old) {
                self.resources.remove(name, definition);
            }
            for name in [&old.kind, &old.list_kind] {
                self.kinds.remove(name, definition);
            }
        }
        if let Some(names) = names {
            for name in resource_names(&names) {
                self.resources.add(name, definition);
            }
            for name in [&names.kind, &names.list_kind] {
                self.kinds.add(name, definition);
            }
            self.accepted.insert(definition.to_owned(), names);
        }
    }

    /// Determines the accepted names of a definition and the conflict to report for the others; of several conflicts
    /// the last one.
    fn decide(&self, wanted: &Names, accepted: &Names) -> Outcome {
        let mut outcome = Outcome {
            names: accepted.clone(),
            status: "True",
            reason: "NoConflicts",
            message: "no conflicts found".to_owned(),
        };
        let (resources, kinds) = (&self.resources, &self.kinds);
        outcome.give(&wanted.plural, resources, "PluralConflict", |names| &mut names.plural);
        outcome.give(&wanted.singular, resources, "SingularConflict", |names| &mut names.singular);
        if wanted.short_names != accepted.short_names {
            let own: HashSet<&String> = accepted.short_names.iter().collect();
            let new = wanted.short_names.iter().filter(|name| !own.contains(name));
            let mut conflicts = new.filter(|name| resources.has(name)).map(|name| in_use(name)).peekable();
            match conflicts.peek() {
                None => outcome.names.short_names.clone_from(&wanted.short_names),
                Some(_) => outcome.refuse("ShortNamesConflict", aggregate(conflicts.take(MAX_TOLD))),
            }
        }
        outcome.give(&wanted.kind, kinds, "KindConflict", |names| &mut names.kind);
        outcome.give(&wanted.list_kind, kinds, "ListKindConflict", |names| &mut names.list_kind);
        outcome.names.categories.clone_from(&wanted.categories);
        outcome
    }
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", quote(name))
}

fn resource_names(names: &Names) -> impl Iterator<Item = &String> {
    [&names.plural, &names.singular].into_iter().chain(&names.short_names)
}

/// The result for one definition.
struct Outcome {
    names: Names,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Outcome {
    /// Assigns one name, unless another definition has it.
    fn give(
        &mut self,
        wanted: &String,
        owners: &Owners,
        reason: &'static str,
        place: fn(&mut Names) -> &mut String,
    ) {
        let own = place(&mut self.names);
        match wanted != own && owners.has(wanted) {
            true => self.refuse(reason, in_use(wanted)),
            false => own.clone_from(wanted),
        }
    }

    fn refuse(&mut self, reason: &'static str, message: String) {
        (self.status, self.reason, self.message) = ("False", reason, message);
    }
}

impl Naming {
    pub(crate) fn new(context: Context) -> Naming {
        Naming { context, groups: Mutex::default() }
    }

    /// Writes the result into the definition.
    fn apply(&self, name: &str, mut definition: Value) -> Result<Value, Status> {
        let read = |path: &str| -> Result<Names, Status> {
            match definition.at(path) {
                Some(names) => Names::deserialize(names).map_err(Status::internal_error),
                None => Ok(Names::default()),
            }
        };
        let (wanted, accepted) = (read("spec.names")?, read("status.acceptedNames")?);
        if wanted == accepted {
            return Ok(definition);
        }
        let group = definition.str_at("spec.group").to_owned();
        let outcome = self.groups.lock().entry(group.clone()).or_default().decide(&wanted, &accepted);
        let says = condition::Says {
            condition_type: "NamesAccepted",
            status: outcome.status,
            reason: outcome.reason,
            message: &outcome.message,
        };
        let is_said = condition::find(&definition, "NamesAccepted").is_some_and(|old| {
            old.str_at("status") == says.status
                && old.str_at("reason") == says.reason
                && old.str_at("message") == says.message
        });
        if is_said && outcome.names == accepted {
            return Ok(definition);
        }
        definition.set("status.acceptedNames", names_value(&outcome.names));
        condition::set(&mut definition, says);
        let is_established = condition::is_true(&definition, "Established");
        let (reason, message) = match (outcome.status, condition::find(&definition, "Established")) {
            _ if is_established => ("", ""),
            ("True", _) => ("Installing", "the initial names have been accepted"),
            (_, None) => ("NotAccepted", "not all names are accepted"),
            (_, Some(_)) => ("", ""),
        };
        if !reason.is_empty() {
            let says = condition::Says { condition_type: "Established", status: "False", reason, message };
            condition::set(&mut definition, says);
        }
        // Reserves the names at once, before the informer receives this update.
        self.groups.lock().entry(group).or_default().set(name, Some(outcome.names));
        Ok(definition)
    }
}

fn names_value(names: &Names) -> Value {
    let mut value = json!({"plural": names.plural, "kind": names.kind});
    for (name, text) in [("singular", &names.singular), ("listKind", &names.list_kind)] {
        if !text.is_empty() {
            value.set(name, text.as_str());
        }
    }
    for (name, texts) in [("shortNames", &names.short_names), ("categories", &names.categories)] {
        if !texts.is_empty() {
            value.set(name, texts.clone());
        }
    }
    value
}

impl Controller for Naming {
    fn name(&self) -> &'static str {
        "naming"
    }

    fn queue_name(&self) -> &'static str {
        "crd_naming_condition_controller"
    }

    fn wants(&self, change: &Change) -> Vec<String> {
        let mut groups = self.groups.lock();
        let group = groups.entry(change.group().to_owned()).or_default();
        let name = change.name();
        let accepted = |names: &Names| group.accepted.get(name) == Some(names);
        let mut wanted = Vec::new();
        match &change.now {
            Some(now) => {
                let is_settled = now.spec.names == now.status.accepted_names;
                let is_new = !accepted(&now.status.accepted_names);
                group.set(name, Some(now.status.accepted_names.clone()));
                match is_settled {
                    true => drop(group.waiting.remove(name)),
                    false => {
                        group.waiting.insert(name.to_owned());
                        wanted.push(name.to_owned());
                    }
                }
                if is_new {
                    // A name may have been released.
                    wanted.extend(group.waiting.iter().filter(|other| *other != name).cloned());
                }
            }
            None => {
                group.set(name, None);
                group.waiting.remove(name);
                wanted.extend(group.waiting.iter().cloned());
            }
        }
        if group.accepted.is_empty() {
            groups.remove(change.group());
        }
        wanted
    }

    fn sync<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.context.update_status(name, move |definition| self.apply(name, definition)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(plural: &str, singular: &str, short: &[&str], kind: &str) -> Names {
        Names {
            plural: plural.to_owned(),
            singular: singular.to_owned(),
            short_names: short.iter().map(|name| (*name).to_owned()).collect(),
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            categories: Vec::new(),
        }
    }

    #[test]
    fn a_name_has_one_owner_in_its_group() {
        let mut group = Group::default();
        group.set("boxes.g", Some(names("boxes", "box", &["bx", "b"], "Box")));
        let none = Names::default();
        let decide = |wanted: Names, accepted: &Names| {
            let outcome = group.decide(&wanted, accepted);
            (outcome.status, outcome.reason, outcome.message, outcome.names)
        };
        let free = names("cases", "case", &["c"], "Case");
        assert_eq!(
            decide(free.clone(), &none),
            ("True", "NoConflicts", "no conflicts found".to_owned(), free.clone())
        );
        let rows = [
            (names("bx", "case", &[], "Case"), "PluralConflict", "\"bx\" is already in use"),
            (names("cases", "boxes", &[], "Case"), "SingularConflict", "\"boxes\" is already in use"),
            (
                names("cases", "case", &["b", "c", "bx", "b"], "Case"),
                "ShortNamesConflict",
                "[\"b\" is already in use, \"bx\" is already in use]",
            ),
            (names("cases", "case", &["b"], "Case"), "ShortNamesConflict", "\"b\" is already in use"),
            (names("cases", "case", &[], "BoxList"), "KindConflict", "\"BoxList\" is already in use"),
            // The last conflict is reported.
            (names("boxes", "box", &["b"], "Box"), "ListKindConflict", "\"BoxList\" is already in use"),
        ];
        for (wanted, reason, message) in rows {
            let (status, told, why, _) = decide(wanted, &none);
            assert_eq!((status, told, why.as_str()), ("False", reason, message));
        }
        // Free names are accepted all the same, and accepted names are kept.
        let (_, _, _, given) = decide(names("cases", "box", &["c"], "Case"), &none);
        assert_eq!(given, Names { singular: String::new(), ..free });
        let own = names("boxes", "box", &["bx", "b"], "Box");
        let wanted = names("boxes", "box", &["b", "new"], "Box");
        assert_eq!(decide(wanted.clone(), &own).3, wanted);
    }

    #[test]
    fn names_are_free_when_the_last_owner_has_gone() {
        let mut group = Group::default();
        let own = names("boxes", "box", &[], "Box");
        group.set("boxes.g", Some(own.clone()));
        group.set("other.g", Some(names("boxes", "other", &[], "Other")));
        group.set("boxes.g", None);
        assert!(group.resources.has("boxes") && !group.resources.has("box") && !group.kinds.has("Box"));
        group.set("other.g", None);
        assert!(!group.resources.has("boxes"));
        assert_eq!(group.decide(&own, &Names::default()).reason, "NoConflicts");
    }
}
