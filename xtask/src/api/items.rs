//! The items of rustdoc's JSON, each as a line.

use serde_json::Value;

use super::types::{Names, entry, list_of, text};

/// Every public item with its signature, sorted.
pub(super) fn list(documentation: &Value) -> String {
    let names = Names(&documentation["paths"]);
    let index = &documentation["index"];
    let mut list = Listing { index, names, lines: Vec::new(), traits: Vec::new() };
    let root = list.item(&documentation["root"]);
    list.module(text(&root["name"]), root);
    let traits = list.traits;
    let is_seen = |of: Option<&Value>| of.is_none_or(|of| traits.contains(&of));
    let seen = list.lines.into_iter().filter(|(of, _)| is_seen(*of));
    let mut lines: Vec<_> = seen.map(|(_, line)| line).collect();
    lines.sort();
    lines.dedup();
    lines.push(String::new());
    lines.join("\n")
}

struct Listing<'a> {
    index: &'a Value,
    names: Names<'a>,
    /// Each with the trait of this crate that must be seen, where it is about one.
    lines: Vec<(Option<&'a Value>, String)>,
    /// The ids of the traits that are seen.
    traits: Vec<&'a Value>,
}

impl<'a> Listing<'a> {
    /// An item by its id; nothing when it is hidden, or another crate's.
    fn item(&self, id: &Value) -> &'a Value {
        &self.index[id.to_string()]
    }

    fn line(&mut self, line: String) {
        self.lines.push((None, line));
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
                self.line(format!("pub mod {path}"));
                self.module(&path, item);
            }
            "function" => self.function(&path, item),
            "struct" => {
                self.line(format!("{}pub struct {path}{generics}", attributes(item)));
                self.fields(&path, &inner["kind"]);
                self.implementations(&path, inner);
            }
            "enum" => {
                self.line(format!("{}pub enum {path}{generics}", attributes(item)));
                for id in list_of(&inner["variants"]) {
                    self.variant(&path, id);
                }
                self.implementations(&path, inner);
            }
            "trait" => {
                let bounds = self.names.bounds(&inner["bounds"]);
                self.line(format!("pub trait {path}{generics}: {bounds}"));
                self.traits.push(&item["id"]);
                self.members(&path, inner);
            }
            "constant" | "static" | "type_alias" => {
                let ty = self.names.ty(&inner["type"]);
                self.line(format!("pub {kind} {path}{generics}: {ty}"));
            }
            _ => self.line(format!("pub {kind} {path}")),
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
            self.line(format!("pub use {} as {module}::{name}", text(&inner["source"])));
            let options = options(text(&import["docs"]));
            options.for_each(|option| self.line(format!("#[{module}::{name}] {option}")));
        } else {
            self.add(module, text(&inner["name"]), target);
        }
    }

    fn function(&mut self, path: &str, item: &Value) {
        let signature = self.names.signature(path, &item["inner"]["function"]);
        self.line(format!("{}pub {signature}", attributes(item)));
    }

    fn fields(&mut self, path: &str, kind: &Value) {
        let fields = list_of(&kind["plain"]["fields"]).iter().chain(list_of(&kind["tuple"]));
        for id in fields {
            let field = self.item(id);
            let Some((_, ty)) = entry(&field["inner"]) else { continue };
            let (name, ty) = (text(&field["name"]), self.names.ty(ty));
            self.line(format!("pub field {path}::{name}: {ty}"));
        }
    }

    fn variant(&mut self, path: &str, id: &Value) {
        let variant = self.item(id);
        let path = format!("{path}::{}", text(&variant["name"]));
        self.line(format!("{}pub variant {path}", attributes(variant)));
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
                self.implementation(of, implementation);
            }
        }
    }

    fn implementation(&mut self, of: &'a Value, implementation: &'a Value) {
        let (generics, conditions) =
            self.names.parameters_and_conditions(&implementation["generics"]);
        let not = if implementation["is_negative"] == true { "!" } else { "" };
        let (name, ty) = (self.names.path(of), self.names.ty(&implementation["for"]));
        let ours = self.names.is_ours(of).then_some(&of["id"]);
        self.lines.push((ours, format!("impl{generics} {not}{name} for {ty}{conditions}")));
        for id in list_of(&implementation["items"]) {
            let member = self.item(id);
            if let Some(("assoc_type", inner)) = entry(&member["inner"]) {
                let (member, is) = (text(&member["name"]), self.names.ty(&inner["type"]));
                self.lines.push((ours, format!("type <{ty} as {name}>::{member} = {is}")));
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
                    self.line(format!("pub {kind} {path}: {ty}"));
                }
                None => {}
            }
        }
    }
}

/// Of the traits that the compiler implements by itself those that decide where a value may go.
fn is_of_note(implementation: &Value) -> bool {
    let name = text(&implementation["trait"]["path"]).rsplit("::").next().unwrap_or_default();
    let is_wanted = implementation["is_synthetic"] != true || AUTO.contains(&name);
    // A projection that the macro of pin-project-lite makes changes with its version.
    let is_made = implementation["generics"].to_string().contains("__pin");
    let is_everywhere = !implementation["blanket_impl"].is_null() || name == "StructuralPartialEq";
    is_wanted && !is_made && !is_everywhere
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
        let this =
            json!({ "borrowed_ref": { "is_mutable": false, "type": { "generic": "Self" } } });
        let function = json!({
            "sig": { "inputs": [["self", this]], "output": { "tuple": [] } },
            "header": { "is_async": true },
        });
        let of =
            |id: u32| json!({ "impl": { "trait": { "id": id }, "for": { "generic": "Shop" } } });
        let documentation = json!({
            "root": 0,
            "paths": {
                "6": { "crate_id": 0, "path": ["root", "private", "Hidden"] },
                "7": { "crate_id": 1, "path": ["core", "clone", "Clone"] },
            },
            "index": {
                "0": { "name": "root", "inner": { "module": { "items": [1, 4] } } },
                "1": { "name": null, "inner": { "use": { "id": 2, "name": "Shop" } } },
                "2": { "name": "Private", "attrs": ["non_exhaustive"], "inner": { "struct": {
                    "kind": "unit", "impls": [3, 8, 9],
                } } },
                "3": { "inner": { "impl": { "trait": null, "items": [5] } } },
                "4": { "name": "a", "inner": { "module": { "items": [] } } },
                "5": { "name": "sell", "inner": { "function": function } },
                "6": { "name": "Hidden", "inner": { "trait": {} } },
                "8": { "inner": of(6) },
                "9": { "inner": of(7) },
            },
        });
        let expected = "\
#[non_exhaustive] pub struct root::Shop
impl Clone for Shop
pub async fn root::Shop::sell(&self) -> ()
pub mod root::a
";
        assert_eq!(list(&documentation), expected);
    }

    #[test]
    fn options_are_the_rows_of_the_table() {
        let text = "# Options\n\n| option | meaning | default |\n|---|---|---|\n\
                    | `renew` | keeps | off |\n| `on_error = \\|e\\| x` | gives | |\n\
                    # Keys\n| `no` | | |";
        let found: Vec<_> = options(text).collect();
        assert_eq!(found, ["`renew`, default: off", "`on_error = |e| x`, default: "]);
    }
}
