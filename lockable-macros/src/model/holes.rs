//! The names in a key's holes beside those of the parameters.

use std::collections::BTreeMap;

use proc_macro2::Span;
use quote::ToTokens;

use crate::args::KeyArgument;
use crate::args::hints::misspelt;
use crate::key::KeyTemplate;
use crate::mistakes::Mistakes;
use crate::model::FnKind;
use crate::names;
use crate::target::Target;

/// Refuses a hole that is no parameter. rustc looks for a name in capitals, which is a constant.
pub(super) fn check(
    template: &KeyTemplate,
    arguments: &[KeyArgument],
    kind: Option<&FnKind>,
    target: &Target,
    mistakes: &mut Mistakes,
) {
    let known = known(target);
    let is_argument =
        |name: &str| arguments.iter().any(|arg| arg.name.as_ref().is_some_and(|n| n == name));
    let mut in_body = BTreeMap::new();
    if let Some(FnKind::Boxed(_)) = kind {
        names::taken_apart_in(&target.body, &mut in_body);
    }
    for name in template.names() {
        let is_constant = !name.contains(char::is_lowercase) && name.contains(char::is_uppercase);
        let is_known = known.iter().any(|known| known == name);
        if is_known || is_constant || is_argument(name) || in_body.contains_key(name) {
            continue;
        }
        mistakes.add(template.literal.span(), no_parameter(name, &known, target));
    }
    if let Some(FnKind::Boxed(_)) = kind {
        check_destructured(template, arguments, &in_body, mistakes);
    }
}

/// Everything that a hole may name, except constants.
fn known(target: &Target) -> Vec<String> {
    let receiver = target.sig.receiver().map(|_| "self".to_owned());
    let bound = names::bound_by(&target.sig).into_iter().map(|bound| names::unraw(bound.ident));
    receiver.into_iter().chain(bound.filter(|name| !name.starts_with("__arg"))).collect()
}

fn no_parameter(name: &str, known: &[String], target: &Target) -> String {
    let function = names::unraw(&target.sig.ident);
    let near = misspelt(&name.replace('_', ""), known.iter().map(String::as_str));
    let hint = near.map_or_else(String::new, |near| format!(", did you mean `{near}`?"));
    let all: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    let parameters = match all.as_slice() {
        [] => "there are no parameters".to_owned(),
        [one] => format!("the parameter is {one}"),
        _ => format!("the parameters are {}", all.join(", ")),
    };
    format!(
        "`{name}` is no parameter of `{function}`{hint}\n\
         help: {parameters}; another value is an argument: `key(\"{{}}\", value)`"
    )
}

/// Refuses a key that names what only the body of a boxed future destructures.
///
/// `#[async_trait]` calls such a parameter `__arg1`, and destructures it inside the future, under the lock.
fn check_destructured(
    template: &KeyTemplate,
    arguments: &[KeyArgument],
    taken_apart: &BTreeMap<String, Span>,
    mistakes: &mut Mistakes,
) {
    let mut wanted = BTreeMap::new();
    for argument in arguments {
        names::mentioned_in(argument.value.to_token_stream(), &mut wanted);
    }
    for name in template.names() {
        let is_argument = arguments.iter().any(|arg| arg.name.as_ref().is_some_and(|n| n == name));
        if !is_argument {
            wanted.insert(name.to_owned(), template.literal.span());
        }
    }
    for (name, span) in wanted.iter().filter(|(name, _)| taken_apart.contains_key(*name)) {
        let message = format!(
            "the key cannot name `{name}`, which is a part of a parameter's pattern\n\
             help: under `#[async_trait]` give the parameter a name, use that in the key, and \
             destructure it in the body"
        );
        mistakes.add(*span, message);
    }
}
