//! The items of rustdoc's JSON, each as a line.

use serde_json::Value;

use super::types::{Names, entry, list_of, text};

/// Every public item with its signature, sorted.
pub(super) fn list(documentation: &Value) -> String {
    let names = Names(&documentation["paths"]);
    let mut list = Listing { index: &documentation["index"], names, lines: Vec::new() };
    let root = list.item(&documentation["root"]);
    list.module(text(&root["name"]), root);
    list.lines.sort();
    list.lines.dedup();
    list.lines.push(String::new());
    list.lines.join("\n")
}

struct Listing<'a> {
    index: &'a Value,
    names: Names<'a>,
    lines: Vec<String>,
}

impl<'a> Listing<'a> {
    /// An item by its id; nothing when it is hidden, or another crate's.
    fn item(&self, id: &Value) -> &'a Value {
        &self.index[id.to_string()]
    }

    fn module(&mut self, path: &str, module: &'a Value) {
        for id in list_of(&module["inner"]["module"]["items"]) {
            let item = self.item(id);
            self.add(path, text(&item["name"]), item);
        }
    }

    /// An item that stands in a module, or is imported there, under a name.
    fn add(&mut self, module: &str, name: &str, item: &'a Value) {
        let Some((kind, inner)) = entry(&item["inner"]) else { return };
        let path = format!("{module}::{name}");
        let generics = self.names.generics(&inner["generics"]);
        match kind {
            "use" => self.import(module, item),
            "module" => {
                self.lines.push(format!("pub mod {path}"));
                self.module(&path, item);
            }
            "function" => self.function(&path, item),
            "struct" => {
                self.lines.push(format!("{}pub struct {path}{generics}", attributes(item)));
                self.fields(&path, &inner["kind"]);
                self.implementations(&path, inner);
            }
            "enum" => {
                self.lines.push(format!("{}pub enum {path}{generics}", attributes(item)));
                for id in list_of(&inner["variants"]) {
                    self.variant(&path, id);
                }
                self.implementations(&path, inner);
            }
            "trait" => {
                let bounds = self.names.bounds(&inner["bounds"]);
                self.lines.push(format!("pub trait {path}{generics}: {bounds}"));
                self.members(&path, inner);
            }
            "constant" | "static" | "type_alias" => {
                let ty = self.names.ty(&inner["type"]);
                self.lines.push(format!("pub {kind} {path}{generics}: {ty}"));
            }
            _ => self.lines.push(format!("pub {kind} {path}")),
        }
    }

    /// What is imported from this crate stands under its new name; the attribute is another's.
    fn import(&mut self, module: &str, import: &'a Value) {
        let inner = &import["inner"]["use"];
        let target = self.item(&inner["id"]);
        if inner["is_glob"] == true {
            self.module(module, target);
        } else if target.is_null() {
            let name = text(&inner["name"]);
            self.lines.push(format!("pub use {} as {module}::{name}", text(&inner["source"])));
            let options = options(text(&import["docs"]));
            self.lines.extend(options.map(|option| format!("#[{module}::{name}] {option}")));
        } else {
            self.add(module, text(&inner["name"]), target);
        }
    }

    fn function(&mut self, path: &str, item: &Value) {
        let signature = self.names.signature(path, &item["inner"]["function"]);
        self.lines.push(format!("{}pub {signature}", attributes(item)));
    }

    fn fields(&mut self, path: &str, kind: &Value) {
        let fields = list_of(&kind["plain"]["fields"]).iter().chain(list_of(&kind["tuple"]));
        for id in fields {
            let field = self.item(id);
            let Some((_, ty)) = entry(&field["inner"]) else { continue };
            let (name, ty) = (text(&field["name"]), self.names.ty(ty));
            self.lines.push(format!("pub field {path}::{name}: {ty}"));
        }
    }

    fn variant(&mut self, path: &str, id: &Value) {
        let variant = self.item(id);
        let path = format!("{path}::{}", text(&variant["name"]));
        self.lines.push(format!("{}pub variant {path}", attributes(variant)));
        let kind = &variant["inner"]["variant"]["kind"];
        self.fields(&path, kind);
        self.fields(&path, &serde_json::json!({ "plain": kind["struct"] }));
    }

    /// Methods and traits, but for those that everything has.
    fn implementations(&mut self, path: &str, inner: &Value) {
        for id in list_of(&inner["impls"]) {
            let implementation = &self.item(id)["inner"]["impl"];
            let of = &implementation["trait"];
            if of.is_null() {
                self.members(path, implementation);
            } else if is_of_note(implementation) {
                let (generics, conditions) =
                    self.names.parameters_and_conditions(&implementation["generics"]);
                let not = if implementation["is_negative"] == true { "!" } else { "" };
                let of = format!("{not}{}", self.names.path(of));
                let ty = self.names.ty(&implementation["for"]);
                self.lines.push(format!("impl{generics} {of} for {ty}{conditions}"));
                self.associated_types(&format!("<{ty} as {of}>"), implementation);
            }
        }
    }

    fn members(&mut self, path: &str, inner: &Value) {
        for id in list_of(&inner["items"]) {
            let member = self.item(id);
            let path = format!("{path}::{}", text(&member["name"]));
            match entry(&member["inner"]) {
                Some(("function", _)) => self.function(&path, member),
                Some((kind, inner)) => {
                    let ty = self.names.ty(&inner["type"]);
                    self.lines.push(format!("pub {kind} {path}: {ty}"));
                }
                None => {}
            }
        }
    }

    fn associated_types(&mut self, path: &str, implementation: &Value) {
        for id in list_of(&implementation["items"]) {
            let member = self.item(id);
            if let Some(("assoc_type", inner)) = entry(&member["inner"]) {
                let ty = self.names.ty(&inner["type"]);
                self.lines.push(format!("type {path}::{} = {ty}", text(&member["name"])));
            }
        }
    }
}

/// Of the traits that the compiler implements by itself those that decide where a value may go.
fn is_of_note(implementation: &Value) -> bool {
    let name = text(&implementation["trait"]["path"]).rsplit("::").next().unwrap_or_default();
    let is_wanted = implementation["is_synthetic"] != true || AUTO.contains(&name);
    is_wanted && implementation["blanket_impl"].is_null() && name != "StructuralPartialEq"
}

/// What stands in front of an item because users' code depends on it.
fn attributes(item: &Value) -> String {
    let mut attributes = String::new();
    if list_of(&item["attrs"]).iter().any(|attribute| attribute == "non_exhaustive") {
        attributes.push_str("#[non_exhaustive] ");
    }
    if !item["deprecation"].is_null() {
        attributes.push_str("#[deprecated] ");
    }
    attributes
}

/// The options of the attribute and their defaults, as its documentation tells them in a table.
fn options(documentation: &str) -> impl Iterator<Item = String> {
    let section = documentation.lines().skip_while(|line| *line != "# Options").skip(1);
    let rows = section.take_while(|line| !line.starts_with("# "));
    let options = rows.filter_map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let option = cells.first().filter(|option| option.starts_with('`'))?;
        let default = cells.last().map_or("", |default| default.trim_end_matches(" |").trim());
        Some(format!("{option}, default: {default}").replace("\\|", "|"))
    });
    options.collect::<Vec<_>>().into_iter()
}

const AUTO: [&str; 3] = ["Send", "Sync", "Unpin"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{list, options};

    #[test]
    fn items_stand_under_the_names_of_their_users_and_are_sorted() {
        let unit = json!({ "tuple": [] });
        let function = json!({
            "sig": { "inputs": [["self", { "borrowed_ref": {
                "lifetime": null, "is_mutable": false, "type": { "generic": "Self" },
            } }]], "output": unit },
            "generics": { "params": [], "where_predicates": [] },
            "header": { "is_async": true },
        });
        let documentation = json!({
            "root": 0,
            "paths": {},
            "index": {
                "0": { "name": "root", "inner": { "module": { "items": [1, 4] } } },
                "1": { "name": null, "inner": { "use": { "id": 2, "name": "Shop" } } },
                "2": { "name": "Hidden", "attrs": ["non_exhaustive"], "inner": { "struct": {
                    "kind": "unit", "generics": { "params": [], "where_predicates": [] }, "impls": [3],
                } } },
                "3": { "name": null, "inner": { "impl": { "trait": null, "items": [5] } } },
                "4": { "name": "a", "inner": { "module": { "items": [] } } },
                "5": { "name": "sell", "inner": { "function": function } },
            },
        });
        let expected = "\
#[non_exhaustive] pub struct root::Shop
pub async fn root::Shop::sell(&self) -> ()
pub mod root::a
";
        assert_eq!(list(&documentation), expected);
    }

    #[test]
    fn options_are_the_rows_of_the_table() {
        let text = "# Options\n\n| option | meaning | default |\n|---|---|---|\n\
                    | `renew` | keeps | off |\n| `on_error = \\|e\\| x` | gives | |\n# Keys\n| `no` | | |";
        let found: Vec<_> = options(text).collect();
        assert_eq!(found, ["`renew`, default: off", "`on_error = |e| x`, default: "]);
    }
}
