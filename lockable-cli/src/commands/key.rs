//! `lockable key`: the key that a template and its values make, as the attribute and `lock_key!` make it.

use lockable_runtime::LockKey;
use serde::Serialize;

use crate::arguments::Key;
use crate::failure::Failure;
use crate::output::{json, write_line};

pub(crate) fn key(arguments: &Key, json: bool) -> Result<u8, Failure> {
    let Key { template, values } = arguments;
    let key = Template::parse(template)?.render(values)?;
    let name = key.as_str();
    if json {
        json::print(&Line { name });
    } else {
        write_line(name);
    }
    Ok(0)
}

#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
}

/// `order:{id}`: texts, and holes for values.
struct Template<'a> {
    holes: Vec<Hole>,
    /// The text behind the last hole.
    tail: String,
    /// What each value is called, in their order; nothing for `{}`.
    names: Vec<&'a str>,
}

struct Hole {
    /// The text between this hole and the one before.
    before: String,
    /// The number of the value that fills it.
    value: usize,
}

impl<'a> Template<'a> {
    /// # Errors
    /// When no function could have this template.
    fn parse(text: &'a str) -> Result<Self, Failure> {
        let mut template = Self { holes: Vec::new(), tail: String::new(), names: Vec::new() };
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '{' | '}' if rest.as_str().starts_with(c) => {
                    rest.next();
                    template.tail.push(c);
                }
                '{' => {
                    let (name, after) = rest.as_str().split_once('}').ok_or_else(unclosed)?;
                    template.add(name)?;
                    rest = after.chars();
                }
                '}' => return Err(unclosed()),
                '%' => return Err(Failure::usage(PERCENT)),
                // A shell cuts a line break at the end off.
                c if c.is_control() => return Err(Failure::usage(CONTROL)),
                c => template.tail.push(c),
            }
        }
        Ok(template)
    }

    /// # Errors
    /// When the attribute would refuse the hole.
    fn add(&mut self, name: &'a str) -> Result<(), Failure> {
        if !name.is_empty() && !is_name(name) {
            let message =
                format!("a hole of a key template is `{{}}` or `{{name}}`, not `{{{name}}}`");
            return Err(Failure::usage(message));
        }
        if self.tail.is_empty() && !self.holes.is_empty() {
            return Err(Failure::usage(ADJACENT));
        }
        let known = self.names.iter().position(|known| !name.is_empty() && *known == name);
        let value = known.unwrap_or(self.names.len());
        if known.is_none() {
            self.names.push(name);
        }
        self.holes.push(Hole { before: std::mem::take(&mut self.tail), value });
        Ok(())
    }

    /// # Errors
    /// When the values are more or fewer, or make no key.
    fn render(&self, values: &[String]) -> Result<LockKey, Failure> {
        let (wanted, given) = (self.names.len(), values.len());
        if wanted != given {
            let message = format!(
                "the number of values that the key template takes is {wanted}, and {given} were given"
            );
            return Err(Failure::usage(message));
        }
        let mut key = String::new();
        for Hole { before, value } in &self.holes {
            let text = values.get(*value).map_or("", String::as_str);
            let escaped = LockKey::escape(text, &self.delimiters(*value));
            key += before;
            key += &escaped.map_err(|_| self.is_empty(*value))?;
        }
        Ok(LockKey::new(key + &self.tail)?)
    }

    /// What follows the holes of this value, where another hole comes after: it ends the value.
    fn delimiters(&self, value: usize) -> String {
        let next = self.holes.iter().skip(1).map(|hole| hole.before.chars().next());
        let pairs = self.holes.iter().zip(next).filter(|(hole, _)| hole.value == value);
        pairs.filter_map(|(_, delimiter)| delimiter).collect()
    }

    fn is_empty(&self, value: usize) -> Failure {
        let name = self.names.get(value).copied().unwrap_or_default();
        Failure::usage(format!(
            "the value of `{{{name}}}` is empty; two such keys would be one lock"
        ))
    }
}

fn is_name(text: &str) -> bool {
    let starts_well = text.starts_with(|c: char| c == '_' || c.is_alphabetic());
    starts_well && text != "_" && text.chars().all(|c| c == '_' || c.is_alphanumeric())
}

fn unclosed() -> Failure {
    Failure::usage(
        "a brace of the key template has no other one; `{{` and `}}` are braces of the key itself",
    )
}

const PERCENT: &str = "no `%` in a key template: in a key it starts an escaped character of a value; pass it in a value";

const CONTROL: &str =
    "no control character in a key template; pass it in a value, which is escaped";

const ADJACENT: &str = "two holes of the key template have nothing between them; put a character such as `:` there, or \
                        different values make the same key";
