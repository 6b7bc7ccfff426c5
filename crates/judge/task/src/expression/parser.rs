//! Reads expressions: a tokenizer and a parser by precedence.

use super::{Node, Operator};

/// Nesting beyond any expression that a person writes; the parser recurses.
const DEEPEST: usize = 64;

/// Numbers, names and signs beyond any expression that a person writes. It bounds the depth of what is read, which is
/// evaluated and freed by recursion.
const MAX_TOKENS: usize = 1000;

/// The operators of each precedence, loosest first; longer ones come before their prefixes.
const LEVELS: [&[(&str, Operator)]; 5] = [
    &[("||", Operator::Or)],
    &[("&&", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[
        ("*", Operator::Multiply),
        ("//", Operator::Divide),
        ("/", Operator::Divide),
        ("%", Operator::Remainder),
    ],
];

/// Symbols of two letters, which are one token.
const PAIRS: [&str; 8] = ["||", "&&", "==", "!=", "<=", ">=", "**", "//"];

pub(super) fn parse(text: &str) -> Result<Node, String> {
    let tokens = tokens(text)?;
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        depth: 0,
    };
    let root = parser.choice()?;
    match parser.next() {
        None => Ok(root),
        Some(token) => Err(format!("an operator is missing before `{token}`")),
    }
}

fn tokens(text: &str) -> Result<Vec<&str>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_ascii_alphanumeric() || first == '_' {
            rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
                .unwrap_or(rest.len())
        } else if PAIRS.iter().any(|pair| rest.starts_with(pair)) {
            2
        } else if "+-*/%()<>!?:,".contains(first) {
            1
        } else {
            let hint = match first {
                '.' => ": numbers are whole, and 2.5 * n is 5 * n / 2",
                _ => "",
            };
            return Err(format!("`{first}` has no meaning here{hint}"));
        };
        if tokens.len() == MAX_TOKENS {
            return Err(format!(
                "it is too long: an expression has at most {MAX_TOKENS} numbers, names and signs"
            ));
        }
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after.trim_start();
    }
    Ok(tokens)
}

struct Parser<'t> {
    tokens: &'t [&'t str],
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn next(&self) -> Option<&'t str> {
        self.tokens.get(self.at).copied()
    }

    fn takes(&mut self, token: &str) -> bool {
        let is_next = self.next() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, token: &str, what: &str) -> Result<(), String> {
        if self.takes(token) {
            return Ok(());
        }
        Err(match self.next() {
            Some(found) => format!("{what} is missing before `{found}`"),
            None => format!("{what} is missing at the end"),
        })
    }

    /// What `read` reads, one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("it is nested too deeply".to_owned());
        }
        let found = read(self)?;
        self.depth -= 1;
        Ok(found)
    }

    fn choice(&mut self) -> Result<Node, String> {
        self.deeper(|parser| {
            let condition = parser.binary(0)?;
            if !parser.takes("?") {
                return Ok(condition);
            }
            let yes = parser.choice()?;
            parser.expect(":", "`:`")?;
            let no = parser.choice()?;
            Ok(Node::Choice(Box::new([condition, yes, no])))
        })
    }

    fn binary(&mut self, level: usize) -> Result<Node, String> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.next() == Some(*symbol)) {
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = Node::Binary(*operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Node, String> {
        let mut signs = Vec::new();
        while let Some(sign @ ("-" | "!" | "+")) = self.next() {
            signs.push(sign);
            self.at += 1;
        }
        let inner = self.power()?;
        Ok(signs.into_iter().rev().fold(inner, |inner, sign| match sign {
            "-" => Node::Negative(Box::new(inner)),
            "!" => Node::Not(Box::new(inner)),
            _ => inner,
        }))
    }

    /// A power binds more tightly than a sign before it, and less tightly than one after it, as in Python.
    fn power(&mut self) -> Result<Node, String> {
        let base = self.primary()?;
        if !self.takes("**") {
            return Ok(base);
        }
        let exponent = self.deeper(Self::unary)?;
        Ok(Node::Binary(Operator::Power, Box::new(base), Box::new(exponent)))
    }

    fn primary(&mut self) -> Result<Node, String> {
        let Some(token) = self.next() else {
            return Err("it ends where a number, a name or `(` is missing".to_owned());
        };
        self.at += 1;
        if token == "(" {
            let inner = self.choice()?;
            self.expect(")", "`)`")?;
            return Ok(inner);
        }
        if token.starts_with(|letter: char| letter.is_ascii_digit()) {
            let number = token.parse();
            return number
                .map(Node::Number)
                .map_err(|_| format!("`{token}` is no whole number of 64 bits"));
        }
        if !token.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_') {
            return Err(format!("a number, a name or `(` is missing before `{token}`"));
        }
        if !self.takes("(") {
            return Ok(Node::Name(token.to_owned()));
        }
        let mut arguments = Vec::new();
        if !self.takes(")") {
            arguments.push(self.choice()?);
            while self.takes(",") {
                arguments.push(self.choice()?);
            }
            self.expect(")", "`,` or `)`")?;
        }
        Ok(Node::Call(token.to_owned(), arguments))
    }
}
