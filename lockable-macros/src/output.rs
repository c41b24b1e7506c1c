//! The return type: what it says about a future, and how to write it inside the function.
//!
//! See "Why may a decorated sync function not return a future?" in DESIGN.md.

use quote::{ToTokens, quote_spanned};
use syn::punctuated::Punctuated;
use syn::{
    GenericArgument, Path, PathArguments, PathSegment, ReturnType, Token, Type, TypeParamBound,
    parse_quote,
};

/// The return type with `_` for each `impl Trait`, which only a signature may name.
///
/// ```text
/// Input:  -> Result<impl Iterator<Item = u8>, Error>
/// Output: Result<_, Error>
/// ```
pub(crate) fn written_inside(output: &ReturnType) -> Type {
    match output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, ty) => {
            let mut ty = (**ty).clone();
            erase(&mut ty);
            ty
        }
    }
}

fn erase(ty: &mut Type) {
    match ty {
        Type::ImplTrait(opaque) => {
            *ty = Type::Verbatim(quote_spanned!(opaque.impl_token.span=> _));
        }
        // As in `&'a (impl Display + 'a)`; around a `_` the parentheses would be a warning.
        Type::Paren(paren) if matches!(*paren.elem, Type::ImplTrait(_)) => {
            *ty = (*paren.elem).clone();
            erase(ty);
        }
        Type::Array(ty) => erase(&mut ty.elem),
        Type::Group(ty) => erase(&mut ty.elem),
        Type::Paren(ty) => erase(&mut ty.elem),
        Type::Ptr(ty) => erase(&mut ty.elem),
        Type::Reference(ty) => erase(&mut ty.elem),
        Type::Slice(ty) => erase(&mut ty.elem),
        Type::Tuple(ty) => ty.elems.iter_mut().for_each(erase),
        Type::Path(ty) => erase_in(&mut ty.path),
        Type::TraitObject(ty) => {
            for bound in &mut ty.bounds {
                if let TypeParamBound::Trait(bound) = bound {
                    erase_in(&mut bound.path);
                }
            }
        }
        _ => {}
    }
}

fn erase_in(path: &mut Path) {
    for segment in &mut path.segments {
        let PathArguments::AngleBracketed(arguments) = &mut segment.arguments else { continue };
        for argument in &mut arguments.args {
            match argument {
                GenericArgument::Type(ty) => erase(ty),
                GenericArgument::AssocType(assoc) => erase(&mut assoc.ty),
                _ => {}
            }
        }
    }
}

/// The `T` of `Pin<Box<dyn Future<Output = T> + …>>` or `BoxFuture<'_, T>`.
pub(crate) fn of_boxed_future(output: &ReturnType) -> Option<Type> {
    let ReturnType::Type(_, ty) = output else { return None };
    let outer = last_segment(ty)?;
    let first = type_arguments(&outer.arguments).next()?;
    match outer.ident.to_string().as_str() {
        "BoxFuture" | "LocalBoxFuture" => Some(first.clone()),
        "Pin" => {
            let inner = last_segment(first).filter(|inner| inner.ident == "Box")?;
            match without_parentheses(type_arguments(&inner.arguments).next()?) {
                Type::TraitObject(object) => object.bounds.iter().find_map(output_of).cloned(),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The arrow and type that an `async fn` would have, where a plain one returns `impl Future`, or a
/// `Box` of a future that is not pinned.
pub(crate) fn returned_future(output: &ReturnType) -> Option<String> {
    let ReturnType::Type(_, ty) = output else { return None };
    let bounds = future_bounds(ty)?;
    let bound = bounds.iter().find(|bound| is_future(bound))?;
    Some(match output_of(bound).map(text_of).as_deref() {
        None | Some("()") => String::new(),
        Some(output) => format!(" -> {output}"),
    })
}

type Bounds = Punctuated<TypeParamBound, Token![+]>;

fn future_bounds(ty: &Type) -> Option<&Bounds> {
    match without_parentheses(ty) {
        Type::ImplTrait(ty) => Some(&ty.bounds),
        Type::TraitObject(ty) => Some(&ty.bounds),
        ty => {
            let last = last_segment(ty)?;
            let is_pointer = last.ident == "Pin" || last.ident == "Box";
            is_pointer.then(|| type_arguments(&last.arguments).find_map(future_bounds))?
        }
    }
}

fn is_future(bound: &TypeParamBound) -> bool {
    let TypeParamBound::Trait(bound) = bound else { return false };
    bound.path.segments.last().is_some_and(|last| last.ident == "Future")
}

/// The `T` of `Future<Output = T>`.
fn output_of(bound: &TypeParamBound) -> Option<&Type> {
    let TypeParamBound::Trait(bound) = bound else { return None };
    let last = bound.path.segments.last().filter(|last| last.ident == "Future")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::AssocType(assoc) if assoc.ident == "Output" => Some(&assoc.ty),
        _ => None,
    })
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match without_parentheses(ty) {
        Type::Path(ty) => ty.path.segments.last(),
        _ => None,
    }
}

fn without_parentheses(ty: &Type) -> &Type {
    match ty {
        Type::Group(ty) => without_parentheses(&ty.elem),
        Type::Paren(ty) => without_parentheses(&ty.elem),
        ty => ty,
    }
}

fn type_arguments(arguments: &PathArguments) -> Box<dyn Iterator<Item = &Type> + '_> {
    match arguments {
        PathArguments::AngleBracketed(arguments) => {
            Box::new(arguments.args.iter().filter_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            }))
        }
        _ => Box::new(std::iter::empty()),
    }
}

/// A type as a user writes it; tokens alone have a space around each.
fn text_of(ty: &Type) -> String {
    let mut text = ty.to_token_stream().to_string();
    for (loose, tight) in
        [(" :: ", "::"), (" <", "<"), ("< ", "<"), (" >", ">"), (" ,", ","), ("& ", "&")]
    {
        text = text.replace(loose, tight);
    }
    text
}

#[cfg(test)]
mod tests {
    use quote::ToTokens;

    use super::{of_boxed_future, returned_future};

    /// The output of the boxed future that a function returns.
    fn boxed(ty: &str) -> Option<String> {
        let output = syn::parse_str(&format!("-> {ty}")).unwrap();
        of_boxed_future(&output).map(|ty| ty.to_token_stream().to_string())
    }

    fn future(ty: &str) -> Option<String> {
        returned_future(&syn::parse_str(&format!("-> {ty}")).unwrap())
    }

    #[test]
    fn boxed_futures_are_known_in_every_spelling() {
        for ty in [
            "Pin<Box<dyn Future<Output = u8>>>",
            "Pin<Box<dyn Future<Output = u8> + Send + 'a>>",
            "::core::pin::Pin<::std::boxed::Box<(dyn Send + core::future::Future<Output = u8>)>>",
            "(Pin<Box<dyn Future<Output = u8> + '_>>)",
            "BoxFuture<'_, u8>",
            "futures::future::LocalBoxFuture<'static, u8>",
            "BoxFuture<u8>",
        ] {
            assert_eq!(boxed(ty).as_deref(), Some("u8"), "{ty}");
        }
    }

    #[test]
    fn other_types_are_no_boxed_futures() {
        for ty in [
            "u8",
            "Pin<u8>",
            "Pin<&mut dyn Future<Output = u8>>",
            "Pin<Box<dyn Stream<Item = u8>>>",
            "Pin<Box<dyn Future>>",
            "Pin<Box<impl Future<Output = u8>>>",
            "Box<dyn Future<Output = u8>>",
            "BoxFuture<'_>",
            "BoxFuture",
            "impl Future<Output = u8>",
        ] {
            assert_eq!(boxed(ty), None, "{ty}");
        }
    }

    #[test]
    fn other_futures_are_known_by_their_trait() {
        assert_eq!(future("impl Future<Output = u8> + Send").as_deref(), Some(" -> u8"));
        assert_eq!(future("impl Send + Future<Output = ()>").as_deref(), Some(""));
        assert_eq!(future("Box<dyn Future<Output = u8> + Unpin>").as_deref(), Some(" -> u8"));
        assert_eq!(future("Pin<Box<impl Future>>").as_deref(), Some(""));
        assert_eq!(future("Vec<u8>"), None);
        assert_eq!(future("impl Iterator<Item = u8>"), None);
        assert_eq!(future("Option<Box<dyn Error>>"), None);
    }
}
