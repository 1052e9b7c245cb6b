//! Parses tokens into a tree.
//!
//! Messages of syntax errors are those of cel-go's generated parser for the first error
//! (<https://github.com/google/cel-go/blob/master/parser/gen/CEL.g4>). Like it, this parser recovers from one
//! superfluous or missing token, and continues behind operands that do not begin, and fields, indices, lists and maps that
//! break off at their start; other errors end parsing, where the generated parser continues.

use super::lexer::tokens;
use super::literal::unescape;
use super::macros;
use super::nodes::{Dialect, MAX_NODES, Nodes};
use super::token::{Token, TokenKind, quoted};
use crate::ast::{
    Ast, Call, Expr, ExprId, ExprKind, List, Literal, MapEntry, Select, Struct, StructField, operators,
};
use crate::issue::{Issue, Location};
use crate::source::Source;

/// The maximum length of an expression, in code points.
const MAX_CODE_POINTS: usize = 100_000;
/// The maximum recursion of a grammar rule, and the maximum depth of the operator tree.
const MAX_DEPTH: usize = 250;
/// The maximum number of missing operands, and of tokens that are skipped behind each.
const MAX_RECOVERIES: usize = 30;
const MAX_SKIPPED: usize = 256;

/// An expression with more syntax errors is not parsed to its end.
const MAX_SYNTAX_ERRORS: usize = 100;

/// Parses an expression and expands the macros of the dialect.
pub(crate) fn parse(source: &Source<'_>, dialect: Dialect) -> Result<Ast, Vec<Issue>> {
    if source.length > MAX_CODE_POINTS {
        return Err(vec![Issue {
            location: Location::NONE,
            message: format!(
                "expression code point size exceeds limit: size: {}, limit {MAX_CODE_POINTS}",
                source.length
            ),
        }]);
    }
    let (tokens, mut issues) = tokens(source);
    if issues.len() > MAX_SYNTAX_ERRORS {
        // The reference stops at the first error beyond the limit, and counts it.
        issues.truncate(MAX_SYNTAX_ERRORS + 1);
        return Err(issues);
    }
    let mut parser = Parser {
        source,
        tokens: &tokens,
        next: 0,
        nodes: Nodes { source, dialect, positions: vec![0], issues },
        depth: Depth::default(),
        recovering: false,
        followers: Vec::new(),
        recoveries: 0,
        abandoned: false,
    };
    let parsed = parser.expression().and_then(|parsed| {
        parser.expect(TokenKind::End)?;
        Ok(parsed)
    });
    let Nodes { positions, mut issues, .. } = parser.nodes;
    match parsed {
        Ok(parsed) if issues.is_empty() => Ok(Ast { expr: parsed.expr, positions }),
        Ok(_) => Err(issues),
        Err(issue) => {
            issues.extend(issue);
            Err(issues)
        }
    }
}

/// The current recursion depth of each rule.
#[derive(Default)]
struct Depth {
    expression: usize,
    relation: usize,
    arithmetic: usize,
}

/// A node and the depth of its operator tree.
struct Parsed {
    expr: Expr,
    depth: usize,
}

struct Parser<'s, 't> {
    source: &'s Source<'s>,
    tokens: &'t [Token<'s>],
    next: usize,
    nodes: Nodes<'s>,
    depth: Depth,
    /// Whether no token was consumed since a missing one was reported.
    recovering: bool,
    /// The tokens that may follow the parts around the present one, outermost first.
    followers: Vec<TokenKind>,
    /// The number of missing operands.
    recoveries: usize,
    /// Whether the error on its way ends only the operand that it is in.
    abandoned: bool,
}

/// The error that ends parsing; `None` if it is already reported.
type Fatal = Option<Issue>;

type Result<T, E = Fatal> = std::result::Result<T, E>;

impl<'s> Parser<'s, '_> {
    fn peek_at(&self, ahead: usize) -> Token<'s> {
        // The last token is the end, which is never consumed.
        let end = Token { kind: TokenKind::End, text: "", offset: 0, start: 0 };
        self.tokens.get(self.next + ahead).or(self.tokens.last()).copied().unwrap_or(end)
    }

    fn peek(&self) -> Token<'s> {
        self.peek_at(0)
    }

    fn advance(&mut self) -> Token<'s> {
        let token = self.peek();
        self.recovering = false;
        self.next = (self.next + 1).min(self.tokens.len());
        token
    }

    fn take(&mut self, kind: TokenKind) -> Option<Token<'s>> {
        (self.peek().kind == kind).then(|| self.advance())
    }

    /// Consumes a token of a kind. Reports a superfluous token before it, or its absence before a possible follower,
    /// and continues.
    fn expect(&mut self, kind: TokenKind) -> Result<Token<'s>> {
        if let Some(token) = self.take(kind) {
            return Ok(token);
        }
        let found = self.peek();
        let expected = TokenKind::list(&[kind]);
        if self.peek_at(1).kind == kind && found.kind != TokenKind::End {
            self.report(found, format!("extraneous input {} expecting {expected}", found.quoted()));
            self.advance();
            return Ok(self.advance());
        }
        let may_follow = match kind {
            TokenKind::CloseParenthesis | TokenKind::CloseBracket | TokenKind::CloseBrace => {
                is_operator(found.kind) || found.kind == TokenKind::End && self.depth.expression == 1
            }
            TokenKind::Colon => TokenKind::EXPRESSION.contains(&found.kind),
            _ => false,
        };
        if may_follow {
            self.report(found, format!("missing {expected} at {}", found.quoted()));
            self.recovering = true;
            return Ok(Token { kind, text: "", ..found });
        }
        Err(self.syntax_error(found, format!("mismatched input {} expecting {expected}", found.quoted())))
    }

    /// Ensures that the next token is of one of some kinds: reports and skips one superfluous token.
    fn expect_any(&mut self, expected: &[TokenKind]) -> Result<()> {
        let found = self.peek();
        if expected.contains(&found.kind) {
            return Ok(());
        }
        let list = TokenKind::list(expected);
        if found.kind != TokenKind::End && expected.contains(&self.peek_at(1).kind) {
            self.report(found, format!("extraneous input {} expecting {list}", found.quoted()));
            self.advance();
            return Ok(());
        }
        Err(self.syntax_error(found, format!("mismatched input {} expecting {list}", found.quoted())))
    }

    /// Reports an error after which parsing continues.
    fn report(&mut self, at: Token<'_>, message: String) {
        let issue = self.syntax_error(at, message);
        self.nodes.issues.extend(issue);
    }

    /// Creates an error; none right after a missing token, which may be its cause.
    fn syntax_error(&self, at: Token<'_>, message: String) -> Fatal {
        (!self.recovering).then(|| Issue {
            location: self.source.location(at.offset),
            message: format!("Syntax error: {message}"),
        })
    }

    /// The error for tokens that begin no alternative.
    fn no_alternative(&self, from: Token<'s>) -> Fatal {
        let found = self.peek();
        let text = self.source.text().get(from.start..found.start + found.text.len()).unwrap_or_default();
        let reserved = matches!(found.kind, TokenKind::True | TokenKind::False | TokenKind::Null);
        // The generated parser reports a reserved word directly after a dot in this way.
        let message = if reserved && text.len() == found.text.len() + 1 {
            format!("mismatched input {} expecting IDENTIFIER", found.quoted())
        } else {
            format!("no viable alternative at input {}", quoted(text))
        };
        self.syntax_error(found, message)
    }

    /// An error of the expression as a whole.
    fn of_the_whole(message: String) -> Fatal {
        Some(Issue { location: Location::NONE, message })
    }

    fn too_deep() -> Fatal {
        Parser::of_the_whole(format!("expression recursion limit exceeded: {MAX_DEPTH}"))
    }

    fn parsed(&self, expr: Expr, depth: usize) -> Result<Parsed> {
        if depth > MAX_DEPTH {
            return Err(Parser::of_the_whole("max recursion depth exceeded".to_owned()));
        }
        if self.nodes.is_full() {
            let message =
                format!("expression size exceeds limit: {MAX_NODES} nodes after the expansion of macros");
            return Err(Parser::of_the_whole(message));
        }
        Ok(Parsed { expr, depth })
    }

    fn expression(&mut self) -> Result<Parsed> {
        self.depth.expression += 1;
        if self.depth.expression > MAX_DEPTH {
            return Err(Parser::too_deep());
        }
        let condition = self.or()?;
        let parsed = match self.take(TokenKind::Question) {
            None => condition,
            Some(operator) => {
                let id = self.nodes.id(operator.offset);
                let first = self.within(&[TokenKind::Colon], Parser::or)?;
                self.expect(TokenKind::Colon)?;
                let second = self.expression()?;
                let depth = 1 + condition.depth.max(first.depth).max(second.depth);
                let args = vec![condition.expr, first.expr, second.expr];
                self.parsed(call(id, operators::CONDITIONAL, args), depth)?
            }
        };
        self.depth.expression -= 1;
        Ok(parsed)
    }

    fn or(&mut self) -> Result<Parsed> {
        self.logical(TokenKind::Or, operators::LOGICAL_OR, Parser::and)
    }

    fn and(&mut self) -> Result<Parsed> {
        self.logical(TokenKind::And, operators::LOGICAL_AND, |parser| parser.relation(true))
    }

    /// Parses terms joined by one logical operator, as a balanced tree.
    fn logical(
        &mut self,
        kind: TokenKind,
        function: &'static str,
        term: fn(&mut Self) -> Result<Parsed>,
    ) -> Result<Parsed> {
        let first = term(self)?;
        if self.peek().kind != kind {
            return Ok(first);
        }
        let mut depth = first.depth;
        let mut terms = vec![first.expr];
        let mut operators = Vec::new();
        while let Some(operator) = self.take(kind) {
            let next = term(self)?;
            depth = depth.max(next.depth);
            terms.push(next.expr);
            operators.push(self.nodes.id(operator.offset));
        }
        let mut terms = terms.into_iter();
        let expr = balanced(&operators, &mut terms, function);
        self.parsed(expr, depth)
    }

    /// Parses comparisons and their operands.
    fn relation(&mut self, outer: bool) -> Result<Parsed> {
        self.depth.relation += 1;
        if self.depth.relation > MAX_DEPTH {
            return Err(Parser::too_deep());
        }
        let mut left = self.arithmetic(0)?;
        while let Some(function) = relation_operator(self.peek().kind).filter(|_| outer) {
            let operator = self.advance();
            let id = self.nodes.id(operator.offset);
            let right = self.relation(false)?;
            let depth = 1 + left.depth.max(right.depth);
            left = self.parsed(call(id, function, vec![left.expr, right.expr]), depth)?;
        }
        self.depth.relation -= 1;
        Ok(left)
    }

    /// Parses operators that bind at least as strongly as `strength`.
    fn arithmetic(&mut self, strength: u8) -> Result<Parsed> {
        self.depth.arithmetic += 1;
        if self.depth.arithmetic > MAX_DEPTH {
            return Err(Parser::too_deep());
        }
        let mut left = self.unary()?;
        while let Some((function, binds)) = arithmetic_operator(self.peek().kind) {
            if binds < strength {
                break;
            }
            let operator = self.advance();
            let id = self.nodes.id(operator.offset);
            let right = self.arithmetic(binds + 1)?;
            let depth = 1 + left.depth.max(right.depth);
            left = self.parsed(call(id, function, vec![left.expr, right.expr]), depth)?;
        }
        self.depth.arithmetic -= 1;
        Ok(left)
    }

    fn unary(&mut self) -> Result<Parsed> {
        if let Err(missing) = self.expect_any(TokenKind::EXPRESSION) {
            return self.missing_operand(missing, is_operator);
        }
        let first = self.peek();
        let function = match first.kind {
            TokenKind::Not => operators::LOGICAL_NOT,
            // A minus before a number is part of the number.
            TokenKind::Minus if !matches!(self.peek_at(1).kind, TokenKind::Int | TokenKind::Float) => {
                operators::NEGATE
            }
            _ => return self.member(),
        };
        let (mut count, mut last) = (0, first);
        while let Some(taken) = self.take(first.kind) {
            (count, last) = (count + 1, taken);
        }
        let starts_member = |kind| TokenKind::EXPRESSION.contains(&kind) && kind != TokenKind::Not;
        if !starts_member(self.peek().kind) {
            if first.kind == TokenKind::Minus {
                let missing = self.no_alternative(last);
                // The sign is an operator then, without an operand before it.
                self.next -= 1;
                return self.missing_operand(missing, is_operator);
            }
            let found = self.peek();
            let expected = TokenKind::list(TokenKind::EXPRESSION);
            let missing =
                self.syntax_error(found, format!("extraneous input {} expecting {expected}", found.quoted()));
            return self.missing_operand(missing, is_operator);
        }
        if count % 2 == 0 {
            return self.member();
        }
        let id = self.nodes.id(first.offset);
        let operand = self.member()?;
        self.parsed(call(id, function, vec![operand.expr]), operand.depth)
    }

    /// An error that ends only the operand, or the part of one, that it is in.
    fn abandon<T>(&mut self, missing: Fatal) -> Result<T> {
        self.abandoned = true;
        Err(missing)
    }

    /// Reports an operand that is missing, skips the tokens up to one that may follow it, such as an operator, and
    /// continues there.
    fn missing_operand(&mut self, missing: Fatal, is_operator: fn(TokenKind) -> bool) -> Result<Parsed> {
        self.nodes.issues.extend(missing);
        if self.recoveries == MAX_RECOVERIES {
            self.recovering = false;
            let message = format!("error recovery attempt limit exceeded: {MAX_RECOVERIES}");
            return Err(self.syntax_error(self.peek(), message));
        }
        self.recoveries += 1;
        self.recovering = true;
        let mut skipped = 0;
        while !self.may_follow_operand(self.peek().kind, is_operator) {
            if skipped == MAX_SKIPPED {
                let message = format!("error recovery token lookahead limit exceeded: {MAX_SKIPPED}");
                return Err(Parser::of_the_whole(message));
            }
            skipped += 1;
            self.next += 1;
        }
        let expr = self.nodes.node(self.peek().offset, ExprKind::Literal(Literal::Null));
        self.parsed(expr, 0)
    }

    fn may_follow_operand(&self, kind: TokenKind, is_operator: fn(TokenKind) -> bool) -> bool {
        kind == TokenKind::End
            || is_operator(kind)
            || kind == TokenKind::Minus
            || self.followers.contains(&kind)
    }

    /// Parses a part of the expression behind which the tokens may follow.
    fn within<T>(
        &mut self,
        followers: &[TokenKind],
        parse: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let before = self.followers.len();
        self.followers.extend_from_slice(followers);
        let parsed = parse(self);
        self.followers.truncate(before);
        parsed
    }

    fn member(&mut self) -> Result<Parsed> {
        let mut parsed = match self.primary() {
            Err(missing) if std::mem::take(&mut self.abandoned) => {
                self.missing_operand(missing, is_operator)?
            }
            parsed => parsed?,
        };
        loop {
            let member = match self.peek().kind {
                TokenKind::Dot => self.field_or_method(parsed),
                TokenKind::OpenBracket => self.index(parsed),
                _ => return Ok(parsed),
            };
            parsed = match member {
                Err(missing) if std::mem::take(&mut self.abandoned) => {
                    return self.missing_operand(missing, follows_member);
                }
                member => member?,
            };
        }
    }

    fn field_or_method(&mut self, operand: Parsed) -> Result<Parsed> {
        let dot = self.advance();
        let optional = self.take(TokenKind::Question).is_some();
        let name = self.peek();
        if !matches!(name.kind, TokenKind::Identifier | TokenKind::EscapedIdentifier) {
            let missing = match optional {
                true => match self.expect_any(&[TokenKind::Identifier, TokenKind::EscapedIdentifier]) {
                    Err(issue) => issue,
                    Ok(()) => self.no_alternative(dot),
                },
                false => self.no_alternative(dot),
            };
            return self.abandon(missing);
        }
        self.advance();
        if name.kind == TokenKind::EscapedIdentifier {
            let expr = self.nodes.error(name.offset, "unsupported syntax: '`'");
            return self.parsed(expr, operand.depth + 1);
        }
        if optional && self.nodes.dialect == Dialect::Plain {
            let expr = self.nodes.error(dot.offset, "unsupported syntax '.?'");
            return self.parsed(expr, operand.depth + 1);
        }
        if optional {
            let id = self.nodes.id(dot.offset);
            let field = self.nodes.node(name.offset, ExprKind::Literal(Literal::String(name.text.into())));
            let args = vec![operand.expr, field];
            return self.parsed(call(id, operators::OPTIONAL_SELECT, args), operand.depth + 1);
        }
        if let Some(open) = self.take(TokenKind::OpenParenthesis) {
            let (args, depth) = self.arguments()?;
            let depth = 1 + operand.depth.max(depth);
            let expr = self.call_or_macro(open.offset, name.text.into(), Some(operand.expr), args);
            return self.parsed(expr, depth);
        }
        let select = Select { operand: Box::new(operand.expr), field: name.text.into(), test_only: false };
        let expr = self.nodes.node(dot.offset, ExprKind::Select(select));
        self.parsed(expr, operand.depth + 1)
    }

    /// Takes the sign of an optional, which not all dialects have.
    fn optional_sign(&mut self, shown: &str) -> bool {
        let Some(sign) = self.take(TokenKind::Question) else { return false };
        if self.nodes.dialect == Dialect::Plain {
            self.nodes.error(sign.offset, format!("unsupported syntax '{shown}'"));
        }
        true
    }

    fn index(&mut self, operand: Parsed) -> Result<Parsed> {
        let open = self.advance();
        let id = self.nodes.id(open.offset);
        let function = match self.optional_sign("[?") {
            true => operators::OPTIONAL_INDEX,
            false => {
                let index = self.expect_any(&with(TokenKind::EXPRESSION, &[TokenKind::Question]));
                index.or_else(|missing| self.abandon(missing))?;
                operators::INDEX
            }
        };
        let index = self.within(&[TokenKind::CloseBracket], Parser::expression)?;
        self.expect(TokenKind::CloseBracket)?;
        let depth = 1 + operand.depth.max(index.depth);
        self.parsed(call(id, function, vec![operand.expr, index.expr]), depth)
    }

    /// Parses the arguments of a call after its opening parenthesis, to the end.
    fn arguments(&mut self) -> Result<(Vec<Expr>, usize)> {
        let mut args = Vec::new();
        let mut depth = 0;
        if self.take(TokenKind::CloseParenthesis).is_some() {
            return Ok((args, depth));
        }
        self.expect_any(&with(TokenKind::EXPRESSION, &[TokenKind::CloseParenthesis]))?;
        if self.take(TokenKind::CloseParenthesis).is_some() {
            return Ok((args, depth));
        }
        loop {
            let argument =
                self.within(&[TokenKind::Comma, TokenKind::CloseParenthesis], Parser::expression)?;
            depth = depth.max(argument.depth);
            args.push(argument.expr);
            if self.take(TokenKind::Comma).is_none() {
                self.expect(TokenKind::CloseParenthesis)?;
                return Ok((args, depth));
            }
        }
    }

    fn call_or_macro(
        &mut self,
        position: u32,
        function: Box<str>,
        target: Option<Expr>,
        args: Vec<Expr>,
    ) -> Expr {
        match macros::expand(&mut self.nodes, position, &function, target, args) {
            macros::Expansion::Expr(expr) => expr,
            macros::Expansion::None(target, args) => {
                let target = target.map(Box::new);
                self.nodes.node(position, ExprKind::Call(Call { function, target, args }))
            }
        }
    }

    fn primary(&mut self) -> Result<Parsed> {
        let token = self.peek();
        match token.kind {
            TokenKind::OpenParenthesis => {
                self.advance();
                let parsed = self.within(&[TokenKind::CloseParenthesis], Parser::expression)?;
                self.expect(TokenKind::CloseParenthesis)?;
                Ok(parsed)
            }
            TokenKind::OpenBracket => self.list(),
            TokenKind::OpenBrace => self.map(),
            TokenKind::Dot | TokenKind::Identifier => self.identifier(),
            _ => self.literal(),
        }
    }

    fn list(&mut self) -> Result<Parsed> {
        let open = self.advance();
        let id = self.nodes.id(open.offset);
        let mut list = List { elements: Vec::new(), optional_indices: Vec::new() };
        let mut depth = 0;
        let element = with(TokenKind::EXPRESSION, &[TokenKind::Question]);
        let first = self.expect_any(&with(&element, &[TokenKind::CloseBracket, TokenKind::Comma]));
        first.or_else(|missing| self.abandon(missing))?;
        while element.contains(&self.peek().kind) {
            if self.optional_sign("?") {
                list.optional_indices.push(u32::try_from(list.elements.len()).unwrap_or(u32::MAX));
            }
            let parsed = self.within(&[TokenKind::Comma, TokenKind::CloseBracket], Parser::expression)?;
            depth = depth.max(parsed.depth);
            list.elements.push(parsed.expr);
            if !self.another_entry(TokenKind::CloseBracket, &element)? {
                break;
            }
        }
        self.take(TokenKind::Comma);
        self.expect(TokenKind::CloseBracket)?;
        self.parsed(Expr { id, kind: ExprKind::List(list) }, depth)
    }

    fn map(&mut self) -> Result<Parsed> {
        let open = self.advance();
        let id = self.nodes.id(open.offset);
        let mut entries = Vec::new();
        let mut depth = 0;
        let start = with(TokenKind::EXPRESSION, &[TokenKind::Question]);
        let first = self.expect_any(&with(&start, &[TokenKind::CloseBrace, TokenKind::Comma]));
        first.or_else(|missing| self.abandon(missing))?;
        while start.contains(&self.peek().kind) {
            let optional = self.optional_sign("?");
            let key = self.within(&[TokenKind::Colon], Parser::expression)?;
            let colon = self.expect(TokenKind::Colon)?;
            let id = self.nodes.id(colon.offset);
            let value = self.within(&[TokenKind::Comma, TokenKind::CloseBrace], Parser::expression)?;
            depth = depth.max(key.depth).max(value.depth);
            entries.push(MapEntry { id, key: key.expr, value: value.expr, optional });
            if !self.another_entry(TokenKind::CloseBrace, &start)? {
                break;
            }
        }
        self.take(TokenKind::Comma);
        self.expect(TokenKind::CloseBrace)?;
        self.parsed(Expr { id, kind: ExprKind::Map(entries) }, depth)
    }

    /// Whether another entry follows; consumes the comma, unless it precedes the end.
    fn another_entry(&mut self, close: TokenKind, start: &[TokenKind]) -> Result<bool> {
        self.expect_any(&[close, TokenKind::Comma])?;
        let another = self.peek().kind == TokenKind::Comma && start.contains(&self.peek_at(1).kind);
        if another {
            self.advance();
        }
        Ok(another)
    }

    /// Parses a variable, a function call or a message; each may begin with a dot.
    fn identifier(&mut self) -> Result<Parsed> {
        let first = self.peek();
        let leading = if self.take(TokenKind::Dot).is_some() { "." } else { "" };
        if self.peek().kind != TokenKind::Identifier {
            return Err(self.no_alternative(first));
        }
        // `a.b{`: only a message's name has this form.
        let mut names = 1;
        while self.peek_at(2 * names - 1).kind == TokenKind::Dot
            && self.peek_at(2 * names).kind == TokenKind::Identifier
        {
            names += 1;
        }
        if self.peek_at(2 * names - 1).kind == TokenKind::OpenBrace {
            return self.message(leading, names);
        }
        let name = self.advance();
        let call = self.take(TokenKind::OpenParenthesis);
        if is_reserved(name.text) {
            let expr = self.nodes.error(first.offset, format!("reserved identifier: {}", name.text));
            if call.is_some() {
                self.arguments()?;
            }
            return self.parsed(expr, 0);
        }
        let full_name = format!("{leading}{}", name.text);
        match call {
            Some(open) => {
                let (args, depth) = self.arguments()?;
                let expr = self.call_or_macro(open.offset, full_name.into(), None, args);
                self.parsed(expr, depth)
            }
            None => {
                let expr = self.nodes.node(name.offset, ExprKind::Ident(full_name.into()));
                self.parsed(expr, 0)
            }
        }
    }

    fn message(&mut self, leading: &str, names: usize) -> Result<Parsed> {
        let mut type_name = leading.to_owned();
        for index in 0..names {
            if index > 0 {
                self.advance();
                type_name.push('.');
            }
            type_name.push_str(self.advance().text);
        }
        let open = self.advance();
        let id = self.nodes.id(open.offset);
        let mut fields = Vec::new();
        let mut depth = 0;
        let start = [TokenKind::Question, TokenKind::Identifier, TokenKind::EscapedIdentifier];
        let first = self.expect_any(&with(&start, &[TokenKind::CloseBrace, TokenKind::Comma]));
        first.or_else(|missing| self.abandon(missing))?;
        while start.contains(&self.peek().kind) {
            let optional = self.optional_sign("?");
            self.expect_any(&[TokenKind::Identifier, TokenKind::EscapedIdentifier])?;
            let name = self.advance();
            if name.kind == TokenKind::EscapedIdentifier {
                self.nodes.error(name.offset, "unsupported syntax: '`'");
            }
            let colon = self.expect(TokenKind::Colon)?;
            let id = self.nodes.id(colon.offset);
            let value = self.within(&[TokenKind::Comma, TokenKind::CloseBrace], Parser::expression)?;
            depth = depth.max(value.depth);
            fields.push(StructField { id, name: name.text.into(), value: value.expr, optional });
            if !self.another_entry(TokenKind::CloseBrace, &start)? {
                break;
            }
        }
        self.take(TokenKind::Comma);
        self.expect(TokenKind::CloseBrace)?;
        let message = Struct { type_name: type_name.into(), fields };
        self.parsed(Expr { id, kind: ExprKind::Struct(message) }, depth)
    }

    fn literal(&mut self) -> Result<Parsed> {
        let first = self.peek();
        let sign = self.take(TokenKind::Minus).map_or("", |token| token.text);
        let token = self.advance();
        let literal = match token.kind {
            TokenKind::True => Ok(Literal::Bool(true)),
            TokenKind::False => Ok(Literal::Bool(false)),
            TokenKind::Null => Ok(Literal::Null),
            TokenKind::Int => {
                let (digits, radix) = radix(token.text);
                i64::from_str_radix(&format!("{sign}{digits}"), radix)
                    .map(Literal::Int)
                    .map_err(|_| "invalid int literal")
            }
            TokenKind::Uint => {
                let (digits, radix) = radix(token.text.trim_end_matches(['u', 'U']));
                u64::from_str_radix(digits, radix).map(Literal::Uint).map_err(|_| "invalid uint literal")
            }
            TokenKind::Float => match format!("{sign}{}", token.text).parse() {
                Ok(value) if f64::is_finite(value) => Ok(Literal::Double(value)),
                _ => Err("invalid double literal"),
            },
            TokenKind::String => unescape(token.text, false)
                .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "invalid unicode code point"))
                .map(|text| Literal::String(text.into())),
            TokenKind::Bytes => unescape(token.text.get(1..).unwrap_or_default(), true)
                .map(|bytes| Literal::Bytes(bytes.into())),
            _ => return Err(self.no_alternative(first)),
        };
        let expr = match literal {
            Ok(literal) => self.nodes.node(first.offset, ExprKind::Literal(literal)),
            Err(message) => self.nodes.error(first.offset, message),
        };
        self.parsed(expr, 0)
    }
}

fn call(id: ExprId, function: &str, args: Vec<Expr>) -> Expr {
    Expr { id, kind: ExprKind::Call(Call { function: function.into(), target: None, args }) }
}

/// Builds a tree of minimum depth from terms and operators. There is one term more than operators.
fn balanced(operators: &[ExprId], terms: &mut std::vec::IntoIter<Expr>, function: &str) -> Expr {
    // Of an even number of operators, the later middle one is the root.
    let middle = operators.len() / 2;
    match (operators.get(..middle), operators.get(middle), operators.get(middle + 1..)) {
        (Some(before), Some(id), Some(after)) => {
            let left = balanced(before, terms, function);
            let right = balanced(after, terms, function);
            call(*id, function, vec![left, right])
        }
        _ => terms.next().unwrap_or(Expr { id: 0, kind: ExprKind::Unspecified }),
    }
}

fn with(kinds: &[TokenKind], more: &[TokenKind]) -> Vec<TokenKind> {
    [kinds, more].concat()
}

fn radix(text: &str) -> (&str, u32) {
    text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16))
}

fn relation_operator(kind: TokenKind) -> Option<&'static str> {
    Some(match kind {
        TokenKind::Equals => operators::EQUALS,
        TokenKind::NotEquals => operators::NOT_EQUALS,
        TokenKind::Less => operators::LESS,
        TokenKind::LessEquals => operators::LESS_EQUALS,
        TokenKind::Greater => operators::GREATER,
        TokenKind::GreaterEquals => operators::GREATER_EQUALS,
        TokenKind::In => operators::IN,
        _ => return None,
    })
}

fn arithmetic_operator(kind: TokenKind) -> Option<(&'static str, u8)> {
    Some(match kind {
        TokenKind::Plus => (operators::ADD, 1),
        TokenKind::Minus => (operators::SUBTRACT, 1),
        TokenKind::Star => (operators::MULTIPLY, 2),
        TokenKind::Slash => (operators::DIVIDE, 2),
        TokenKind::Percent => (operators::MODULO, 2),
        _ => return None,
    })
}

/// Whether a token may follow a complete operand.
fn is_operator(kind: TokenKind) -> bool {
    relation_operator(kind).is_some()
        || arithmetic_operator(kind).is_some()
        || matches!(
            kind,
            TokenKind::And | TokenKind::Or | TokenKind::Question | TokenKind::Dot | TokenKind::OpenBracket
        )
}

/// Whether a token may follow a complete operand that no field or index follows.
fn follows_member(kind: TokenKind) -> bool {
    is_operator(kind) && !matches!(kind, TokenKind::Dot | TokenKind::OpenBracket)
}

/// Words that are reserved and cannot name a variable or function.
fn is_reserved(name: &str) -> bool {
    matches!(
        name,
        "as" | "break"
            | "const"
            | "continue"
            | "else"
            | "false"
            | "for"
            | "function"
            | "if"
            | "import"
            | "in"
            | "let"
            | "loop"
            | "package"
            | "namespace"
            | "null"
            | "return"
            | "true"
            | "var"
            | "void"
            | "while"
    )
}
