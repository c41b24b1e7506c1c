//! What logs and metrics call the lock: few constants, no secrets.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};

use crate::args::Key;
use crate::expand::tokens::{mixed, private};
use crate::model::LockedFn;
use crate::names;

/// In characters.
const LONGEST: usize = 80;

/// The template, all templates or the expression, and the function's path; in a block that hides the name.
///
/// ```text
/// Input:  key = "order:{id}", of `fn settle`
/// Output: { static LABEL: Label = Label::new("order:{id}", concat!(module_path!(), "::settle")); &LABEL }
/// ```
pub(super) fn label(locked: &LockedFn) -> TokenStream {
    let private = private();
    let lock = match &locked.key {
        Key::Template(template, _) => template.literal.value(),
        Key::Templates(templates) => {
            let texts: Vec<_> = templates.iter().map(|one| one.literal.value()).collect();
            shortened(&texts.join(", "))
        }
        Key::Value(value) | Key::Values(value) => shortened(&written(value.to_token_stream())),
    };
    let function = format!("::{}", names::unraw(&locked.target.sig.ident));
    quote_spanned! {mixed()=>
        {
            static LABEL: #private::Label = #private::Label::new(
                #lock,
                ::core::concat!(::core::module_path!(), #function)
            );
            &LABEL
        }
    }
}

/// Writes an expression in one line, with spaces only where needed: not every compiler knows those that were written.
fn written(tokens: TokenStream) -> String {
    let mut text = String::new();
    for token in tokens {
        let is_word = matches!(token, TokenTree::Ident(_) | TokenTree::Literal(_));
        let follows_word = text.ends_with(|c: char| c == '_' || c == '"' || c.is_alphanumeric());
        if text.ends_with(',') || (is_word && follows_word) {
            text.push(' ');
        }
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                text.extend([open, &written(group.stream()), close]);
            }
            token => text.push_str(&token.to_string()),
        }
    }
    text
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_written_in_one_line() {
        let text = |code: &str| written(code.parse().unwrap());
        assert_eq!(text("NIGHTLY"), "NIGHTLY");
        assert_eq!(text("self . key_of (\n &mut order , 7_u8,)"), "self.key_of(&mut order, 7_u8,)");
        assert_eq!(text("LockKey::from_static(\"a b\")"), "LockKey::from_static(\"a b\")");
        assert_eq!(text("if a { B } else { C }"), "if a{B}else{C}");
    }

    #[test]
    fn a_long_expression_is_shortened() {
        let text = shortened(&"ä".repeat(81));
        assert_eq!(text, format!("{}…", "ä".repeat(80)));
        assert_eq!(shortened(&"ä".repeat(80)), "ä".repeat(80));
    }
}
