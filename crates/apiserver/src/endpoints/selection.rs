//! Selects objects of a list or watch by label and field selectors, over the labels and fields that the cache indexes.

use super::{
    converted_selectable::{ConvertedSelectable, Parts},
    request_scope::RequestScope,
    shard_selector::ShardSelector,
};
use pintle_cacher::{CachedObject, Label, Requirement, Trigger};
use pintle_go_forms::quote;
use pintle_machinery::{
    Status,
    options::ListOptions,
    selectors::{FieldOperator, FieldSelector, LabelSelector},
};
use pintle_registry::Resource;
use std::{collections::HashSet, sync::Arc};

/// The most labels of a selector that indexes are looked up for.
const MOST_LABELS: usize = 4;

/// The parsed selectors of one request.
pub(super) struct Selection {
    labels: LabelSelector,
    /// One test per field.
    fields: Vec<FieldTest>,
    /// The objects of these shards alone match.
    shards: Option<ShardSelector>,
    /// The labels and fields in the version of the request, if they differ between the versions of an object.
    converted: Option<ConvertedSelectable>,
    /// The only name that can match, if the field selector requires one.
    pub(super) name: Option<String>,
    /// The only namespace that can match, if the field selector requires one.
    pub(super) namespace: Option<String>,
}

/// All requirements on one field.
struct FieldTest {
    field: Field,
    /// The required value.
    equals: Option<String>,
    /// Two different values are required: no object matches.
    is_never: bool,
    excluded: HashSet<String>,
}

/// The field of a cached object that a test reads.
#[derive(PartialEq)]
enum Field {
    Name,
    Namespace,
    Declared { index: usize, name: String, trigger: bool },
}

impl Field {
    fn is_declared(&self) -> bool {
        matches!(self, Field::Declared { .. })
    }
}

impl FieldTest {
    fn add(&mut self, operator: FieldOperator, value: &str) {
        match (operator, &self.equals) {
            (FieldOperator::NotEquals, _) => _ = self.excluded.insert(value.to_owned()),
            (FieldOperator::Equals, None) => self.equals = Some(value.to_owned()),
            (FieldOperator::Equals, Some(other)) => self.is_never |= other != value,
        }
    }

    fn matches(&self, value: &str) -> bool {
        !self.is_never
            && self.equals.as_deref().is_none_or(|equals| equals == value)
            && (self.excluded.is_empty() || !self.excluded.contains(value))
    }
}

impl Selection {
    /// Parses the selectors of a request. Where its path names an object, only this object is selected.
    ///
    /// # Errors
    /// 400 when a selector names a field that is not selectable, or does not require the name in the path.
    pub(super) fn parse(scope: &RequestScope<'_>, options: &ListOptions) -> Result<Selection, Status> {
        let labels = options.label_selector.clone();
        let resource = &scope.resource.resource;
        // Kinds without declared fields or a message of their own support both metadata fields, whatever their scope.
        let is_plain = resource.selectable_fields.is_empty() && resource.unsupported_field.is_none();
        let mut fields: Vec<FieldTest> = Vec::new();
        let requested = scope.info.name.as_str();
        let by_name = (!requested.is_empty() && options.field_selector.is_empty())
            .then(|| FieldSelector::one_term("metadata.name", requested));
        for term in by_name.as_ref().unwrap_or(&options.field_selector).terms() {
            let field = match term.field.as_str() {
                "metadata.name" => Field::Name,
                "metadata.namespace"
                    if is_plain || resource.is_namespaced() && !resource.lacks_namespace_field =>
                {
                    Field::Namespace
                }
                name => match resource
                    .selectable_fields
                    .iter()
                    .position(|field| field.name == name && !field.of_other_version)
                {
                    Some(index) => Field::Declared {
                        index,
                        name: name.to_owned(),
                        trigger: resource.selectable_fields.get(index).is_some_and(|field| field.trigger),
                    },
                    None => {
                        return Err(Status::bad_request(match resource.unsupported_field {
                            Some(refusal) => refusal(resource, name),
                            None if is_plain => format!(
                                "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                                quote(name)
                            ),
                            None => format!("field label not supported: {name}"),
                        }));
                    }
                },
            };
            let at = fields.iter().position(|test| test.field == field).unwrap_or(fields.len());
            if at == fields.len() {
                fields.push(FieldTest { field, equals: None, is_never: false, excluded: HashSet::new() });
            }
            if let Some(test) = fields.get_mut(at) {
                test.add(term.operator, &term.value);
            }
        }
        let required = |field: Field| fields.iter().find(|test| test.field == field)?.equals.clone();
        let (name, namespace) = (required(Field::Name), required(Field::Namespace));
        if !requested.is_empty() && name.as_deref() != Some(requested) {
            return Err(Status::bad_request("fieldSelector metadata.name doesn't match requested name"));
        }
        let is_by_content = !labels.is_empty() || fields.iter().any(|test| test.field.is_declared());
        let converted = is_by_content.then(|| ConvertedSelectable::of(scope.resource)).flatten();
        Ok(Selection { labels, fields, shards: None, converted, name, namespace })
    }

    /// Parses the selectors of a request for stored objects: with the selector of shards, if the server has shards.
    ///
    /// # Errors
    /// Those of [`Selection::parse`]; 500 when the selector of shards is invalid.
    pub(super) fn parse_with_shards(
        scope: &RequestScope<'_>,
        options: &ListOptions,
    ) -> Result<Selection, Status> {
        let mut selection = Selection::parse(scope, options)?;
        if scope.server.has_shards && !options.shard_selector.is_empty() {
            let shards = ShardSelector::parse(&options.shard_selector)
                .map_err(|error| Status::unknown(format!("invalid shard selector: {error}")))?;
            selection.shards = Some(shards);
        }
        Ok(selection)
    }

    /// The shards that the selection is restricted to.
    pub(super) fn shards(&self) -> Option<&ShardSelector> {
        self.shards.as_ref()
    }

    /// Whether the selection matches every object.
    pub(super) fn is_everything(&self) -> bool {
        self.has_no_terms() && self.shards.is_none()
    }

    /// Whether there is neither a label selector nor a field selector.
    pub(super) fn has_no_terms(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether an object matches. If the selection [waits](Selection::waits) for conversions, the object was prepared.
    pub(super) fn matches(&self, object: &CachedObject) -> bool {
        self.shards.as_ref().is_none_or(|shards| shards.matches(object)) && self.matches_terms(object)
    }

    /// Whether an object matches the label selector and the field selector.
    pub(super) fn matches_terms(&self, object: &CachedObject) -> bool {
        let converted =
            self.converted.as_ref().and_then(|converted| Some((converted, converted.read(object)?)));
        let Some((converted, bytes)) = converted else {
            return self.matches_fields(object, |index| object.field(index))
                && self.labels.matches_all(object.labels().iter(), |key| object.labels().get(key));
        };
        let Parts { fields, labels } = converted.parts(&bytes);
        let label = |key: &str| Some(labels.iter().find(|(own, _)| *own == key)?.1);
        self.matches_fields(object, |index| fields.get(index).copied())
            && self.labels.matches_all(labels.iter().copied(), label)
    }

    fn matches_fields<'a>(
        &self,
        object: &'a CachedObject,
        declared: impl Fn(usize) -> Option<&'a str>,
    ) -> bool {
        self.fields.iter().all(|test| {
            test.matches(match &test.field {
                Field::Name => object.name(),
                Field::Namespace => object.namespace(),
                Field::Declared { index, .. } => declared(*index).unwrap_or_default(),
            })
        })
    }

    /// Whether objects have to be [prepared](Selection::prepare) before they are matched: their labels or fields depend
    /// on the version.
    pub(super) fn waits(&self) -> bool {
        self.converted.is_some()
    }

    /// Converts objects as far as the selection needs it.
    ///
    /// # Errors
    /// When an object cannot be converted.
    pub(super) async fn prepare<'a>(
        &self,
        objects: impl Iterator<Item = &'a Arc<CachedObject>>,
    ) -> Result<(), Status> {
        let Some(converted) = &self.converted else { return Ok(()) };
        let objects = objects.cloned().collect();
        converted.prepare(objects).await
    }

    /// Whether an object that was not prepared may match: as [`Selection::matches_terms`], without the terms that wait
    /// for its conversion.
    pub(super) fn may_match_terms(&self, object: &CachedObject) -> bool {
        if !self.waits() {
            return self.matches_terms(object);
        }
        let own = |test: &&FieldTest| !test.field.is_declared();
        self.fields.iter().filter(own).all(|test| match &test.field {
            Field::Name => test.matches(object.name()),
            Field::Namespace => test.matches(object.namespace()),
            Field::Declared { .. } => true,
        })
    }

    /// Whether a match takes more than a few comparisons: that of a shard reads the UID from the object's JSON, and
    /// compares its hash with all ranges of the selector.
    pub(super) fn is_long(&self) -> bool {
        self.labels.is_long() || self.shards.is_some()
    }

    /// The namespace of all matches of a request for a namespace; empty for several namespaces.
    pub(super) fn namespace_within<'a>(&'a self, requested: &'a str, resource: &Resource) -> &'a str {
        match &self.namespace {
            Some(namespace) if requested.is_empty() && resource.is_namespaced() => namespace,
            _ => requested,
        }
    }

    /// A requirement that every match meets, if the cache may be indexed by it.
    pub(super) fn requirement(&self) -> Option<Requirement> {
        let declared = self.fields.iter().find_map(|test| match &test.field {
            Field::Declared { index, trigger: true, .. } => {
                Some(Requirement::Field(*index, test.equals.as_deref()?.into()))
            }
            Field::Declared { .. } | Field::Name | Field::Namespace => None,
        });
        let named = || Some(Requirement::Name(self.name.as_deref()?.into()));
        let labeled = || {
            let labels: Vec<Label> = self
                .labels
                .required_labels()
                .take(MOST_LABELS)
                .map(|(name, value)| Label { name: name.into(), value: value.into() })
                .collect();
            (!labels.is_empty() && !self.waits()).then_some(Requirement::Labels(labels))
        };
        declared.or_else(named).or_else(labeled)
    }

    /// The trigger field and value by which the cacher indexes a watcher of this selection.
    pub(super) fn trigger(&self) -> Option<Trigger> {
        self.fields.iter().find_map(|test| {
            let field = match &test.field {
                Field::Declared { name, trigger: true, .. } => name.as_str(),
                Field::Name => "metadata.name",
                Field::Declared { .. } | Field::Namespace => return None,
            };
            Some(Trigger { field: field.into(), value: test.equals.as_deref()?.into() })
        })
    }
}
