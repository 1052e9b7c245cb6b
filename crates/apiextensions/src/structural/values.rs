//! Validates values by a schema, with the reference's messages in its order.
//!
//! The checks and messages are those of an OpenAPI validator that Kubernetes has always used
//! (<https://pkg.go.dev/k8s.io/kube-openapi/pkg/validation/validate>), oddities included: integers are compared with
//! the integer part of a limit, a list is accepted as text with a format, and of several alternatives only the errors
//! of the best match are reported.
//!
//! Most objects are valid. The first walk only determines whether there is an error, without allocating a string or
//! path; if so, a second walk collects errors.
//!
//! On update, errors in unchanged parts are ratcheted and not reported
//! (<https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/4008-crd-ratcheting>). Parts are
//! properties, list items with keys and map values; alternatives are validated as a whole.

mod number;
mod problem;
mod sink;

use std::cell::Cell;
use std::collections::HashSet;

use pintle_machinery::{ErrorList, FieldError, FieldPath, Map, Value};

use super::arena::Arena;
use super::correlated::Correlated;
use super::effort::Effort;
use super::formats::StringFormat;
use super::node::{Additional, Constraint, Flags, JsonType, Node};
use super::number::is_integral;
use super::path::Path;
use super::run::Run;

use problem::Problem;
use sink::{Quick, Sink, Thorough};

/// Validates a value; `prefix` is its position in the object, which messages leave out.
pub(super) fn validate(
    schema: &Arena,
    node: &Node,
    value: &Value,
    old: Option<&Correlated<'_>>,
    prefix: &FieldPath,
) -> ErrorList {
    collect(schema, Subject::Object, node, value, old, prefix, [&Effort::new(), &Effort::new()])
}

/// Validates a default in a definition, for which `x-kubernetes-int-or-string` does not count as a type, and formats
/// count that are not supported.
///
/// `effort` is that of all defaults of the definition.
pub(super) fn validate_default(
    schema: &Arena,
    node: &Node,
    value: &Value,
    prefix: &FieldPath,
    effort: &Effort,
) -> ErrorList {
    collect(schema, Subject::Default, node, value, None, prefix, [effort, effort])
}

/// The owner of the validated value: a custom resource, or a default in a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Object,
    Default,
}

/// The maximum size of collected problems, in bytes; more than is ever reported.
const MAX_PROBLEM_BYTES: usize = 4 << 20;

/// The bytes of a text that a format reads in the time of one check.
const FORMATTED: usize = 4;
/// The bytes of a text whose characters are counted in the time of one check.
const COUNTED: usize = 64;
/// The allowed scalars with which a value is compared in the time of one check.
const SCALARS: usize = 8;

fn collect(
    schema: &Arena,
    subject: Subject,
    node: &Node,
    value: &Value,
    old: Option<&Correlated<'_>>,
    prefix: &FieldPath,
    [first, second]: [&Effort; 2],
) -> ErrorList {
    let walk = Walk { schema, subject, effort: first };
    let mut quick = Quick::default();
    walk.value(node, value, &Path::ROOT, None, &mut quick);
    if let Some(error) = walk.effort.error(prefix) {
        return vec![error];
    }
    if !quick.failed() {
        return ErrorList::new();
    }
    let walk = Walk { effort: second, ..walk };
    let room = Cell::new(MAX_PROBLEM_BYTES);
    let mut thorough = Thorough { problems: Vec::new(), failed: false, room: &room };
    walk.value(node, value, &Path::ROOT, old, &mut thorough);
    let mut seen = HashSet::new();
    let problems = thorough.problems.into_iter();
    let mut errors: ErrorList = problems
        .filter_map(|problem| seen.insert(problem.message.clone()).then(|| problem.into_error(prefix)))
        .collect();
    errors.extend(walk.effort.error(prefix));
    if errors.is_empty() && thorough.failed {
        errors.push(FieldError::forbidden(prefix, "there is too much wrong to be told"));
    }
    errors
}

struct Walk<'s> {
    schema: &'s Arena,
    subject: Subject,
    effort: &'s Effort,
}

impl<'s> Walk<'s> {
    /// Validates a value and returns the number of passed checks, which selects the best of several alternatives.
    fn value<S: Sink>(
        &self,
        node: &'s Node,
        value: &Value,
        path: &Path<'_>,
        old: Option<&Correlated<'_>>,
        sink: &mut S,
    ) -> usize {
        // Errors in unchanged parts are ratcheted, and alternatives are validated without the old object, so the number
        // of passed checks in an unchanged part is never used.
        if sink.is_done()
            || old.is_some_and(Correlated::is_unchanged)
            || !self.effort.spend(1 + node.constraints.len as usize)
        {
            return 0;
        }
        self.checks(node, value, path, old, sink)
    }

    fn checks<S: Sink>(
        &self,
        node: &'s Node,
        value: &Value,
        path: &Path<'_>,
        old: Option<&Correlated<'_>>,
        sink: &mut S,
    ) -> usize {
        let mut matched = 0;
        let format = self.format(node);
        let typed = node.ty.is_some() || self.is_int_or_string(node);
        if value.is_null() {
            let nullable = node.flags.has(Flags::NULLABLE) || self.schema.type_name(node) == "null";
            if typed && !nullable {
                sink.problem(|| Problem::wrong_type(path, &self.type_name(node), "null"));
            } else {
                matched += 1;
            }
            self.one_of_enum(node, value, path, sink);
            return matched;
        }
        if typed || format.is_some() {
            matched += self.ty(node, value, format, path, sink) + 1;
        }
        matched += self.junctors(node, value, path, sink) + 1;
        match value {
            Value::String(text) => {
                self.text(node, text, path, sink);
                matched += 1;
                if let Some(format) = format.filter(|_| !sink.is_done())
                    && let Some(parsed) = StringFormat::parse(format)
                    && self.effort.spend(text.len() / FORMATTED)
                {
                    if !parsed.accepts(text) {
                        sink.problem(|| Problem::wrong_format(path, format, text));
                    }
                    matched += 1;
                }
            }
            Value::Number(number) => {
                let constraints = self.schema.constraints(node);
                // Only supported formats have ranges.
                let format = self.supported_format(node);
                number::check(constraints, self.number_type(node), format, number, path, sink);
                matched += 2;
            }
            Value::Array(items) => matched += self.list(node, items, path, old, sink) + 1,
            Value::Null | Value::Bool(_) | Value::Object(_) => {}
        }
        self.one_of_enum(node, value, path, sink);
        matched += 1;
        if let Value::Object(members) = value {
            matched += self.object(node, members, path, old, sink) + 1;
        }
        matched + 1
    }

    /// The format that the type of a value is checked by.
    fn format(&self, node: &Node) -> Option<&'s str> {
        self.schema.constraints(node).iter().find_map(|constraint| match constraint {
            Constraint::Format(name) => Some(self.schema.str(*name)),
            Constraint::UnsupportedFormat(name) if self.subject == Subject::Default => {
                Some(self.schema.str(*name))
            }
            _ => None,
        })
    }

    fn supported_format(&self, node: &Node) -> Option<&'s str> {
        self.schema.constraints(node).iter().find_map(|constraint| match constraint {
            Constraint::Format(name) => Some(self.schema.str(*name)),
            _ => None,
        })
    }

    fn ty<S: Sink>(
        &self,
        node: &Node,
        value: &Value,
        format: Option<&str>,
        path: &Path<'_>,
        sink: &mut S,
    ) -> usize {
        let (found, found_format) = match value {
            Value::Null => ("null", ""),
            Value::Bool(_) => ("boolean", ""),
            Value::Number(number) if number.is_f64() => ("number", "float64"),
            Value::Number(_) => ("integer", "int64"),
            Value::String(_) => ("string", ""),
            Value::Array(_) => ("array", ""),
            Value::Object(_) => ("object", ""),
        };
        let (integer, number) =
            (self.has_type(node, JsonType::Integer), self.has_type(node, JsonType::Number));
        let fits = match value {
            Value::Null => false,
            Value::Bool(_) => self.has_type(node, JsonType::Boolean),
            Value::Number(value) if value.is_f64() => {
                number || (integer && value.as_f64().is_some_and(is_integral))
            }
            Value::Number(_) => integer || number,
            Value::String(_) => self.has_type(node, JsonType::String),
            Value::Array(_) => self.has_type(node, JsonType::Array),
            Value::Object(_) => self.has_type(node, JsonType::Object),
        };
        if let Some(format) = format {
            let text_like = matches!(value, Value::String(_) | Value::Array(_));
            if !text_like && !fits && format != found_format {
                sink.problem(|| Problem::wrong_type(path, format, found_format));
                return 0;
            }
            if text_like && !number && !integer {
                return 1;
            }
        }
        if !fits {
            sink.problem(|| Problem::wrong_type(path, &self.type_name(node), found));
            return 0;
        }
        1
    }

    fn junctors<S: Sink>(&self, node: &'s Node, value: &Value, path: &Path<'_>, sink: &mut S) -> usize {
        let mut matched = 1;
        let (mut all_of, mut any_of, mut one_of, mut not) = (None, None, None, None);
        for constraint in self.schema.constraints(node) {
            match constraint {
                Constraint::AllOf(run) => all_of = Some(*run),
                Constraint::AnyOf(run) => any_of = Some(*run),
                Constraint::OneOf(run) => one_of = Some(*run),
                Constraint::Not(id) => not = Some(*id),
                _ => {}
            }
        }
        if let Some(run) = any_of {
            matched += self.any_of(run, value, path, sink);
        }
        if let Some(run) = one_of.filter(|_| !sink.is_done()) {
            matched += self.one_of(run, value, path, sink);
        }
        if let Some(run) = all_of.filter(|_| !sink.is_done()) {
            matched += self.all_of(run, value, path, sink);
        }
        if let Some(id) = not.filter(|_| !sink.is_done()) {
            let mut own = Quick::default();
            self.value(self.schema.node(id), value, path, None, &mut own);
            if !own.failed() {
                sink.problem(|| Problem::alternatives(path, "must not validate the schema (not)"));
            }
        }
        matched
    }

    fn alternatives(&self, run: Run) -> impl ExactSizeIterator<Item = &'s Node> + use<'s> {
        let schema = self.schema;
        run.of(&schema.alternatives).iter().map(move |&id| schema.node(id))
    }

    fn any_of<S: Sink>(&self, run: Run, value: &Value, path: &Path<'_>, sink: &mut S) -> usize {
        let mut best: Option<(usize, S)> = None;
        for node in self.alternatives(run) {
            let mut own = sink.fork();
            let matched = self.value(node, value, path, None, &mut own);
            if !own.failed() {
                return matched;
            }
            if best.as_ref().is_none_or(|(most, _)| matched > *most) {
                best = Some((matched, own));
            }
        }
        sink.problem(|| Problem::alternatives(path, "must validate at least one schema (anyOf)"));
        take(best, sink)
    }

    fn one_of<S: Sink>(&self, run: Run, value: &Value, path: &Path<'_>, sink: &mut S) -> usize {
        let mut best: Option<(usize, S)> = None;
        let mut first = 0;
        let mut valid = 0;
        for node in self.alternatives(run) {
            let mut own = sink.fork();
            let matched = self.value(node, value, path, None, &mut own);
            if !own.failed() {
                if valid == 0 {
                    first = matched;
                }
                valid += 1;
                best = None;
            } else if valid == 0 && best.as_ref().is_none_or(|(most, _)| matched > *most) {
                best = Some((matched, own));
            }
        }
        if valid == 1 {
            return first;
        }
        sink.problem(|| {
            let found = match valid {
                0 => "Found none valid".to_owned(),
                valid => format!("Found {valid} valid alternatives"),
            };
            Problem::alternatives(path, &format!("must validate one and only one schema (oneOf). {found}"))
        });
        take(best, sink)
    }

    fn all_of<S: Sink>(&self, run: Run, value: &Value, path: &Path<'_>, sink: &mut S) -> usize {
        let mut matched = 0;
        let mut valid = 0;
        let alternatives = self.alternatives(run);
        let all = alternatives.len();
        for node in alternatives {
            let mut own = sink.fork();
            matched += self.value(node, value, path, None, &mut own);
            if !own.failed() {
                valid += 1;
            }
            sink.merge(own);
        }
        if valid < all {
            let none = if valid == 0 { ". None validated" } else { "" };
            sink.problem(|| {
                Problem::alternatives(path, &format!("must validate all the schemas (allOf){none}"))
            });
        }
        matched
    }

    /// Validates a text; reports only the first of the three problems.
    fn text<S: Sink>(&self, node: &Node, text: &str, path: &Path<'_>, sink: &mut S) {
        let (mut max, mut min, mut pattern) = (None, None, None);
        for constraint in self.schema.constraints(node) {
            match constraint {
                Constraint::MaxLength(limit) => max = Some(*limit),
                Constraint::MinLength(limit) => min = Some(*limit),
                Constraint::Pattern(found) => pattern = Some(found),
                _ => {}
            }
        }
        if (max.is_some() || min.is_some()) && self.effort.spend(text.len() / COUNTED) {
            let length = text.chars().count() as i64;
            if let Some(max) = max.filter(|max| length > *max) {
                return sink.problem(|| Problem::too_long(path, max));
            }
            if let Some(min) = min.filter(|min| length < *min) {
                return sink.problem(|| Problem::too_short(path, min, text));
            }
        }
        let Some(pattern) = pattern else { return };
        if !self.effort.spend(pattern.effort(text)) {
            return;
        }
        match pattern.is_match(text) {
            Ok(true) => {}
            Ok(false) => sink.problem(|| Problem::no_match(path, pattern.source(), text)),
            Err(error) => sink.problem(|| {
                let pattern = format!("{}, but pattern is invalid: {error}", pattern.source());
                Problem::no_match(path, &pattern, text)
            }),
        }
    }

    fn list<S: Sink>(
        &self,
        node: &Node,
        items: &[Value],
        path: &Path<'_>,
        old: Option<&Correlated<'_>>,
        sink: &mut S,
    ) -> usize {
        let mut matched = 1;
        if let Some(node) = self.schema.items(node) {
            for (index, item) in items.iter().enumerate() {
                let old = old.and_then(|old| old.index(index));
                matched += self.value(node, item, &path.index(index), old, sink);
            }
        }
        let size = items.len() as i64;
        let mut min_max = (None, None);
        for constraint in self.schema.constraints(node) {
            match constraint {
                Constraint::MinItems(limit) => min_max.0 = Some(*limit),
                Constraint::MaxItems(limit) => min_max.1 = Some(*limit),
                _ => {}
            }
        }
        if let Some(min) = min_max.0.filter(|min| size < *min) {
            sink.problem(|| Problem::too_few(path, size, min, "items"));
        }
        if let Some(max) = min_max.1.filter(|max| size > *max) {
            sink.problem(|| Problem::too_many(path, size, max, "items"));
        }
        if node.flags.has(Flags::UNIQUE_ITEMS)
            && !sink.is_done()
            && items.iter().all(|item| self.effort.spend_comparison(item))
        {
            let mut seen = HashSet::with_capacity(items.len());
            if !items.iter().all(|item| seen.insert(item)) {
                sink.problem(|| Problem::not_unique(path));
            }
        }
        matched
    }

    fn one_of_enum<S: Sink>(&self, node: &Node, value: &Value, path: &Path<'_>, sink: &mut S) {
        if sink.is_done() {
            return;
        }
        let allowed = self.schema.constraints(node).iter().find_map(|constraint| match constraint {
            Constraint::Enum(allowed) => Some(allowed),
            _ => None,
        });
        let Some(allowed) = allowed else { return };
        let values = allowed.values.of(&self.schema.values);
        let comparisons = allowed.comparisons(values);
        let can_compare = match value {
            Value::Array(_) | Value::Object(_) => {
                (0..comparisons).all(|_| self.effort.spend_comparison(value))
            }
            scalar => self.effort.spend_comparison(scalar) && self.effort.spend(comparisons / SCALARS),
        };
        if !can_compare {
            return;
        }
        if !allowed.allows(values, value) {
            sink.problem(|| Problem::not_in_enum(path, value, values));
        }
    }

    fn object<S: Sink>(
        &self,
        node: &'s Node,
        members: &Map,
        path: &Path<'_>,
        old: Option<&Correlated<'_>>,
        sink: &mut S,
    ) -> usize {
        let schema = self.schema;
        let mut matched = 0;
        let size = members.len() as i64;
        let (mut min, mut max, mut required) = (None, None, None);
        for constraint in schema.constraints(node) {
            match constraint {
                Constraint::MinProperties(limit) => min = Some(*limit),
                Constraint::MaxProperties(limit) => max = Some(*limit),
                Constraint::Required(names) => required = Some(*names),
                _ => {}
            }
        }
        if let Some(min) = min.filter(|min| size < *min) {
            sink.problem(|| Problem::too_few(path, size, min, "properties"));
        }
        if let Some(max) = max.filter(|max| size > *max) {
            sink.problem(|| Problem::too_many(path, size, max, "properties"));
        }
        let looks_up = node.properties.len > 0
            || matches!(node.additional, Additional::Forbidden | Additional::Schema(_));
        if looks_up && !self.effort.spend(members.len()) {
            return matched;
        }
        match node.additional {
            Additional::Absent | Additional::Anything => {}
            Additional::Forbidden => {
                for name in members.keys().filter(|name| schema.property(node, name).is_none()) {
                    sink.problem(|| Problem::forbidden(path, name));
                }
            }
            Additional::Schema(id) => {
                for (name, value) in members {
                    if schema.property(node, name).is_none() {
                        let old = old.and_then(|old| old.key(name));
                        // The paths in messages have a dot before keys, even at the root.
                        matched += self.value(schema.node(id), value, &path.member(name), old, sink);
                    }
                }
            }
        }
        if node.properties.len > 0 {
            for (name, value) in members {
                let Some(property) = schema.property(node, name) else { continue };
                let old = match old {
                    // Both versions were converted to one type, so changes of these fields are invisible.
                    Some(_) if path.is_root() && matches!(name.as_str(), "apiVersion" | "kind") => None,
                    old => old.and_then(|old| old.key(name)),
                };
                matched += self.value(property, value, &path.child(name), old, sink);
            }
        }
        if let Some(required) = required.filter(|required| self.effort.spend(required.len as usize)) {
            for name in schema.strs(required).filter(|name| !members.contains_key(name)) {
                sink.problem(|| Problem::required(&path.member(name)));
            }
        }
        matched
    }
}

/// Reports the problems of the best of several alternatives.
fn take<S: Sink>(best: Option<(usize, S)>, sink: &mut S) -> usize {
    let Some((matched, own)) = best else { return 0 };
    sink.merge(own);
    matched
}

impl Walk<'_> {
    fn is_int_or_string(&self, node: &Node) -> bool {
        self.subject == Subject::Object && node.flags.has(Flags::INT_OR_STRING)
    }

    fn has_type(&self, node: &Node, ty: JsonType) -> bool {
        match self.is_int_or_string(node) {
            true => matches!(ty, JsonType::Integer | JsonType::String),
            false => node.ty == Some(ty),
        }
    }

    /// The type for checks of numbers; `None` where several types are allowed.
    fn number_type(&self, node: &Node) -> Option<JsonType> {
        let ty = node.ty.filter(|_| !self.is_int_or_string(node));
        ty.filter(|ty| matches!(ty, JsonType::Integer | JsonType::Number))
    }

    fn type_name(&self, node: &Node) -> String {
        match self.is_int_or_string(node) {
            true => "integer,string".to_owned(),
            false => self.schema.type_name(node).to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
