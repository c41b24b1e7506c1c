//! The attribute as a whole: snapshots of its expansions, and that it never panics.

use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, Group, Punct, Spacing, TokenStream, TokenTree};

/// Each file of `src/tests` is a function, a line of dashes, and its expansion; `LOCKABLE_BLESS` writes them again.
#[test]
fn expansions_are_as_committed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests");
    let mut differing = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file = fs::read_to_string(&path).unwrap();
        let input = file.split(LINE).next().unwrap();
        let expected = format!("{input}{LINE}{}", pretty(expanded(input)));
        if std::env::var_os("LOCKABLE_BLESS").is_some() {
            fs::write(&path, &expected).unwrap();
        } else if expected != file {
            differing.push(path);
        }
    }
    assert!(differing.is_empty(), "set LOCKABLE_BLESS and read the difference: {differing:?}");
}

const LINE: &str = "// ---------------------------------------- becomes\n";

fn expanded(input: &str) -> TokenStream {
    let mut tokens = input.parse::<TokenStream>().unwrap().into_iter();
    let Some(TokenTree::Group(brackets)) = tokens.nth(1) else { panic!("no attribute: {input}") };
    let args = brackets.stream().into_iter().find_map(|token| match token {
        TokenTree::Group(group) => Some(group.stream()),
        _ => None,
    });
    crate::attribute(args.unwrap_or_default(), tokens.collect())
}

/// Puts a line for each statement.
fn pretty(tokens: TokenStream) -> String {
    let mut text = String::new();
    write_lines(tokens, 0, &mut text);
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.retain(|line| !line.is_empty());
    lines.join("\n") + "\n"
}

fn write_lines(tokens: TokenStream, depth: usize, text: &mut String) {
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                text.push_str(" {");
                new_line(depth + 1, text);
                write_lines(group.stream(), depth + 1, text);
                new_line(depth, text);
                text.push('}');
                new_line(depth, text);
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
                text.push('(');
                write_lines(group.stream(), depth, text);
                text.push(')');
            }
            TokenTree::Punct(punct) => write_punct(&punct, depth, text),
            token => {
                let needs_space = text.ends_with(|c: char| c.is_alphanumeric() || c == '_');
                text.push_str(if needs_space { " " } else { "" });
                text.push_str(&token.to_string());
            }
        }
    }
}

fn write_punct(punct: &Punct, depth: usize, text: &mut String) {
    if "=<|&".contains(punct.as_char()) && text.ends_with(char::is_alphanumeric) {
        text.push(' ');
    }
    text.push(punct.as_char());
    match punct.as_char() {
        ';' => new_line(depth, text),
        ',' if text.ends_with("error,") => new_line(depth, text),
        ',' => text.push(' '),
        '=' | '>' if punct.spacing() == Spacing::Alone => text.push(' '),
        _ => {}
    }
}

fn new_line(depth: usize, text: &mut String) {
    text.push('\n');
    text.push_str(&"    ".repeat(depth));
}

/// Goal: no input makes the macro panic. Method: random streams of tokens that mean something to it, alone and cut out
/// of a valid use.
#[test]
fn no_input_makes_the_macro_panic() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let args: TokenStream = VALID_ARGS.parse().unwrap();
    let items = VALID_ITEMS.map(|item| item.parse::<TokenStream>().unwrap());
    for item in items.iter().cycle().take(6_000) {
        let some_args = random.tokens(3);
        let some_item = random.tokens(3);
        drop(crate::attribute(some_args.clone(), some_item));
        drop(crate::attribute(some_args, item.clone()));
        drop(crate::attribute(random.damaged(&args), item.clone()));
        drop(crate::attribute(args.clone(), random.damaged(item)));
    }
}

const VALID_ARGS: &str = r#"key("a:{{x}}:{}:{id}:{self}", self.id, n = 3), expire = "1m30s", wait = "3s", fair, renew, max_hold = LONG,
    min_hold = 3, on_lost = finish, on_busy = skip, on_error = |err| -> u8 { f(err) }, guard = lock, locker = self.locks, crate = ::krate, prefix = "p""#;

const VALID_ITEMS: [&str; 4] = [
    "#[inline] pub(crate) async unsafe fn f<'a, const N: usize, T>(&'a self, (id, _x): (u8, T), \
     mut y: impl Fn(u8) -> u8) -> Result<impl Iterator<Item = u8>, E> where T: Display \
     { #![allow(unused)] let x = id; Ok(x) }",
    "pub unsafe extern \"C\" fn f(mut self: Box<Self>, id: u8, _permit: T) -> Result<u8, E> \
     { println!(\"{id} {x:?}\"); Ok(id?) }",
    "fn f(id: u8) -> BoxFuture<'_, Option<u8>> { Box::pin(async move { Some(id) }) }",
    "fn f<'a>(&'a self, __arg1: (u8, u8)) -> ::core::pin::Pin<Box<dyn ::core::future::Future<Output = \
     u8> + ::core::marker::Send + 'a>> where Self: 'a { Box::pin(async move { let (id, b) = { let \
     __arg1 = __arg1; __arg1 }; id }) }",
];

/// xorshift: the same numbers on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit).unwrap()).unwrap()
    }

    fn tokens(&mut self, depth: usize) -> TokenStream {
        (0..self.below(9)).map(|_| self.token(depth)).collect()
    }

    fn token(&mut self, depth: usize) -> TokenTree {
        let delimiters =
            [Delimiter::Parenthesis, Delimiter::Brace, Delimiter::Bracket, Delimiter::None];
        if depth > 0 && self.below(4) == 0 {
            let delimiter = delimiters[self.below(4)];
            return TokenTree::Group(Group::new(delimiter, self.tokens(depth - 1)));
        }
        let word = WORDS[self.below(WORDS.len())];
        word.parse::<TokenStream>().unwrap().into_iter().next().unwrap()
    }

    /// Leaves out, doubles or replaces some tokens, at any depth.
    fn damaged(&mut self, tokens: &TokenStream) -> TokenStream {
        let mut damaged = TokenStream::new();
        for token in tokens.clone() {
            let token = match token {
                TokenTree::Group(group) => {
                    let inside = self.damaged(&group.stream());
                    TokenTree::Group(Group::new(group.delimiter(), inside))
                }
                token => token,
            };
            match self.below(24) {
                0 => {}
                1 => damaged.extend([token.clone(), token]),
                2 => damaged.extend([self.token(1), token]),
                3 => damaged.extend([self.token(2)]),
                _ => damaged.extend([token]),
            }
        }
        damaged
    }
}

const WORDS: &[&str] = &[
    "key",
    "prefix",
    "expire",
    "on_busy",
    "on_error",
    "renew",
    "max_hold",
    "min_hold",
    "on_lost",
    "cancel",
    "finish",
    "guard",
    "locker",
    "crate",
    "skip",
    "wait",
    "fair",
    "blocking",
    "=",
    "=",
    "=",
    ",",
    ",",
    ",",
    ":",
    ";",
    "#",
    "!",
    "&",
    "|",
    ".",
    "-",
    "<",
    ">",
    "'a",
    "\"a:{id}\"",
    "\"{}{}\"",
    "\"{\"",
    "\"{a.b}\"",
    "\"{Self}\"",
    "\"{super}\"",
    "\"{type}\"",
    "\"{N}\"",
    "\"é{ü}ß{r#a}\"",
    "\"1m30s\"",
    "\"\"",
    "b\"x\"",
    "c\"x\"",
    "'x'",
    "10",
    "10s",
    "1.5",
    "0",
    "99999999999999999999",
    "async",
    "fn",
    "f",
    "self",
    "Self",
    "impl",
    "Future",
    "Output",
    "Pin",
    "Box",
    "BoxFuture",
    "BoxStream",
    "Stream",
    "Iterator",
    "Result",
    "Option",
    "let",
    "__arg1",
    "\"{{id}}\"",
    "struct",
    "trait",
    "const",
    "unsafe",
    "extern",
    "pub",
    "where",
    "mut",
    "move",
    "_",
    "id",
    "x",
    "distributed_lock",
    "default",
    "dyn",
    "for",
    "r#type",
];
