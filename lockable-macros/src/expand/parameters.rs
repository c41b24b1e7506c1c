//! The parameters, which the body takes with it.

use std::collections::BTreeMap;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::Ident;

use crate::args::OnBusy;
use crate::expand::call::captured;
use crate::expand::tokens::mixed;
use crate::model::LockedFn;
use crate::names;

/// Moves parameters into the body whole, so that they are dropped before the lock is released.
///
/// Otherwise the closure would take only the fields that the body mentions, and no `_permit`. The order is that of an
/// `async fn`, which drops the last parameter first. What is mentioned nowhere is left out, so that rustc reports it.
pub(super) fn moved_parameters(locked: &LockedFn) -> TokenStream {
    let sig = &locked.target.sig;
    let mentioned = mentioned(locked);
    let receiver = sig.receiver().map(|receiver| Ident::new("self", receiver.self_token.span));
    let parameters = names::parameters(sig).filter(|param| !param.is_conditional);
    let names = receiver.into_iter().chain(parameters.map(|param| param.ident.clone()));
    let mut moved: Vec<Ident> = names
        .filter_map(|mut name| {
            let text = names::unraw(&name);
            let unmentioned = || text.starts_with('_').then(|| name.span());
            // Errors about a moved parameter then show where it is used.
            let place = mentioned.get(&text).copied().or_else(unmentioned)?;
            name.set_span(name.span().located_at(place));
            Some(name)
        })
        .collect();
    if moved.is_empty() {
        return TokenStream::new();
    }
    moved.reverse();
    let has_underscore = moved.iter().any(|name| name.to_string().starts_with('_'));
    let allow =
        has_underscore.then(|| quote_spanned!(mixed()=> #[allow(clippy::used_underscore_binding)]));
    quote_spanned! {mixed()=>
        #allow
        let _ = (#(&#moved,)*);
    }
}

/// The names in the body and in the key's template: both are used, so that to mention them again hides no warning. An
/// argument of the key may have been moved into it.
fn mentioned(locked: &LockedFn) -> BTreeMap<String, Span> {
    let mut mentioned = BTreeMap::new();
    names::mentioned_in(locked.target.body.clone(), &mut mentioned);
    if let Some(OnBusy::Value(value)) = &locked.on_busy {
        names::mentioned_in(value.to_token_stream(), &mut mentioned);
    }
    for (template, arguments) in locked.key.templates() {
        for (name, value) in captured(template, arguments, locked) {
            mentioned.entry(name).or_insert_with(|| value.span());
        }
    }
    mentioned
}
