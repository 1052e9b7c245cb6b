//! The tokens of the parser.

/// A kind of token. Messages list expected kinds in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TokenKind {
    End,
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    OpenParenthesis,
    CloseParenthesis,
    Dot,
    Comma,
    Minus,
    Not,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    EscapedIdentifier,
}

impl TokenKind {
    /// The name in messages.
    fn name(self) -> &'static str {
        use TokenKind::*;
        match self {
            End => "<EOF>",
            Equals => "'=='",
            NotEquals => "'!='",
            In => "'in'",
            Less => "'<'",
            LessEquals => "'<='",
            GreaterEquals => "'>='",
            Greater => "'>'",
            And => "'&&'",
            Or => "'||'",
            OpenBracket => "'['",
            CloseBracket => "']'",
            OpenBrace => "'{'",
            CloseBrace => "'}'",
            OpenParenthesis => "'('",
            CloseParenthesis => "')'",
            Dot => "'.'",
            Comma => "','",
            Minus => "'-'",
            Not => "'!'",
            Question => "'?'",
            Colon => "':'",
            Plus => "'+'",
            Star => "'*'",
            Slash => "'/'",
            Percent => "'%'",
            True => "'true'",
            False => "'false'",
            Null => "'null'",
            Float => "NUM_FLOAT",
            Int => "NUM_INT",
            Uint => "NUM_UINT",
            String => "STRING",
            Bytes => "BYTES",
            Identifier => "IDENTIFIER",
            EscapedIdentifier => "ESC_IDENTIFIER",
        }
    }

    /// Formats a set of kinds for messages.
    pub(super) fn list(kinds: &[TokenKind]) -> std::string::String {
        let mut kinds = kinds.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
        match names.as_slice() {
            [name] => (*name).to_owned(),
            names => format!("{{{}}}", names.join(", ")),
        }
    }

    /// The kinds that may begin an expression.
    pub(super) const EXPRESSION: &[TokenKind] = &[
        TokenKind::OpenBracket,
        TokenKind::OpenBrace,
        TokenKind::OpenParenthesis,
        TokenKind::Dot,
        TokenKind::Minus,
        TokenKind::Not,
        TokenKind::True,
        TokenKind::False,
        TokenKind::Null,
        TokenKind::Float,
        TokenKind::Int,
        TokenKind::Uint,
        TokenKind::String,
        TokenKind::Bytes,
        TokenKind::Identifier,
    ];
}

/// A token and its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    /// The start, in code points.
    pub(super) offset: u32,
    /// The start, in bytes.
    pub(super) start: usize,
}

impl Token<'_> {
    /// The quoted form in messages.
    pub(super) fn quoted(&self) -> String {
        if self.kind == TokenKind::End { "'<EOF>'".to_owned() } else { quoted(self.text) }
    }
}

/// Quotes text for messages.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"))
}
