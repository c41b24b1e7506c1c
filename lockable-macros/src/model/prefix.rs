//! The prefix of the key.

use proc_macro2::Span;
use quote::ToTokens;
use syn::{LitStr, Signature};

use crate::args::{Key, KeyArgument, LockArgs};
use crate::key::KeyTemplate;
use crate::mistakes::Mistakes;
use crate::names;

/// Refuses what only a key may have, and braces that every call would refuse.
pub(super) fn check(args: &LockArgs, sig: &Signature, mistakes: &mut Mistakes) {
    let Some(prefix) = &args.prefix else { return };
    let text = prefix.value();
    if let Some(hole) = hole(&text, sig) {
        let message = format!("a prefix has no holes\n{}", help(&text, &hole, args.key.as_ref()));
        mistakes.add(prefix.span(), message);
    } else if let Some((place, whose)) = unsound_braces(prefix, &text, args.key.as_ref()) {
        let message = format!(
            "every call would be refused: the braces of the {whose} are no hash tag\n\
             help: a hash tag is one `{{`, a name and one `}}`, as in `prefix = \"{{shop}}:\"`"
        );
        mistakes.add(place, message);
    }
}

/// A parameter in braces: every call would share one lock.
struct Hole {
    /// Where its `{` is.
    at: usize,
    value: String,
    /// The start of the value.
    parameter: String,
}

fn hole(prefix: &str, sig: &Signature) -> Option<Hole> {
    let bound = names::bound_by(sig);
    let is_bound = |name: &str| match name {
        "self" => sig.receiver().is_some(),
        _ => bound.iter().any(|bound| names::unraw(bound.ident) == name),
    };
    prefix.match_indices('{').find_map(|(at, _)| {
        let (inside, _) = prefix.get(at + 1..)?.split_once('}')?;
        let value = inside.split(':').next()?.trim();
        let parameter = value.split('.').next()?;
        is_bound(parameter).then(|| Hole {
            at,
            value: value.to_owned(),
            parameter: parameter.to_owned(),
        })
    })
}

fn help(prefix: &str, hole: &Hole, key: Option<&Key>) -> String {
    let (before, from) = prefix.split_at_checked(hole.at).unwrap_or((prefix, ""));
    let after = from.split_once('}').map_or("", |(_, after)| after);
    // As `{{id}}` is written where it is a key's.
    let (before, after) = (before.trim_end_matches('{'), after.trim_start_matches('}'));
    let after = after.replace('{', "{{").replace('}', "}}");
    let rest = match key {
        Some(Key::Template(template, _)) => template.literal.value(),
        Some(_) | None => "..".to_owned(),
    };
    let mut arguments: Vec<String> = match key {
        Some(Key::Template(_, arguments)) => arguments.iter().map(written).collect(),
        Some(_) | None => Vec::new(),
    };
    let mut name = hole.value.clone();
    if name != hole.parameter {
        arguments.insert(0, std::mem::take(&mut name));
    }
    let template = format!("{{{name}}}{after}{rest}");
    let key = if arguments.is_empty() {
        format!("key = {template:?}")
    } else {
        format!("key({template:?}, {})", arguments.join(", "))
    };
    let rename = match hole.parameter.as_str() {
        "self" => String::new(),
        name => format!("\nhelp: for a hash tag of that name rename the parameter `{name}`"),
    };
    format!("help: write `prefix = {before:?}, {key}`{rename}")
}

fn written(argument: &KeyArgument) -> String {
    let value = argument.value.to_token_stream().to_string().replace(" . ", ".");
    argument.name.as_ref().map_or_else(|| value.clone(), |name| format!("{name} = {value}"))
}

/// Finds braces that make no hash tag. The values have none, because they are escaped.
fn unsound_braces(prefix: &LitStr, text: &str, key: Option<&Key>) -> Option<(Span, &'static str)> {
    let whole = |rest: &str| format!("{text}{rest}");
    let is_unsound_with = |template: &KeyTemplate| {
        template.with_any_values().is_some_and(|rest| !has_sound_braces(&whole(&rest)))
    };
    let templates = key?.templates();
    let unsound = templates.iter().find(|(template, _)| is_unsound_with(template));
    // A key alone has no braces, or a hash tag.
    let refuses_all = || !["k", "{k}"].iter().any(|key| has_sound_braces(&whole(key)));
    let (is_unsound, key_place) = match unsound {
        Some((template, _)) => (true, template.literal.span()),
        None => (templates.is_empty() && refuses_all(), prefix.span()),
    };
    let blamed =
        if text.contains(['{', '}']) { (prefix.span(), "prefix") } else { (key_place, "key") };
    is_unsound.then_some(blamed)
}

/// As the runtime has it: no braces, or text between the first `{` and the next `}`.
fn has_sound_braces(text: &str) -> bool {
    match text.split_once('{') {
        None => !text.contains('}'),
        Some((_, after)) => after.find('}').is_some_and(|close| close > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::has_sound_braces;

    #[test]
    fn braces_are_sound_as_in_the_runtime() {
        for text in ["", "a", "{a}", "a}{b}", "{a}}", "{a{b}"] {
            assert!(has_sound_braces(text), "{text}");
        }
        for text in ["{", "}", "{}", "a}b", "{}{a}", "a{b"] {
            assert!(!has_sound_braces(text), "{text}");
        }
    }
}
