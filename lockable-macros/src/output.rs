//! The return type: what it says about a future, and how to write it inside the function.

use quote::{ToTokens, quote_spanned};
use syn::{GenericArgument, Path, PathArguments, ReturnType, Type, TypeParamBound, parse_quote};

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
        Type::ImplTrait(hidden) => {
            *ty = Type::Verbatim(quote_spanned!(hidden.impl_token.span=> _));
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

/// The arrow and type that an `async fn` would have, where a plain one returns a future by name.
pub(crate) fn returned_future(output: &ReturnType) -> Option<String> {
    let ReturnType::Type(_, ty) = output else { return None };
    let arrow = |output: String| match output.as_str() {
        "" | "()" => String::new(),
        output => format!(" -> {output}"),
    };
    future_output(ty).map(arrow)
}

/// The `T` of `impl Future<Output = T>`, `Pin<Box<dyn Future<Output = T>>>` or `BoxFuture<'_, T>`.
fn future_output(ty: &Type) -> Option<String> {
    match ty {
        Type::ImplTrait(ty) => ty.bounds.iter().find_map(output_of_bound),
        Type::TraitObject(ty) => ty.bounds.iter().find_map(output_of_bound),
        Type::Group(ty) => future_output(&ty.elem),
        Type::Paren(ty) => future_output(&ty.elem),
        Type::Path(ty) => {
            let last = ty.path.segments.last()?;
            let mut inner = type_arguments(&last.arguments);
            match last.ident.to_string().as_str() {
                "Pin" | "Box" => inner.find_map(future_output),
                "BoxFuture" | "LocalBoxFuture" => {
                    Some(inner.next().map_or_else(String::new, text_of))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn output_of_bound(bound: &TypeParamBound) -> Option<String> {
    let TypeParamBound::Trait(bound) = bound else { return None };
    let last = bound.path.segments.last().filter(|last| last.ident == "Future")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return Some(String::new());
    };
    let output = arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::AssocType(assoc) if assoc.ident == "Output" => Some(text_of(&assoc.ty)),
        _ => None,
    });
    Some(output.unwrap_or_default())
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

/// A type as somebody would write it; tokens alone have a space around each.
fn text_of(ty: &Type) -> String {
    let mut text = ty.to_token_stream().to_string();
    for (loose, tight) in
        [(" :: ", "::"), (" <", "<"), ("< ", "<"), (" >", ">"), (" ,", ","), ("& ", "&")]
    {
        text = text.replace(loose, tight);
    }
    text
}
