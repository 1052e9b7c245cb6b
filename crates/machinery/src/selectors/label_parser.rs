//! Parses the text form of label selectors.

use super::label_requirement::{LabelOperator, LabelRequirement, validate_key};
use super::lexer::{Token, tokens};
use crate::FieldPath;

/// Parses a selector such as `app=web,tier in (a, b),!legacy`.
pub(super) fn parse(text: &str) -> Result<Vec<LabelRequirement>, String> {
    Parser { tokens: tokens(text), position: 0 }.parse()
}

struct Parser<'a> {
    tokens: Vec<(Token, &'a str)>,
    position: usize,
}

impl<'a> Parser<'a> {
    fn parse(mut self) -> Result<Vec<LabelRequirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek_value() {
                (Token::Identifier | Token::DoesNotExist, _) => {}
                (Token::EndOfString, _) => return Ok(requirements),
                (_, literal) => {
                    return Err(format!("found '{literal}', expected: !, identifier, or 'end of string'"));
                }
            }
            let requirement =
                self.requirement().map_err(|error| format!("unable to parse requirement: {error}"))?;
            requirements.push(requirement);
            match self.next_value() {
                (Token::EndOfString, _) => return Ok(requirements),
                (Token::Comma, _) => match self.peek_value() {
                    (Token::Identifier | Token::DoesNotExist, _) => {}
                    (_, literal) => {
                        return Err(format!("found '{literal}', expected: identifier after ','"));
                    }
                },
                (_, literal) => return Err(format!("found '{literal}', expected: ',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<LabelRequirement, String> {
        let (mut token, mut literal) = self.next_value();
        let negated = token == Token::DoesNotExist;
        if negated {
            (token, literal) = self.next_value();
        }
        if token != Token::Identifier {
            return Err(format!("found '{literal}', expected: identifier"));
        }
        if let Some(error) = validate_key(literal, &FieldPath::default()) {
            return Err(error.to_string());
        }
        let (operator, values) = if negated {
            (LabelOperator::DoesNotExist, Vec::new())
        } else if matches!(self.peek_value().0, Token::EndOfString | Token::Comma) {
            (LabelOperator::Exists, Vec::new())
        } else {
            let operator = self.operator()?;
            match operator {
                LabelOperator::In | LabelOperator::NotIn => {
                    // The list is a set.
                    let mut values = self.values()?;
                    values.sort_unstable();
                    values.dedup();
                    (operator, values)
                }
                _ => (operator, vec![self.exact_value()?]),
            }
        };
        LabelRequirement::new(literal, operator, values).map_err(|error| error.0)
    }

    fn operator(&mut self) -> Result<LabelOperator, String> {
        let (token, literal) = self.next();
        Ok(match token {
            Token::In => LabelOperator::In,
            Token::Equals => LabelOperator::Equals,
            Token::DoubleEquals => LabelOperator::DoubleEquals,
            Token::GreaterThan => LabelOperator::GreaterThan,
            Token::LessThan => LabelOperator::LessThan,
            Token::NotIn => LabelOperator::NotIn,
            Token::NotEquals => LabelOperator::NotEquals,
            _ => return Err(format!("found '{literal}', expected: in, notin, =, ==, !=, gt, lt")),
        })
    }

    fn exact_value(&mut self) -> Result<String, String> {
        if matches!(self.peek_value().0, Token::EndOfString | Token::Comma) {
            return Ok(String::new());
        }
        match self.next_value() {
            (Token::Identifier, literal) => Ok(literal.to_owned()),
            (_, literal) => Err(format!("found '{literal}', expected: identifier")),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        let (token, literal) = self.next_value();
        if token != Token::OpenParenthesis {
            return Err(format!("found '{literal}' expected: '('"));
        }
        match self.peek_value() {
            (Token::Identifier | Token::Comma, _) => self.identifiers(),
            (Token::ClosedParenthesis, _) => {
                self.next_value();
                Ok(vec![String::new()])
            }
            (_, literal) => Err(format!("found '{literal}', expected: ',', ')' or identifier")),
        }
    }

    /// Parses the values through the closing parenthesis. An empty text between commas is the empty value.
    fn identifiers(&mut self) -> Result<Vec<String>, String> {
        let mut values = Vec::new();
        loop {
            match self.next_value() {
                (Token::Identifier, literal) => {
                    values.push(literal.to_owned());
                    match self.peek_value() {
                        (Token::Comma, _) => {}
                        (Token::ClosedParenthesis, _) => break,
                        (_, literal) => return Err(format!("found '{literal}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    match self.peek_value().0 {
                        Token::ClosedParenthesis => {
                            values.push(String::new());
                            break;
                        }
                        Token::Comma => values.push(String::new()),
                        _ => {}
                    }
                }
                (_, literal) => return Err(format!("found '{literal}', expected: ',', or identifier")),
            }
        }
        self.next_value();
        Ok(values)
    }

    fn peek(&self) -> (Token, &'a str) {
        self.tokens.get(self.position).copied().unwrap_or((Token::EndOfString, ""))
    }

    fn next(&mut self) -> (Token, &'a str) {
        let token = self.peek();
        self.position += 1;
        token
    }

    /// In the position of a value, `in` and `notin` are values.
    fn peek_value(&self) -> (Token, &'a str) {
        match self.peek() {
            (Token::In | Token::NotIn, literal) => (Token::Identifier, literal),
            other => other,
        }
    }

    fn next_value(&mut self) -> (Token, &'a str) {
        let token = self.peek_value();
        self.position += 1;
        token
    }
}
