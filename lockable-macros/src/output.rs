//! The return type: what it says about a future, and how to write it inside the function.
//!
//! See "Why may a decorated function not return a future?" in DESIGN.md.

use proc_macro2::Span;
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    GenericArgument, Path, PathArguments, PathSegment, ReturnType, Type, TypeImplTrait,
    TypeParamBound, TypeTraitObject, parse_quote,
};

/// Writes `_` for each `impl Trait`, which only a signature may name.
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

/// Work that a value does when it is used, after the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    Future,
    Stream,
    /// Or the iterator of a collection.
    Iterator,
}

/// The late work that a type names; the expansion finds the rest.
pub(crate) fn late_work(ty: &Type) -> Option<Late> {
    match innermost(ty) {
        Type::ImplTrait(ty) => ty.bounds.iter().find_map(named_late),
        Type::TraitObject(ty) => {
            // A boxed iterator is what a type has to be called that has several.
            ty.bounds.iter().find_map(named_late).filter(|late| *late != Late::Iterator)
        }
        ty => match last_segment(ty)?.ident.to_string().as_str() {
            "BoxFuture" | "LocalBoxFuture" => Some(Late::Future),
            "BoxStream" | "LocalBoxStream" => Some(Late::Stream),
            _ => None,
        },
    }
}

fn named_late(bound: &TypeParamBound) -> Option<Late> {
    let TypeParamBound::Trait(bound) = bound else { return None };
    let last = bound.path.segments.last()?;
    match last.ident.to_string().as_str() {
        "Future" => Some(Late::Future),
        // Another trait may have that name, as of a connection.
        "Stream" => (!last.arguments.is_empty()).then_some(Late::Stream),
        "IntoIterator" => None,
        name => name.ends_with("Iterator").then_some(Late::Iterator),
    }
}

/// Whether the trait of an `impl Trait` is written with `::` in front, as attributes do.
pub(crate) fn is_written_by_an_attribute(ty: &Type) -> bool {
    let Type::ImplTrait(ty) = innermost(ty) else { return false };
    let absolute = |bound: &TypeParamBound| match bound {
        TypeParamBound::Trait(bound) => bound.path.leading_colon.is_some(),
        _ => false,
    };
    ty.bounds.first().is_some_and(absolute)
}

/// Whether a type surely has no late work: to let the compiler judge it costs time.
pub(crate) fn is_plain(ty: &Type) -> bool {
    match innermost(ty) {
        Type::Array(_) | Type::Never(_) | Type::Tuple(_) => true,
        Type::Reference(ty) => ty.mutability.is_none(),
        ty => last_segment(ty).is_some_and(|last| PLAIN.iter().any(|name| last.ident == name)),
    }
}

const PLAIN: [&str; 18] = [
    "String", "Vec", "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize",
    "u8", "u16", "u32", "u64", "u128", "usize",
];

/// Strips the types around a body's value that do no work.
///
/// ```text
/// Input:  Result<Pin<Box<dyn Stream<Item = u8>>>, Error>
/// Output: dyn Stream<Item = u8>
/// ```
pub(crate) fn innermost(ty: &Type) -> &Type {
    inside(ty, &["Result", "Option", "Box", "Pin"])
}

/// Where an error about late work belongs.
pub(crate) fn blamed(ty: &Type) -> Span {
    let ty = innermost(ty);
    last_segment(ty).map_or_else(|| ty.span(), |last| last.ident.span())
}

fn inside<'a>(ty: &'a Type, around: &[&str]) -> &'a Type {
    let ty = without_parentheses(ty);
    let outer = last_segment(ty).filter(|outer| around.iter().any(|name| outer.ident == name));
    let first = outer.and_then(|outer| type_arguments(&outer.arguments).next());
    first.map_or(ty, |first| inside(first, around))
}

/// The arrow and type of the `async fn` to write instead of `impl Future`, or a `Box` of a future.
pub(crate) fn returned_future(output: &ReturnType) -> Option<String> {
    let ReturnType::Type(_, ty) = output else { return None };
    let (Type::ImplTrait(TypeImplTrait { bounds, .. })
    | Type::TraitObject(TypeTraitObject { bounds, .. })) = inside(ty, &["Box", "Pin"])
    else {
        return None;
    };
    let bound = bounds.iter().find(|bound| named_late(bound) == Some(Late::Future))?;
    Some(match output_of(bound).map(text_of).as_deref() {
        None | Some("()") => String::new(),
        Some(output) => format!(" -> {output}"),
    })
}

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

/// Removes the spaces that tokens have around them.
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

    use super::{Late, is_plain, late_work, of_boxed_future, returned_future};

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

    #[test]
    fn late_work_is_known_where_it_is_written() {
        for (late, types) in LATE {
            for ty in types {
                let parsed = syn::parse_str(ty).unwrap();
                assert_eq!(late_work(&parsed), late, "{ty}");
                for around in ["Result<_, E>", "std::option::Option<_>", "(Box<_>)", "Pin<_>"] {
                    let ty = around.replace('_', ty);
                    assert_eq!(late_work(&syn::parse_str(&ty).unwrap()), late, "{ty}");
                }
            }
        }
    }

    #[test]
    fn the_compiler_judges_what_its_name_leaves_open() {
        for ty in ["()", "!", "[T; 3]", "&Reply", "Option<u8>", "Result<Box<(u8, T)>, E>", "Vec<T>"]
        {
            assert!(is_plain(&syn::parse_str(ty).unwrap()), "{ty}");
        }
        for ty in ["T", "Reply", "&mut T", "io::Result<Reply>", "Option<impl Job>", "Vector<u8>"] {
            assert!(!is_plain(&syn::parse_str(ty).unwrap()), "{ty}");
        }
    }

    const LATE: [(Option<Late>, &[&str]); 4] = [
        (
            Some(Late::Future),
            &[
                "impl Future<Output = u8>",
                "(impl Send + core::future::Future)",
                "dyn Future<Output = u8> + Send + 'a",
                "Pin<Box<dyn Future<Output = u8>>>",
                "BoxFuture<'_, u8>",
                "futures::future::LocalBoxFuture<'static, u8>",
            ],
        ),
        (
            Some(Late::Stream),
            &[
                "impl Stream<Item = u8> + Send",
                "dyn futures_core::Stream<Item = u8>",
                "Pin<Box<dyn Stream<Item = u8> + Send>>",
                "BoxStream<'static, u8>",
                "LocalBoxStream<'a, Result<u8, E>>",
            ],
        ),
        (
            Some(Late::Iterator),
            &[
                "impl Iterator<Item = u8>",
                "impl DoubleEndedIterator<Item = u8> + ExactSizeIterator",
            ],
        ),
        (
            None,
            &[
                "u8",
                "T",
                "&'a str",
                "Vec<BoxFuture<'static, u8>>",
                "dyn Iterator<Item = u8>",
                "impl Display",
                "impl IntoIterator<Item = u8>",
                "dyn Stream",
                "impl Fn() -> BoxFuture<'static, u8>",
                "Response<Body>",
                "JoinHandle<u8>",
                "AfterRelease<impl Future<Output = u8>>",
                "AfterRelease<impl Iterator<Item = u8>>",
                "(impl Future, u8)",
            ],
        ),
    ];
}
