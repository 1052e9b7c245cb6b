//! Parses templates. The grammar is defined only by the Go parser; this one accepts and rejects the same templates.

use super::literal::unquote;
use super::node::{Filter, Node, Slice};
use crate::Value;
use pintle_go_forms::unicode_name;

/// The maximum nesting depth of filters within operands of filters. Practical templates need one or two.
const MAX_DEPTH: usize = 16;

/// The nodes of a template: texts and actions.
pub(super) fn parse(template: &str) -> Result<Vec<Node>, String> {
    parse_at(template, 0)
}

fn parse_at(template: &str, depth: usize) -> Result<Vec<Node>, String> {
    if depth > MAX_DEPTH {
        return Err("unterminated filter".to_owned());
    }
    let mut parser = Parser { input: template, position: 0, depth };
    let mut nodes = Vec::new();
    loop {
        let rest = parser.rest();
        let (text, has_action) = match rest.split_once('{') {
            Some((text, _)) => (text, true),
            None => (rest, false),
        };
        if !text.is_empty() {
            nodes.push(Node::Literal(text.into()));
        }
        if !has_action {
            return Ok(nodes);
        }
        parser.position += text.len() + 1;
        nodes.push(parser.action()?);
    }
}

struct Parser<'a> {
    input: &'a str,
    position: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    /// Parses an action, from after its opening brace through its closing one.
    fn action(&mut self) -> Result<Node, String> {
        let mut nodes = Vec::new();
        loop {
            let rest = self.rest();
            if rest.starts_with('}') {
                self.position += 1;
                return Ok(Node::List(nodes.into()));
            }
            if rest.starts_with("[?(") {
                nodes.push(self.filter()?);
                continue;
            }
            if rest.starts_with("..") {
                self.recursive(&mut nodes)?;
                continue;
            }
            let start = self.position;
            match self.next() {
                None | Some('\r' | '\n') => return Err("unclosed action".to_owned()),
                // The object itself is the starting point of every path.
                Some(' ' | '@' | '$') => {}
                Some('[') => self.array(&mut nodes)?,
                Some(quote @ ('"' | '\'')) => nodes.push(self.quoted(start, quote)?),
                Some('.') => nodes.push(self.field()),
                Some(c) if matches!(c, '+' | '-') || c.is_numeric() => {
                    self.position = start;
                    nodes.push(self.number()?);
                }
                Some(c) if is_word(c) => {
                    self.position = start;
                    nodes.push(self.identifier());
                }
                Some(c) => return Err(format!("unrecognized character in action: {}", unicode_name(c))),
            }
        }
    }

    fn identifier(&mut self) -> Node {
        let start = self.position;
        while self.peek().is_some_and(|c| !is_terminator(c)) {
            self.next();
        }
        match self.since(start) {
            "true" => Node::Literal(Value::Bool(true)),
            "false" => Node::Literal(Value::Bool(false)),
            word => Node::Identifier(word.into()),
        }
    }

    fn recursive(&mut self, nodes: &mut Vec<Node>) -> Result<(), String> {
        if nodes.last() == Some(&Node::Recursive) {
            return Err("invalid multiple recursive descent".to_owned());
        }
        self.position += "..".len();
        nodes.push(Node::Recursive);
        if self.peek().is_some_and(is_word) {
            nodes.push(self.field());
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Node, String> {
        let start = self.position;
        if matches!(self.peek(), Some('+' | '-')) {
            self.next();
        }
        while self.peek().is_some_and(|c| c == '.' || c.is_numeric()) {
            self.next();
        }
        let text = self.since(start);
        if let Ok(integer) = text.parse::<i64>() {
            return Ok(Node::Literal(integer.into()));
        }
        match text.parse::<f64>() {
            Ok(float) => Ok(Node::Literal(float.into())),
            Err(_) => Err(format!("cannot parse number {text}")),
        }
    }

    /// Parses the content of brackets, from after the opening one.
    fn array(&mut self, nodes: &mut Vec<Node>) -> Result<(), String> {
        let start = self.position;
        loop {
            match self.next() {
                None | Some('\n') => return Err("unterminated array".to_owned()),
                Some(']') => break,
                Some(_) => {}
            }
        }
        let text = self.since(start);
        let text = text.strip_suffix(']').unwrap_or(text);
        if text.contains(',') {
            let members = text.split(',');
            let union: Result<Vec<Node>, String> =
                members.map(|member| self.operand(&format!("[{}]", member.trim_matches(' ')))).collect();
            nodes.push(Node::Union(union?.into()));
            return Ok(());
        }
        let key = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.contains('\'')) {
            // The key is parsed as a path, so a dot in it must be escaped here too.
            if let Node::List(fields) = self.operand(&format!(".{key}"))? {
                nodes.extend(fields);
            }
            return Ok(());
        }
        nodes.push(Node::Slice(slice(text)?));
        Ok(())
    }

    /// Parses a filter, starting at `[?(`.
    fn filter(&mut self) -> Result<Node, String> {
        self.position += "[?(".len();
        let start = self.position;
        let (mut begun, mut ended, mut pair) = (false, false, '"');
        loop {
            match self.next() {
                None | Some('\n') => return Err("unterminated filter".to_owned()),
                Some(quote @ ('"' | '\'')) if !begun => {
                    begun = true;
                    pair = quote;
                }
                Some(quote) if quote == pair && begun && !self.is_escaped() => ended = true,
                Some(')') if begun == ended => break,
                Some(_) => {}
            }
        }
        let text = self.since(start);
        let text = text.strip_suffix(')').unwrap_or(text);
        if self.next() != Some(']') {
            return Err("unclosed array expect ]".to_owned());
        }
        let filter = match comparison(text) {
            None => Filter {
                left: self.operand(text)?,
                operator: "exists".into(),
                right: Node::List(Box::default()),
            },
            Some((left, operator, right)) => {
                Filter { left: self.operand(left)?, operator: operator.into(), right: self.operand(right)? }
            }
        };
        Ok(Node::Filter(Box::new(filter)))
    }

    /// Parses a quoted text that started at `start`.
    fn quoted(&mut self, start: usize, quote: char) -> Result<Node, String> {
        loop {
            match self.next() {
                None | Some('\n') => return Err("unterminated quoted string".to_owned()),
                Some(c) if c == quote && !self.is_escaped() => break,
                Some(_) => {}
            }
        }
        let text = self.since(start);
        match unquote(text) {
            Some(text) => Ok(Node::Literal(text.into())),
            None => Err(format!("unquote string {text} error invalid syntax")),
        }
    }

    /// Parses a name after a dot, up to its terminator.
    fn field(&mut self) -> Node {
        let start = self.position;
        while let Some(c) = self.peek().filter(|c| !is_terminator(*c)) {
            self.next();
            if c == '\\' {
                self.next();
            }
        }
        match self.since(start) {
            "*" => Node::Wildcard,
            name => Node::Field(name.replace('\\', "").into()),
        }
    }

    /// Parses a part of this template as an action of its own.
    fn operand(&self, text: &str) -> Result<Node, String> {
        let nodes = parse_at(&format!("{{{text}}}"), self.depth + 1)?;
        Ok(nodes.into_iter().next().unwrap_or(Node::List(Box::default())))
    }

    fn rest(&self) -> &'a str {
        self.input.get(self.position..).unwrap_or_default()
    }

    fn since(&self, start: usize) -> &'a str {
        self.input.get(start..self.position).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.position += c.len_utf8();
        Some(c)
    }

    /// Whether a backslash precedes the one-byte character that was just read.
    fn is_escaped(&self) -> bool {
        let before = self.position.checked_sub(2).and_then(|at| self.input.as_bytes().get(at));
        before == Some(&b'\\')
    }
}

/// Splits `left operator right`; `None` when there is no operator with text on both sides.
fn comparison(text: &str) -> Option<(&str, &str, &str)> {
    let is_operator = |c| matches!(c, '!' | '<' | '>' | '=');
    let start = text.find(is_operator).filter(|start| *start > 0)?;
    let (left, rest) = text.split_at(start);
    let end = rest.find(|c| !is_operator(c)).unwrap_or_else(|| {
        // At least one character must remain for the right side.
        rest.len() - 1
    });
    let (operator, right) = rest.split_at(end);
    (!operator.is_empty()).then_some((left, operator, right))
}

/// Parses `start:end:step`, each part optional; `*` selects all.
fn slice(text: &str) -> Result<Slice, String> {
    let invalid = || format!("invalid array index {text}");
    let all = if text == "*" { ":" } else { text };
    let parts: Vec<&str> = all.split(':').collect();
    let is_number = |part: &str| {
        let digits = part.strip_prefix('-').unwrap_or(part);
        digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    if parts.len() > 3 || !parts.iter().all(|part| is_number(part)) {
        return Err(invalid());
    }
    let number = |at: usize| match parts.get(at) {
        None | Some(&"") => Ok(None),
        Some(part) => {
            part.parse::<i64>().map(Some).map_err(|_| format!("array index {part} is not a number"))
        }
    };
    let (start, end, step) = (number(0)?, number(1)?, number(2)?);
    let end_is_derived = parts.len() == 1;
    let end = if end_is_derived { Some(start.unwrap_or(0).wrapping_add(1)) } else { end };
    Ok(Slice { start, end, end_is_derived, step })
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}
