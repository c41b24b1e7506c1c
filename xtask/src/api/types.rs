//! How the types of rustdoc's JSON are written in Rust.

use serde_json::Value;

/// The names of the types that are mentioned, by id.
pub(super) struct Names<'a>(pub(super) &'a Value);

impl Names<'_> {
    /// `async fn path<T>(a: A) -> B where …`.
    pub(super) fn signature(&self, path: &str, function: &Value) -> String {
        let header = &function["header"];
        let qualifiers = [("is_const", "const "), ("is_async", "async "), ("is_unsafe", "unsafe ")];
        let qualifiers = qualifiers.into_iter().filter(|(key, _)| header[*key] == true);
        let qualifiers: String = qualifiers.map(|(_, word)| word).collect();
        let (generics, conditions) = self.parameters_and_conditions(&function["generics"]);
        let inputs = self.inputs(&function["sig"]["inputs"]);
        let output = self.output(&function["sig"]["output"]);
        format!("{qualifiers}fn {path}{generics}({inputs}){output}{conditions}")
    }

    fn inputs(&self, inputs: &Value) -> String {
        let input = |input: &Value| match (text(&input[0]), self.ty(&input[1])) {
            ("self", ty) if ty == "Self" || ty.starts_with('&') && ty.ends_with("Self") => {
                ty.replace("Self", "self")
            }
            (name, ty) => format!("{name}: {ty}"),
        };
        joined(list_of(inputs), input, ", ")
    }

    fn output(&self, output: &Value) -> String {
        if output.is_null() { String::new() } else { format!(" -> {}", self.ty(output)) }
    }

    /// The parameters of a type, and what is demanded of them.
    pub(super) fn generics(&self, generics: &Value) -> String {
        let (parameters, conditions) = self.parameters_and_conditions(generics);
        parameters + &conditions
    }

    pub(super) fn parameters_and_conditions(&self, generics: &Value) -> (String, String) {
        let parameters = list_of(&generics["params"]).iter();
        let written = parameters.filter(|parameter| {
            let name = text(&parameter["name"]);
            // `impl Trait` of an input stands there already.
            parameter["kind"]["type"]["is_synthetic"] != true && name != "'_"
        });
        let parameters: Vec<_> = written.map(|parameter| self.parameter(parameter)).collect();
        let conditions = &generics["where_predicates"];
        let conditions = joined(list_of(conditions), |one| self.condition(one), ", ");
        let conditions =
            if conditions.is_empty() { conditions } else { format!(" where {conditions}") };
        (bracketed(&parameters), conditions)
    }

    fn parameter(&self, parameter: &Value) -> String {
        let name = text(&parameter["name"]);
        match entry(&parameter["kind"]) {
            Some(("type", inner)) => with_bounds(name, &self.bounds(&inner["bounds"])),
            Some(("const", inner)) => format!("const {name}: {}", self.ty(&inner["type"])),
            _ => name.to_owned(),
        }
    }

    fn condition(&self, condition: &Value) -> String {
        match entry(condition) {
            Some(("bound_predicate", inner)) => {
                with_bounds(&self.ty(&inner["type"]), &self.bounds(&inner["bounds"]))
            }
            Some(("lifetime_predicate", inner)) => {
                let outlived = joined(list_of(&inner["outlives"]), |one| text(one).into(), " + ");
                format!("{}: {outlived}", text(&inner["lifetime"]))
            }
            _ => condition.to_string(),
        }
    }

    pub(super) fn bounds(&self, bounds: &Value) -> String {
        let bound = |bound: &Value| match entry(bound) {
            Some(("trait_bound", inner)) => {
                let maybe = if inner["modifier"] == "maybe" { "?" } else { "" };
                format!("{maybe}{}", self.path(&inner["trait"]))
            }
            Some(("outlives", lifetime)) => text(lifetime).to_owned(),
            _ => bound.to_string(),
        };
        joined(list_of(bounds), bound, " + ")
    }

    pub(super) fn ty(&self, ty: &Value) -> String {
        let Some((kind, inner)) = entry(ty) else { return "_".to_owned() };
        let member = || self.ty(&inner["type"]);
        match kind {
            "resolved_path" => self.path(inner),
            "primitive" if inner == "never" => "!".to_owned(),
            "primitive" | "generic" => text(inner).to_owned(),
            "tuple" => format!("({})", joined(list_of(inner), |ty| self.ty(ty), ", ")),
            "slice" => format!("[{}]", self.ty(inner)),
            "array" => format!("[{}; {}]", member(), text(&inner["len"])),
            "borrowed_ref" => format!("&{}{}", reference(inner), member()),
            "impl_trait" => format!("impl {}", self.bounds(inner)),
            "dyn_trait" => self.trait_object(inner),
            "function_pointer" => self.signature("", inner),
            "qualified_path" => self.projection(inner),
            _ => ty.to_string(),
        }
    }

    fn trait_object(&self, object: &Value) -> String {
        let traits = joined(list_of(&object["traits"]), |one| self.path(&one["trait"]), " + ");
        match object["lifetime"].as_str() {
            Some(lifetime) => format!("dyn {traits} + {lifetime}"),
            None => format!("dyn {traits}"),
        }
    }

    fn projection(&self, projection: &Value) -> String {
        let (of, name) = (self.ty(&projection["self_type"]), text(&projection["name"]));
        match &projection["trait"] {
            Value::Null => format!("{of}::{name}"),
            of_trait if text(&of_trait["path"]).is_empty() => format!("{of}::{name}"),
            of_trait => format!("<{of} as {}>::{name}", self.path(of_trait)),
        }
    }

    /// Whether a path leads into this crate.
    pub(super) fn is_ours(&self, path: &Value) -> bool {
        self.0[path["id"].to_string()]["crate_id"] == 0
    }

    /// A type or a trait with its arguments. The crate is told where it is neither this one nor the
    /// standard library.
    pub(super) fn path(&self, path: &Value) -> String {
        let known = list_of(&self.0[path["id"].to_string()]["path"]);
        let (first, last) = (known.first().map_or("", text), known.last().map_or("", text));
        let name = match first {
            "" => text(&path["path"]).to_owned(),
            "lockable_runtime" | "core" | "alloc" | "std" => last.to_owned(),
            _ => joined(known, |part| text(part).to_owned(), "::"),
        };
        name + &self.arguments(&path["args"])
    }

    fn arguments(&self, arguments: &Value) -> String {
        let Some((kind, inner)) = entry(arguments) else { return String::new() };
        if kind == "parenthesized" {
            let inputs = joined(list_of(&inner["inputs"]), |ty| self.ty(ty), ", ");
            return format!("({inputs}){}", self.output(&inner["output"]));
        }
        let argument = |argument: &Value| match entry(argument) {
            Some(("type", ty)) => self.ty(ty),
            Some(("lifetime", lifetime)) => text(lifetime).to_owned(),
            Some(("const", constant)) => text(&constant["expr"]).to_owned(),
            _ => "_".to_owned(),
        };
        let constraint = |constraint: &Value| self.constraint(constraint);
        let arguments = list_of(&inner["args"]).iter().map(argument);
        let all: Vec<_> =
            arguments.chain(list_of(&inner["constraints"]).iter().map(constraint)).collect();
        bracketed(&all)
    }

    fn constraint(&self, constraint: &Value) -> String {
        let name = text(&constraint["name"]);
        match entry(&constraint["binding"]) {
            Some(("equality", term)) => format!("{name} = {}", self.ty(&term["type"])),
            Some((_, bounds)) => with_bounds(name, &self.bounds(bounds)),
            None => name.to_owned(),
        }
    }
}

/// The one entry of an object: in this JSON, a variant and what it holds.
pub(super) fn entry(value: &Value) -> Option<(&str, &Value)> {
    value.as_object()?.iter().next().map(|(name, inner)| (name.as_str(), inner))
}

pub(super) fn list_of(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn reference(reference: &Value) -> String {
    let lifetime = reference["lifetime"].as_str().map(|name| format!("{name} "));
    let is_mutable = if reference["is_mutable"] == true { "mut " } else { "" };
    lifetime.unwrap_or_default() + is_mutable
}

fn with_bounds(what: &str, bounds: &str) -> String {
    if bounds.is_empty() { what.to_owned() } else { format!("{what}: {bounds}") }
}

fn bracketed(parts: &[String]) -> String {
    if parts.is_empty() { String::new() } else { format!("<{}>", parts.join(", ")) }
}

fn joined(values: &[Value], write: impl Fn(&Value) -> String, between: &str) -> String {
    values.iter().map(write).collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Names;

    #[test]
    fn types_are_written_as_in_rust() {
        let paths = json!({
            "1": { "path": ["core", "option", "Option"] },
            "2": { "path": ["http", "header", "HeaderName"] },
            "3": { "path": ["core", "future", "Future"] },
        });
        let names = Names(&paths);
        let unit = json!({ "tuple": [] });
        let of = |args| json!({ "angle_bracketed": { "args": args, "constraints": [] } });
        let header = json!({ "resolved_path": { "id": 2, "args": null } });
        let option =
            json!({ "resolved_path": { "id": 1, "args": of(json!([{ "type": header }])) } });
        assert_eq!(names.ty(&option), "Option<http::header::HeaderName>");
        let future = json!({ "id": 3, "args": { "angle_bracketed": { "args": [], "constraints": [
            { "name": "Output", "binding": { "equality": { "type": unit } } },
        ] } } });
        let bound = json!({ "impl_trait": [
            { "trait_bound": { "trait": future, "modifier": "none" } }, { "outlives": "'a" },
        ] });
        assert_eq!(names.ty(&bound), "impl Future<Output = ()> + 'a");
        let borrowed = json!({ "borrowed_ref": {
            "lifetime": "'a", "is_mutable": true, "type": { "slice": { "primitive": "u8" } },
        } });
        assert_eq!(names.ty(&borrowed), "&'a mut [u8]");
    }
}
