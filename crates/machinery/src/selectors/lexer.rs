//! Splits a label selector into tokens.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    EndOfString,
    ClosedParenthesis,
    Comma,
    DoesNotExist,
    DoubleEquals,
    Equals,
    GreaterThan,
    Identifier,
    In,
    LessThan,
    NotEquals,
    NotIn,
    OpenParenthesis,
}

/// All tokens with their texts; the last one is the end.
pub(super) fn tokens(text: &str) -> Vec<(Token, &str)> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(is_whitespace);
        // A NUL ends the text, as in the reference.
        let Some(first) = rest.chars().next().filter(|c| *c != '\0') else {
            tokens.push((Token::EndOfString, ""));
            return tokens;
        };
        let end = if is_special(first) {
            usize::from(matches!(rest.get(..2), Some("==" | "!="))) + 1
        } else {
            rest.find(|c| is_special(c) || is_whitespace(c) || c == '\0').unwrap_or(rest.len())
        };
        let (literal, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        rest = if is_special(first) { after } else { after.strip_prefix('\0').unwrap_or(after) };
        tokens.push((token(literal), literal));
    }
}

fn token(literal: &str) -> Token {
    match literal {
        ")" => Token::ClosedParenthesis,
        "," => Token::Comma,
        "!" => Token::DoesNotExist,
        "==" => Token::DoubleEquals,
        "=" => Token::Equals,
        ">" => Token::GreaterThan,
        "in" => Token::In,
        "<" => Token::LessThan,
        "!=" => Token::NotEquals,
        "notin" => Token::NotIn,
        "(" => Token::OpenParenthesis,
        _ => Token::Identifier,
    }
}

fn is_whitespace(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_special(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}
