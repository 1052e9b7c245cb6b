//! Expands macros.
//!
//! The expansions are defined in <https://github.com/google/cel-spec/blob/master/doc/langdef.md#macros> and, for
//! extensions, in <https://github.com/google/cel-go/tree/master/ext>. Added nodes have the position of the call.

use super::nodes::{Dialect, Nodes};
use crate::ast::{
    ACCUMULATOR, Call, Comprehension, Expr, ExprId, ExprKind, List, Literal, MapEntry, Select, Struct,
    StructField, operators,
};

/// The result of an expansion.
pub(super) enum Expansion {
    /// The expansion of a macro, or a placeholder for an error.
    Expr(Expr),
    /// The call is not a macro; its target and arguments are returned.
    None(Option<Expr>, Vec<Expr>),
}

/// The variable of folds that do not iterate; source text cannot name it.
const UNUSED: &str = "#unused";
/// The variable of `sortBy` for its list.
const SORTED: &str = "@__sortBy_input__";
/// A former name of the accumulator, still reserved.
const OLD_ACCUMULATOR: &str = "__result__";

/// Expands a call if it is a macro.
pub(super) fn expand(
    nodes: &mut Nodes<'_>,
    position: u32,
    function: &str,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Expansion {
    let name_and_arity = (function, target.is_some(), args.len());
    let is_macro = matches!(
        name_and_arity,
        ("has", false, 1)
            | (
                "all"
                    | "exists"
                    | "existsOne"
                    | "exists_one"
                    | "map"
                    | "transformList"
                    | "transformMap"
                    | "transformMapEntry",
                true,
                3
            )
            | ("all" | "exists" | "exists_one" | "map" | "filter", true, 2)
            | ("transformList" | "transformMap" | "transformMapEntry", true, 4)
            | ("optMap" | "optFlatMap" | "sortBy", true, 2)
    );
    let Dialect::Extended { has_bindings, has_lists } = nodes.dialect else {
        return Expansion::None(target, args);
    };
    let is_bind = has_bindings
        && name_and_arity == ("bind", true, 3)
        && matches!(&target, Some(Expr { kind: ExprKind::Ident(name), .. }) if &**name == "cel");
    let is_of_lists = name_and_arity == ("sortBy", true, 2);
    if !is_bind && (!is_macro || is_of_lists && !has_lists) {
        return Expansion::None(target, args);
    }
    let mut factory = Factory { nodes, position };
    let expanded = match target {
        None => factory.has(args),
        Some(_) if is_bind => factory.cel_bind(args),
        Some(target) => factory.receiver(function, target, args),
    };
    Expansion::Expr(expanded.unwrap_or_else(|(position, message)| nodes.error(position, message)))
}

type Expanded<T = Expr> = Result<T, (u32, String)>;

struct Factory<'n, 's> {
    nodes: &'n mut Nodes<'s>,
    position: u32,
}

impl Factory<'_, '_> {
    fn receiver(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Expanded {
        let two_variables = args.len() >= 3 && function != "map";
        let mut args = args.into_iter();
        let first = self.next(&mut args)?;
        match function {
            "all" | "exists" | "existsOne" | "exists_one" => {
                let variables = if two_variables {
                    let second = self.next(&mut args)?;
                    self.two_variables(&first, &second)?
                } else {
                    (self.variable(&first, "argument must be a simple name")?, None)
                };
                let predicate = self.next(&mut args)?;
                Ok(self.quantifier(function, target, variables, predicate))
            }
            "map" => {
                let variable = self.variable(&first, "argument is not an identifier")?;
                let second = self.next(&mut args)?;
                let (filter, transform) = match args.next() {
                    Some(transform) => (Some(second), transform),
                    None => (None, second),
                };
                Ok(self.list_of(target, (variable, None), filter, transform))
            }
            "filter" => {
                let variable = self.variable(&first, "argument is not an identifier")?;
                let predicate = self.next(&mut args)?;
                Ok(self.list_of(target, (variable, None), Some(predicate), first))
            }
            "transformList" | "transformMap" | "transformMapEntry" => {
                let second = self.next(&mut args)?;
                let variables = self.two_variables(&first, &second)?;
                let third = self.next(&mut args)?;
                let (filter, transform) = match args.next() {
                    Some(transform) => (Some(third), transform),
                    None => (None, third),
                };
                if function == "transformList" {
                    return Ok(self.list_of(target, variables, filter, transform));
                }
                let mut inserted = vec![self.accumulator()];
                if function == "transformMap" {
                    inserted.push(self.node(ExprKind::Ident(variables.0.clone())));
                }
                inserted.push(transform);
                let step = self.call("cel.@mapInsert", inserted);
                let step = self.filtered(filter, step);
                let initial = self.node(ExprKind::Map(Vec::new()));
                Ok(self.collect(target, variables, initial, step))
            }
            "optMap" | "optFlatMap" => {
                let ExprKind::Ident(variable) = &first.kind else {
                    let message = format!("{function}() variable name must be a simple identifier");
                    return Err((self.nodes.position(first.id), message));
                };
                let variable = variable.clone();
                let body = self.next(&mut args)?;
                Ok(self.optional(function, target, variable, body))
            }
            _ => {
                let key = self.next(&mut args)?;
                self.sort_by(target, first, key)
            }
        }
    }

    fn has(&mut self, args: Vec<Expr>) -> Expanded {
        let argument = self.next(&mut args.into_iter())?;
        match argument.kind {
            ExprKind::Select(Select { operand, field, .. }) => {
                Ok(self.node(ExprKind::Select(Select { operand, field, test_only: true })))
            }
            _ => Err((self.nodes.position(argument.id), "invalid argument to has() macro".to_owned())),
        }
    }

    /// The next argument; the number of arguments is already checked.
    fn next(&self, args: &mut impl Iterator<Item = Expr>) -> Expanded {
        args.next().ok_or_else(|| (self.position, "wrong number of arguments".to_owned()))
    }

    fn variable(&self, argument: &Expr, otherwise: &str) -> Expanded<Box<str>> {
        let error = |message: &str| Err((self.nodes.position(argument.id), message.to_owned()));
        match &argument.kind {
            ExprKind::Ident(name) if **name == *OLD_ACCUMULATOR || **name == *ACCUMULATOR => {
                error("iteration variable overwrites accumulator variable")
            }
            ExprKind::Ident(name) => Ok(name.clone()),
            _ => error(otherwise),
        }
    }

    fn two_variables(&self, first: &Expr, second: &Expr) -> Expanded<(Box<str>, Option<Box<str>>)> {
        const NO_NAME: &str = "argument must be a simple name";
        match (&first.kind, &second.kind) {
            (ExprKind::Ident(one), ExprKind::Ident(other)) if one == other => {
                Err((self.nodes.position(second.id), format!("duplicate variable name: {one}")))
            }
            _ => Ok((self.variable(first, NO_NAME)?, Some(self.variable(second, NO_NAME)?))),
        }
    }

    fn quantifier(
        &mut self,
        function: &str,
        range: Expr,
        (variable, second_variable): (Box<str>, Option<Box<str>>),
        predicate: Expr,
    ) -> Expr {
        let (initial, condition, step, result) = match function {
            "all" => {
                let initial = self.literal(Literal::Bool(true));
                let accumulator = self.accumulator();
                let condition = self.call(operators::NOT_STRICTLY_FALSE, vec![accumulator]);
                let accumulator = self.accumulator();
                let step = self.call(operators::LOGICAL_AND, vec![accumulator, predicate]);
                (initial, condition, step, self.accumulator())
            }
            "exists" => {
                let initial = self.literal(Literal::Bool(false));
                let accumulator = self.accumulator();
                let not = self.call(operators::LOGICAL_NOT, vec![accumulator]);
                let condition = self.call(operators::NOT_STRICTLY_FALSE, vec![not]);
                let accumulator = self.accumulator();
                let step = self.call(operators::LOGICAL_OR, vec![accumulator, predicate]);
                (initial, condition, step, self.accumulator())
            }
            _ => {
                let initial = self.literal(Literal::Int(0));
                let condition = self.literal(Literal::Bool(true));
                let (accumulator, one) = (self.accumulator(), self.literal(Literal::Int(1)));
                let more = self.call(operators::ADD, vec![accumulator, one]);
                let same = self.accumulator();
                let step = self.call(operators::CONDITIONAL, vec![predicate, more, same]);
                let (accumulator, one) = (self.accumulator(), self.literal(Literal::Int(1)));
                (initial, condition, step, self.call(operators::EQUALS, vec![accumulator, one]))
            }
        };
        let accumulator = ACCUMULATOR.into();
        self.fold(Comprehension {
            range,
            variable,
            second_variable,
            accumulator,
            initial,
            condition,
            step,
            result,
        })
    }

    fn list_of(
        &mut self,
        range: Expr,
        variables: (Box<str>, Option<Box<str>>),
        filter: Option<Expr>,
        element: Expr,
    ) -> Expr {
        let initial = self.list(Vec::new());
        let accumulator = self.accumulator();
        let elements = self.list(vec![element]);
        let step = self.call(operators::ADD, vec![accumulator, elements]);
        let step = self.filtered(filter, step);
        self.collect(range, variables, initial, step)
    }

    fn filtered(&mut self, filter: Option<Expr>, step: Expr) -> Expr {
        match filter {
            None => step,
            Some(filter) => {
                let same = self.accumulator();
                self.call(operators::CONDITIONAL, vec![filter, step, same])
            }
        }
    }

    fn collect(
        &mut self,
        range: Expr,
        (variable, second_variable): (Box<str>, Option<Box<str>>),
        initial: Expr,
        step: Expr,
    ) -> Expr {
        let condition = self.literal(Literal::Bool(true));
        let result = self.accumulator();
        let accumulator = ACCUMULATOR.into();
        self.fold(Comprehension {
            range,
            variable,
            second_variable,
            accumulator,
            initial,
            condition,
            step,
            result,
        })
    }

    /// Binds a variable to a value for an expression, by a fold that does not iterate.
    fn bind(&mut self, accumulator: Box<str>, value: Expr, result: Expr) -> Expr {
        let range = self.list(Vec::new());
        let condition = self.literal(Literal::Bool(false));
        let step = self.node(ExprKind::Ident(accumulator.clone()));
        let variable = UNUSED.into();
        let fold = Comprehension {
            range,
            variable,
            second_variable: None,
            accumulator,
            initial: value,
            condition,
            step,
            result,
        };
        self.fold(fold)
    }

    /// `cel.bind(variable, value, result)`: <https://pkg.go.dev/github.com/google/cel-go/ext#Bindings>.
    fn cel_bind(&mut self, args: Vec<Expr>) -> Expanded {
        let mut args = args.into_iter();
        let variable = self.next(&mut args)?;
        let ExprKind::Ident(name) = variable.kind else {
            let message = "cel.bind() variable names must be simple identifiers".to_owned();
            return Err((self.nodes.position(variable.id), message));
        };
        let value = self.next(&mut args)?;
        let result = self.next(&mut args)?;
        Ok(self.bind(name, value, result))
    }

    fn optional(&mut self, function: &str, target: Expr, variable: Box<str>, body: Expr) -> Expr {
        let copy = self.copy(&target);
        let has_value = self.method("hasValue", target, Vec::new());
        let value = self.method("value", copy, Vec::new());
        let bound = self.bind(variable, value, body);
        let some = if function == "optMap" { self.call("optional.of", vec![bound]) } else { bound };
        let none = self.call("optional.none", Vec::new());
        self.call(operators::CONDITIONAL, vec![has_value, some, none])
    }

    fn sort_by(&mut self, target: Expr, variable: Expr, key: Expr) -> Expanded {
        use ExprKind as K;
        if !matches!(target.kind, K::List(_) | K::Select(_) | K::Ident(_) | K::Comprehension(_) | K::Call(_))
        {
            let message =
                "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return Err((self.nodes.position(target.id), message.to_owned()));
        }
        let variable = self.variable(&variable, "argument is not an identifier")?;
        let list = self.node(ExprKind::Ident(SORTED.into()));
        let keys = self.list_of(list, (variable, None), None, key);
        let list = self.node(ExprKind::Ident(SORTED.into()));
        let sorted = self.method("@sortByAssociatedKeys", list, vec![keys]);
        Ok(self.bind(SORTED.into(), target, sorted))
    }

    fn node(&mut self, kind: ExprKind) -> Expr {
        self.nodes.node(self.position, kind)
    }

    fn literal(&mut self, literal: Literal) -> Expr {
        self.node(ExprKind::Literal(literal))
    }

    fn accumulator(&mut self) -> Expr {
        self.node(ExprKind::Ident(ACCUMULATOR.into()))
    }

    fn list(&mut self, elements: Vec<Expr>) -> Expr {
        self.node(ExprKind::List(List { elements, optional_indices: Vec::new() }))
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        self.node(ExprKind::Call(Call { function: function.into(), target: None, args }))
    }

    fn method(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Expr {
        let target = Some(Box::new(target));
        self.node(ExprKind::Call(Call { function: function.into(), target, args }))
    }

    fn fold(&mut self, fold: Comprehension) -> Expr {
        self.node(ExprKind::Comprehension(Box::new(fold)))
    }

    /// Copies a tree with new ids. When the maximum number of nodes is reached, copying stops, and the parser rejects
    /// the expression.
    fn copy(&mut self, expr: &Expr) -> Expr {
        let id = self.copy_id(expr.id);
        if self.nodes.is_full() {
            return Expr { id, kind: ExprKind::Unspecified };
        }
        let kind = match &expr.kind {
            ExprKind::Unspecified => ExprKind::Unspecified,
            ExprKind::Literal(literal) => ExprKind::Literal(literal.clone()),
            ExprKind::Ident(name) => ExprKind::Ident(name.clone()),
            ExprKind::Select(select) => ExprKind::Select(Select {
                operand: Box::new(self.copy(&select.operand)),
                field: select.field.clone(),
                test_only: select.test_only,
            }),
            ExprKind::Call(call) => ExprKind::Call(Call {
                function: call.function.clone(),
                target: call.target.as_ref().map(|target| Box::new(self.copy(target))),
                args: call.args.iter().map(|argument| self.copy(argument)).collect(),
            }),
            ExprKind::List(list) => ExprKind::List(List {
                elements: list.elements.iter().map(|element| self.copy(element)).collect(),
                optional_indices: list.optional_indices.clone(),
            }),
            ExprKind::Map(entries) => {
                ExprKind::Map(entries.iter().map(|entry| self.copy_entry(entry)).collect())
            }
            ExprKind::Struct(message) => ExprKind::Struct(Struct {
                type_name: message.type_name.clone(),
                fields: message.fields.iter().map(|field| self.copy_field(field)).collect(),
            }),
            ExprKind::Comprehension(fold) => ExprKind::Comprehension(Box::new(Comprehension {
                range: self.copy(&fold.range),
                variable: fold.variable.clone(),
                second_variable: fold.second_variable.clone(),
                accumulator: fold.accumulator.clone(),
                initial: self.copy(&fold.initial),
                condition: self.copy(&fold.condition),
                step: self.copy(&fold.step),
                result: self.copy(&fold.result),
            })),
        };
        Expr { id, kind }
    }

    fn copy_entry(&mut self, entry: &MapEntry) -> MapEntry {
        let id = self.copy_id(entry.id);
        MapEntry { id, key: self.copy(&entry.key), value: self.copy(&entry.value), optional: entry.optional }
    }

    fn copy_field(&mut self, field: &StructField) -> StructField {
        let id = self.copy_id(field.id);
        StructField { id, name: field.name.clone(), value: self.copy(&field.value), optional: field.optional }
    }

    fn copy_id(&mut self, id: ExprId) -> ExprId {
        let position = self.nodes.position(id);
        self.nodes.id(position)
    }
}
