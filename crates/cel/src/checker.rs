//! The type checker: determines the type of every node, and the candidate overloads of every call.
//!
//! The rules are <https://github.com/google/cel-spec/blob/master/doc/langdef.md#type-checking>; the order and messages
//! of errors are cel-go's. With Kubernetes' settings, numbers of different types can be ordered, and after type
//! inference the elements of a list literal, and the keys and the values of a map literal, must have one type. No
//! Protocol Buffers messages are declared.

mod assignability;
mod format;
mod literals;
#[cfg(test)]
mod tests;

use crate::ast::{
    Ast, Call, CheckedAst, Comprehension, Expr, ExprId, ExprKind, List, Literal, MapEntry, Reference, Struct,
    operators,
};
use crate::declarations::Overload;
use crate::environment::Environment;
use crate::issue::Issue;
use crate::source::Source;
use crate::types::Type;
use assignability::{Substitutions, is_less_specific};
use std::sync::Arc;

/// Checks a tree.
pub(crate) fn check(
    ast: Ast,
    environment: &Environment,
    source: &Source<'_>,
) -> Result<CheckedAst, Vec<Issue>> {
    let Ast { mut expr, positions } = ast;
    let mut checker = Checker {
        environment,
        source,
        types: vec![Type::Error; positions.len()],
        references: vec![None; positions.len()],
        positions: &positions,
        scopes: Vec::new(),
        substitutions: Substitutions::default(),
        fresh: 0,
        issues: Vec::new(),
    };
    checker.check(&mut expr);
    let Checker { types, references, substitutions, mut issues, .. } = checker;
    let types = types.iter().map(|of_node| substitutions.apply(of_node, true)).collect();
    if issues.is_empty() && substitutions.exhausted() {
        let location = source.location(0);
        issues.push(Issue {
            location,
            message: "the types of the expression are too large to be checked".to_owned(),
        });
    }
    if !issues.is_empty() {
        return Err(issues);
    }
    let checked = CheckedAst::new(expr, types, references.into());
    literals::validate(&checked, &positions, source)?;
    Ok(checked)
}

struct Checker<'e> {
    environment: &'e Environment,
    source: &'e Source<'e>,
    positions: &'e [u32],
    types: Vec<Type>,
    references: Vec<Option<Reference>>,
    /// The variables of folds, innermost last.
    scopes: Vec<(Box<str>, Type)>,
    substitutions: Substitutions,
    /// The number of type variables.
    fresh: usize,
    issues: Vec<Issue>,
}

impl Checker<'_> {
    fn check(&mut self, expr: &mut Expr) {
        let id = expr.id;
        match &mut expr.kind {
            // The parser has rejected such a tree.
            ExprKind::Unspecified => {}
            ExprKind::Literal(literal) => self.set_type(id, literal_type(literal)),
            ExprKind::Ident(_) => self.check_ident(expr),
            ExprKind::Select(_) => self.check_select(expr),
            ExprKind::Call(call) => self.check_call(id, call),
            ExprKind::List(list) => self.check_list(id, list),
            ExprKind::Map(entries) => self.check_map(id, entries),
            ExprKind::Struct(message) => self.check_struct(id, message),
            ExprKind::Comprehension(fold) => self.check_comprehension(id, fold),
        }
    }

    fn check_ident(&mut self, expr: &mut Expr) {
        let ExprKind::Ident(name) = &mut expr.kind else { return };
        match self.lookup(name) {
            Some((resolved, reference, of_ident)) => {
                *name = resolved;
                self.set_reference(expr.id, reference);
                self.set_type(expr.id, of_ident);
            }
            None => self.undeclared(expr.id, name),
        }
    }

    /// Looks up a variable or a type: its full name, its meaning, and its type.
    fn lookup(&self, name: &str) -> Option<(Box<str>, Reference, Type)> {
        // A leading dot refers to the root container, which is the only one.
        let name = name.strip_prefix('.').unwrap_or(name);
        let scoped = self
            .scopes
            .iter()
            .rev()
            .find(|(variable, _)| **variable == *name)
            .map(|(_, of_variable)| of_variable);
        if let Some(of_variable) = scoped.or_else(|| self.environment.variable(name)) {
            return Some((name.into(), Reference::Variable(name.into()), of_variable.clone()));
        }
        let named = self.environment.type_named(name)?;
        let of_ident = Type::Type(Some(Arc::new(named.clone())));
        Some((name.into(), Reference::Type(named), of_ident))
    }

    fn check_select(&mut self, expr: &mut Expr) {
        // `a.b` may be a qualified name, which takes precedence over a field.
        if let Some(found) = qualified_name(expr).and_then(|name| self.lookup(&name)) {
            let (name, reference, of_ident) = found;
            self.set_type(expr.id, of_ident);
            self.set_reference(expr.id, reference);
            expr.kind = ExprKind::Ident(name);
            return;
        }
        let ExprKind::Select(select) = &mut expr.kind else { return };
        let of_field = self.check_field(expr.id, &mut select.operand, &select.field, false);
        let result = if select.test_only { Type::Bool } else { of_field };
        let result = self.substitutions.apply(&result, false);
        self.set_type(expr.id, result);
    }

    fn check_field(&mut self, id: ExprId, operand: &mut Expr, field: &str, optional: bool) -> Type {
        self.check(operand);
        let of_operand = self.substitutions.apply(self.type_of(operand.id), false);
        let inner = of_operand.optional_value();
        let target = inner.unwrap_or(&of_operand);
        let result = match target {
            Type::Map(entry) => entry.1.clone(),
            Type::Object(name) => self.field_type(id, name, field),
            Type::Parameter(_) => {
                // An undetermined type stays `dyn`, because a guess could reject later uses.
                self.substitutions.assign(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            _ => {
                self.report(id, format!("type '{target}' does not support field selection"));
                Type::Dyn
            }
        };
        if optional || inner.is_some() { Type::optional(result) } else { result }
    }

    fn field_type(&mut self, id: ExprId, type_name: &str, field: &str) -> Type {
        let provider = self.environment.provider();
        if !provider.has_type(type_name) {
            self.report(id, format!("unexpected failed resolution of '{type_name}'"));
            return Type::Error;
        }
        provider.field(type_name, field).unwrap_or_else(|| {
            self.report(id, format!("undefined field '{field}'"));
            Type::Error
        })
    }

    fn check_call(&mut self, id: ExprId, call: &mut Call) {
        if &*call.function == operators::OPTIONAL_SELECT {
            return self.check_optional_select(id, call);
        }
        call.args.iter_mut().for_each(|argument| self.check(argument));
        if let Some(target) = &mut call.target {
            // `a.b.c()` calls the function `a.b.c` if it exists, otherwise `c` on `a.b`.
            let qualified = qualified_name(target).map(|prefix| format!("{prefix}.{}", call.function));
            if let Some((name, _)) = qualified.and_then(|name| self.environment.function(&name)) {
                call.function = name.into();
                call.target = None;
            } else {
                self.check(target);
            }
        }
        match self.environment.function(&call.function) {
            Some((name, overloads)) => {
                call.function = name.into();
                self.resolve(id, name, call, overloads);
            }
            None => self.undeclared(id, &call.function),
        }
    }

    fn check_optional_select(&mut self, id: ExprId, call: &mut Call) {
        if let [operand, Expr { kind: ExprKind::Literal(Literal::String(field)), .. }] =
            call.args.as_mut_slice()
        {
            let result = self.check_field(id, operand, field, true);
            let result = self.substitutions.apply(&result, false);
            self.set_type(id, result);
            self.set_reference(id, Reference::Function(Box::new(["select_optional_field"])));
        }
        if let Some(field) = call.args.get_mut(1) {
            self.check(field);
        }
    }

    fn resolve(&mut self, id: ExprId, name: &str, call: &Call, overloads: &[Overload]) {
        let arguments: Vec<&Expr> = call.target.as_deref().into_iter().chain(&call.args).collect();
        let mut types: Vec<Type> =
            arguments.iter().map(|argument| self.type_of(argument.id).clone()).collect();
        if matches!(name, operators::LOGICAL_AND | operators::LOGICAL_OR) {
            let mut result = Type::Bool;
            for (argument, of_argument) in arguments.iter().zip(&types) {
                if !self.substitutions.assign(of_argument, &Type::Bool) {
                    self.mismatch(argument.id, &Type::Bool, of_argument);
                    result = Type::Error;
                }
            }
            self.set_reference(
                id,
                Reference::Function(overloads.iter().map(|overload| overload.id).take(1).collect()),
            );
            return self.set_type(id, result);
        }
        let mut matching = Vec::new();
        let mut result: Option<Type> = None;
        for overload in overloads.iter().filter(|overload| overload.member == call.target.is_some()) {
            let instance = self.instantiate(overload);
            if !self.substitutions.assign_all(&types, &instance.0) {
                continue;
            }
            matching.push(overload.id);
            let of_overload = self.substitutions.apply(&instance.1, false);
            result = Some(match result {
                Some(known) if known.is_dynamic() || known == of_overload => known,
                Some(_) => Type::Dyn,
                None => of_overload,
            });
        }
        match result {
            Some(result) => {
                self.set_type(id, result);
                self.set_reference(id, Reference::Function(matching.into()));
            }
            None => {
                types
                    .iter_mut()
                    .for_each(|of_argument| *of_argument = self.substitutions.apply(of_argument, true));
                let message = signature(&types, call.target.is_some());
                self.report(id, format!("found no matching overload for '{name}' applied to '{message}'"));
                self.set_type(id, Type::Error);
            }
        }
    }

    /// An overload's arguments and result, with fresh type variables for its parameters.
    fn instantiate(&mut self, overload: &Overload) -> (Vec<Type>, Type) {
        if overload.type_parameters.is_empty() {
            return (overload.arguments.clone(), overload.result.clone());
        }
        let mut parameters = Substitutions::default();
        for name in &overload.type_parameters {
            let variable = self.fresh();
            parameters.bind(name, variable);
        }
        let arguments = overload.arguments.iter().map(|argument| parameters.apply(argument, false)).collect();
        (arguments, parameters.apply(&overload.result, false))
    }

    fn check_list(&mut self, id: ExprId, list: &mut List) {
        let mut of_elements: Option<Type> = None;
        for (index, element) in list.elements.iter_mut().enumerate() {
            self.check(element);
            let optional =
                u32::try_from(index).is_ok_and(|index| list.optional_indices.binary_search(&index).is_ok());
            let of_element = self.entry_type(element.id, optional);
            of_elements = Some(self.join(of_elements, of_element));
        }
        let of_elements = of_elements.unwrap_or_else(|| self.fresh());
        self.set_type(id, Type::list(of_elements));
    }

    fn check_map(&mut self, id: ExprId, entries: &mut [MapEntry]) {
        let mut of_keys: Option<Type> = None;
        let mut of_values: Option<Type> = None;
        for entry in entries {
            self.check(&mut entry.key);
            let of_key = self.type_of(entry.key.id).clone();
            of_keys = Some(self.join(of_keys, of_key));
            self.check(&mut entry.value);
            let of_value = self.entry_type(entry.value.id, entry.optional);
            of_values = Some(self.join(of_values, of_value));
        }
        let of_keys = of_keys.unwrap_or_else(|| self.fresh());
        let of_values = of_values.unwrap_or_else(|| self.fresh());
        self.set_type(id, Type::map(of_keys, of_values));
    }

    /// The type that an entry contributes to its container; for an optional entry, the type inside the optional.
    fn entry_type(&mut self, value: ExprId, optional: bool) -> Type {
        let of_value = self.type_of(value).clone();
        if !optional {
            return of_value;
        }
        match of_value.optional_value() {
            Some(inner) => inner.clone(),
            None => {
                if !of_value.is_dynamic() {
                    self.mismatch(value, &Type::optional(of_value.clone()), &of_value);
                }
                of_value
            }
        }
    }

    /// The common type of the previous entries and the current one; `dyn` if there is none. The rule against mixed
    /// literals is checked later, in [`literals`], except within calls of `format`.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.substitutions.assign(&previous, &current) {
            return if is_less_specific(&previous, &current) { previous } else { current };
        }
        Type::Dyn
    }

    fn check_struct(&mut self, id: ExprId, message: &mut Struct) {
        let Some((name, reference, of_ident)) = self.lookup(&message.type_name) else {
            return self.undeclared(id, &message.type_name);
        };
        message.type_name = name;
        self.set_reference(id, reference);
        let of_message = match of_ident {
            Type::Type(Some(named)) => match &*named {
                Type::Object(_) => (*named).clone(),
                other => {
                    self.report(id, format!("'{}' is not a message type", other.name()));
                    Type::Error
                }
            },
            other => {
                self.report(id, format!("'{}' is not a type", other.name()));
                Type::Error
            }
        };
        self.set_type(id, of_message.clone());
        for field in &mut message.fields {
            self.check(&mut field.value);
            let of_field = match &of_message {
                Type::Object(name) => self.field_type(field.id, name, &field.name),
                _ => Type::Error,
            };
            let of_value = self.entry_type(field.value.id, field.optional);
            if !self.substitutions.assign(&of_field, &of_value) {
                let name = &field.name;
                let message = format!(
                    "expected type of field '{name}' is '{of_field}' but provided type is '{of_value}'"
                );
                self.report(field.id, message);
            }
        }
    }

    fn check_comprehension(&mut self, id: ExprId, fold: &mut Comprehension) {
        self.check(&mut fold.range);
        self.check(&mut fold.initial);
        let of_range = self.substitutions.apply(self.type_of(fold.range.id), false);
        let of_accumulator = self.type_of(fold.initial.id).clone();
        self.scopes.push((fold.accumulator.clone(), of_accumulator.clone()));
        let two = fold.second_variable.is_some();
        let (first, second) = match &of_range {
            Type::List(element) if two => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Error),
            Type::Map(entry) => (entry.0.clone(), entry.1.clone()),
            Type::Dyn | Type::Error | Type::Parameter(_) => {
                self.substitutions.assign(&Type::Dyn, &of_range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                self.report(
                    fold.range.id,
                    format!(
                        "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                    ),
                );
                (Type::Error, Type::Error)
            }
        };
        let outside = self.scopes.len();
        self.scopes.push((fold.variable.clone(), first));
        self.scopes.extend(fold.second_variable.clone().map(|variable| (variable, second)));
        self.check(&mut fold.condition);
        self.assert_type(fold.condition.id, &Type::Bool);
        self.check(&mut fold.step);
        self.assert_type(fold.step.id, &of_accumulator);
        self.scopes.truncate(outside);
        self.check(&mut fold.result);
        self.scopes.pop();
        let result = self.substitutions.apply(self.type_of(fold.result.id), false);
        self.set_type(id, result);
    }

    fn assert_type(&mut self, id: ExprId, expected: &Type) {
        let found = self.type_of(id).clone();
        if !self.substitutions.assign(expected, &found) {
            self.mismatch(id, expected, &found);
        }
    }

    fn fresh(&mut self) -> Type {
        self.fresh += 1;
        Type::Parameter(format!("_var{}", self.fresh - 1).into())
    }

    fn type_of(&self, id: ExprId) -> &Type {
        self.types.get(id as usize).unwrap_or(&Type::Error)
    }

    fn set_type(&mut self, id: ExprId, of_node: Type) {
        let of_node = self.substitutions.limited(of_node);
        if let Some(slot) = self.types.get_mut(id as usize) {
            *slot = of_node;
        }
    }

    fn set_reference(&mut self, id: ExprId, reference: Reference) {
        if let Some(slot) = self.references.get_mut(id as usize) {
            *slot = Some(reference);
        }
    }

    fn undeclared(&mut self, id: ExprId, name: &str) {
        self.set_type(id, Type::Error);
        self.report(id, format!("undeclared reference to '{name}' (in container '')"));
    }

    fn mismatch(&mut self, id: ExprId, expected: &Type, found: &Type) {
        self.report(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn report(&mut self, id: ExprId, message: String) {
        let offset = self.positions.get(id as usize).copied().unwrap_or(0);
        self.issues.push(Issue { location: self.source.location(offset), message });
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// `a.b.c`, if the expression has this form.
fn qualified_name(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Ident(name) => Some(name.to_string()),
        ExprKind::Select(select) if !select.test_only => {
            let mut name = qualified_name(&select.operand)?;
            name.push('.');
            name.push_str(&select.field);
            Some(name)
        }
        _ => None,
    }
}

/// Formats the types of arguments as in a call: `string.(int)`.
fn signature(types: &[Type], member: bool) -> String {
    let (target, arguments) = match types.split_first() {
        Some((target, arguments)) if member => (format!("{target}."), arguments),
        _ => (String::new(), types),
    };
    let arguments: Vec<_> = arguments.iter().map(Type::to_string).collect();
    format!("{target}({})", arguments.join(", "))
}
