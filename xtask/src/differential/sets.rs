//! The sets of requests.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Value, json};

use super::{
    case::Case,
    changes::{changed, changed_bytes},
    corpus::{Corpus, Sample},
    dice::Dice,
};

/// The bytes before a message in protobuf.
const PREFIX: usize = 4;

/// The media types that an object is read in.
const FORMS: [&str; 5] = [
    "application/json",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
];

/// A set of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    /// Creates of objects that are changed in one place.
    Creates,
    /// Updates of objects that are changed in one place.
    Updates,
    /// Names, generated names, finalizers, labels and annotations of every kind.
    Metadata,
    /// Objects read in every form.
    Forms,
    /// Bodies in protobuf that are changed in one byte.
    Protobuf,
}

impl Set {
    pub(super) const ALL: [Set; 5] = [Set::Creates, Set::Updates, Set::Metadata, Set::Forms, Set::Protobuf];

    /// The set of a name.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn named(name: &str) -> Result<Set, String> {
        let names = || Set::ALL.map(|set| set.to_string()).join(", ");
        Set::ALL
            .into_iter()
            .find(|set| set.to_string() == name)
            .ok_or_else(|| format!("no set {name}: the sets are {}", names()))
    }

    /// The requests of the set. `changes` is the number of changed objects made of each.
    pub(super) fn cases(self, corpus: &Corpus, seed: u64, changes: usize) -> Vec<Case> {
        let name = self.to_string();
        match self {
            Set::Creates => each(corpus, |sample| {
                let mut dice = Dice::new(seed, &format!("{name}{}", sample.object));
                (0..changes)
                    .map(|_| {
                        let (object, what) = changed(&sample.object, &mut dice);
                        create_dry(sample, &object, &what)
                    })
                    .collect()
            }),
            Set::Updates => each(corpus, |sample| {
                let mut dice = Dice::new(seed, &format!("{name}{}", sample.object));
                let updates = (0..changes).map(|_| {
                    let (object, what) = changed(&sample.object, &mut dice);
                    let path = format!("{}?dryRun=All", path_of(sample));
                    Case::new("PUT", path, format!("{} {what}", sample.resource)).json(&object)
                });
                stored(sample, updates.collect())
            }),
            Set::Metadata => one_of_each(corpus, metadata),
            Set::Forms => each(corpus, |sample| {
                let reads = FORMS.iter().flat_map(|accept| {
                    [path_of(sample), sample.path.clone()].map(|path| {
                        Case::new("GET", path, format!("{} as {accept}", sample.resource))
                            .header("accept", accept)
                    })
                });
                stored(sample, reads.collect())
            }),
            Set::Protobuf => corpus
                .messages
                .iter()
                .flat_map(|message| {
                    let mut dice = Dice::new(seed, &format!("{name}{}", message.kind));
                    let create = move |(bytes, what): (Vec<u8>, String)| {
                        Case::new(
                            "POST",
                            format!("{}?dryRun=All", message.path),
                            format!("{} {what}", message.kind),
                        )
                        .bytes("application/vnd.kubernetes.protobuf", bytes)
                    };
                    (0..changes)
                        .map(|_| changed_bytes(&message.bytes, PREFIX, &mut dice))
                        .chain([(message.bytes.clone(), "unchanged".to_owned())])
                        .map(create)
                        .collect::<Vec<_>>()
                })
                .collect(),
        }
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Set::Creates => "creates",
            Set::Updates => "updates",
            Set::Metadata => "metadata",
            Set::Forms => "forms",
            Set::Protobuf => "protobuf",
        })
    }
}

fn each(corpus: &Corpus, cases: impl Fn(&Sample) -> Vec<Case>) -> Vec<Case> {
    corpus.samples.iter().flat_map(cases).collect()
}

fn one_of_each(corpus: &Corpus, cases: impl Fn(&Sample) -> Vec<Case>) -> Vec<Case> {
    let mut seen = BTreeSet::new();
    corpus.samples.iter().filter(|sample| seen.insert(&sample.resource)).flat_map(cases).collect()
}

fn path_of(sample: &Sample) -> String {
    let name = sample.object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    format!("{}/{name}", sample.path)
}

fn create_dry(sample: &Sample, object: &Value, what: &str) -> Case {
    Case::new("POST", format!("{}?dryRun=All", sample.path), format!("{} {what}", sample.resource))
        .json(object)
}

/// The requests between a create and a delete of the sample.
fn stored(sample: &Sample, cases: Vec<Case>) -> Vec<Case> {
    let create = Case::new("POST", sample.path.clone(), sample.resource.clone()).json(&sample.object);
    let delete =
        Case::new("DELETE", format!("{}?gracePeriodSeconds=0", path_of(sample)), sample.resource.clone());
    [create].into_iter().chain(cases).chain([delete]).collect()
}

fn metadata(sample: &Sample) -> Vec<Case> {
    let long = |length: usize| "a".repeat(length);
    let names =
        ["a.b", "A", "1a", "1.2", "a-", "-a", "a:b", "a_b", "a b", "a/b", ".", "..", "1.2.3.4", "::1"]
            .map(str::to_owned)
            .into_iter()
            .chain([53, 63, 64, 253, 254].map(long));
    let prefixes = ["A_", "a.", "-", "a:"].map(str::to_owned).into_iter().chain([60, 250].map(long));
    let mut metadata: Vec<Value> = names.map(|name| json!({"name": name})).collect();
    metadata.extend(prefixes.map(|prefix| json!({"name": null, "generateName": prefix})));
    metadata.extend([
        json!({"generateName": "A_"}),
        json!({"finalizers": ["plain"]}),
        json!({"finalizers": ["a b", "example.com/a"]}),
        json!({"finalizers": ["orphan", "foregroundDeletion", "kubernetes"]}),
        json!({"labels": {"-": "x y"}, "annotations": {"-": ""}}),
        json!({"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]}),
        json!({"generation": -1, "resourceVersion": "1"}),
    ]);
    let create = |changes: Value| {
        let mut object = sample.object.clone();
        if let (Some(own), Some(changes)) =
            (object.get_mut("metadata").and_then(Value::as_object_mut), changes.as_object())
        {
            own.extend(changes.clone());
            own.retain(|_, value| !value.is_null());
        }
        create_dry(sample, &object, &format!("metadata {changes}"))
    };
    metadata.into_iter().map(create).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus() -> Corpus {
        let sample = Sample {
            path: "/api/v1/namespaces/differential/configmaps".to_owned(),
            resource: "/api/v1/configmaps".to_owned(),
            object: json!({"metadata": {"name": "a"}, "data": {"k": "v"}}),
        };
        Corpus { samples: vec![sample.clone(), sample], messages: Vec::new() }
    }

    #[test]
    fn the_same_seed_makes_the_same_requests() {
        let bodies = |seed| {
            Set::Creates.cases(&corpus(), seed, 30).into_iter().map(|case| case.body).collect::<Vec<_>>()
        };
        assert_eq!(bodies(1).len(), 60);
        assert_eq!(bodies(1), bodies(1));
        assert_ne!(bodies(1), bodies(2));
    }

    #[test]
    fn updates_are_between_a_create_and_a_delete() {
        let cases = Set::Updates.cases(&corpus(), 1, 2);
        let methods: Vec<&str> = cases.iter().map(|case| case.method.as_str()).collect();
        assert_eq!(methods, ["POST", "PUT", "PUT", "DELETE", "POST", "PUT", "PUT", "DELETE"]);
    }

    #[test]
    fn metadata_is_changed_once_for_each_resource() {
        let cases = Set::Metadata.cases(&corpus(), 1, 2);
        assert_eq!(cases.iter().filter(|case| case.about.contains("plain")).count(), 1);
        assert!(cases.iter().any(|case| case.generated.as_deref() == Some("a.")));
    }

    #[test]
    fn sets_have_names() {
        for set in Set::ALL {
            assert_eq!(Set::named(&set.to_string()), Ok(set));
        }
        assert!(Set::named("none").unwrap_err().contains("creates, updates"));
    }
}
