//! The links of the texts lead somewhere: in the repository, in the documentation and on the
//! registry's page.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::{files, read, root, texts};

const REPOSITORY: &str = "https://github.com/lockable/lockable/";
/// Where pages find images, which GitHub serves as such with `?sanitize=true` alone.
const IMAGES: &str = "https://raw.githubusercontent.com/lockable/lockable/main/";
const DOCUMENTATION: &str = "https://docs.rs/lockable-runtime/latest/lockable_runtime/";

/// Whose pages a text may link: nothing here asks the network whether they exist.
const HOSTS: [&str; 20] = [
    "doc.rust-lang.org",
    "docs.rs",
    "github.com",
    "redis.io",
    "valkey.io",
    "pkg.go.dev",
    "redisson.pro",
    "docs.aws.amazon.com",
    "learn.microsoft.com",
    "cloud.google.com",
    "docs.cloud.google.com",
    "upstash.com",
    "docs.oracle.com",
    "docs.digitalocean.com",
    "devcenter.heroku.com",
    "www.tencentcloud.com",
    "help.ovhcloud.com",
    "azure.github.io",
    "microsoft.github.io",
    "dragonflydb.io",
];

/// Which texts are a page of the documentation, where a relative link leads nowhere.
fn is_in_documentation(text: &str) -> bool {
    let is_page = text.contains("/guide/") || text.starts_with("design/");
    is_page || ["README.md", "DESIGN.md", "CHANGELOG.md"].contains(&text)
}

#[test]
fn links_into_the_repository_find_their_file_and_heading() {
    let mut count = 0;
    for text in texts() {
        for target in targets(&text) {
            let (path, heading) = target.split_once('#').unwrap_or((&target, ""));
            let Some(path) = in_repository(&text, path) else { continue };
            assert!(root().join(&path).exists(), "{text}: {target}");
            let is_heading = heading.is_empty() || headings(&path).contains(heading);
            assert!(is_heading, "{text}: {target}: no such heading");
            count += 1;
        }
    }
    assert!(count >= 30, "{count} links");
}

/// crates.io resolves relative links of a README against the package's folder, where its files are not.
#[test]
fn links_of_a_readme_are_absolute() {
    for text in [
        "README.md",
        "lockable-installed/README.md",
        "lockable-macros/README.md",
        "lockable-cli/README.md",
    ] {
        let targets = if root().join(text).exists() { targets(text) } else { Vec::new() };
        for target in targets {
            assert!(target.starts_with("https://"), "{text}: {target}");
        }
    }
}

#[test]
fn links_to_other_sites_are_to_known_hosts() {
    for text in texts() {
        for target in targets(&text).iter().filter(|target| target.contains("://")) {
            let known = |rest: &str| HOSTS.contains(&rest.split('/').next().unwrap());
            let is_known =
                target.starts_with(IMAGES) || target.strip_prefix("https://").is_some_and(known);
            assert!(is_known && !target.contains(' '), "{text}: {target}");
        }
    }
}

/// Goal: a link to an item or a page of the guide works in the repository, and in the documentation,
/// where it is one of the same version.
/// Method: its label is the item's path, or the question that the design answers there. The text says
/// where it is on the web, or in the repository, and `links.md` where it is in the crate; rustdoc reads
/// that first, and reports what is not there.
#[test]
fn links_to_items_are_named_by_the_items_path() {
    // A link to a method of `LockRequest` names no parameter.
    let api = read("lockable-runtime/public-api.txt").replace("LockRequest<K>", "LockRequest");
    let links = read("lockable-runtime/links.md");
    let links: Vec<_> = links.lines().collect();
    let in_code = headings_in_code();
    let mut used = Vec::new();
    for text in texts().into_iter().filter(|text| is_in_documentation(text)) {
        for (label, target) in definitions(&read(&text)) {
            let item = item(&label, &target);
            let is_page = !target.contains("://");
            if !is_page && !target.starts_with(DOCUMENTATION) {
                continue;
            }
            let places = if is_page {
                page(&item).map(|page| relative(&text, &page)).into_iter().collect()
            } else {
                places(&label, &api)
            };
            assert!(places.contains(&target), "{text}: [{label}]: {places:?}, not {target}");
            if let (false, Some((_, heading))) = (is_page, label.split_once('#')) {
                assert!(in_code.contains(heading), "{text}: [{label}]: no such heading");
            }
            let line = format!("[{label}]: {}", path(&item));
            assert!(links.contains(&line.as_str()), "links.md lacks {line}");
            used.push(line);
        }
    }
    let unused: Vec<_> = links.iter().filter(|line| !used.iter().any(|it| it == *line)).collect();
    assert!(unused.is_empty() && used.len() >= 20, "links.md has {unused:?} for no text");
}

/// Nothing that only rustdoc understands is left for other readers.
#[test]
fn texts_have_no_links_for_rustdoc_alone() {
    for text in texts() {
        let shown = read(&text);
        assert!(!shown.contains("](crate::") && !shown.contains("@crate::"), "{text}");
        let defined: Vec<_> = definitions(&shown).into_iter().map(|(label, _)| label).collect();
        for label in labels(&shown).into_iter().chain(questions(&shown)) {
            assert!(defined.contains(&label), "{text}: [{label}] is not defined");
        }
        if is_in_documentation(&text) {
            let inline = inline(&shown).into_iter().find(|target| !target.starts_with("https://"));
            assert_eq!(inline, None, "{text}: it leads nowhere in the documentation");
        }
    }
}

/// The path of what a label names: the label, or the heading of its question.
fn item(label: &str, target: &str) -> String {
    let file = target.rsplit('/').next().and_then(|file| file.split_once(".md#"));
    match file {
        Some((part, _)) if label.ends_with('?') => {
            format!("guide::design::{part}#{}", anchor(label))
        }
        _ => label.to_owned(),
    }
}

/// The other macro is called, and needs no word before its path.
const ATTRIBUTE: &str = "distributed_lock";

/// The path that rustdoc resolves.
fn path(item: &str) -> String {
    let is_attribute = item.split('#').next() == Some(ATTRIBUTE);
    format!("{}crate::{item}", if is_attribute { "macro@" } else { "" })
}

/// The file of a page of the guide, with its heading.
fn page(label: &str) -> Option<String> {
    let (path, heading) = label.split_at(label.find('#').unwrap_or(label.len()));
    let file = match path.strip_prefix("guide").map(|path| path.trim_start_matches("::"))? {
        "" => "lockable-runtime/guide/index.md".to_owned(),
        "design" => "DESIGN.md".to_owned(),
        "changelog" => "CHANGELOG.md".to_owned(),
        page => page.strip_prefix("design::").map_or_else(
            || format!("lockable-runtime/guide/{page}.md"),
            |part| format!("design/{part}.md"),
        ),
    };
    Some(file + heading)
}

/// A file of the workspace, as a text links it.
fn relative(text: &str, file: &str) -> String {
    let folder = text.rsplit_once('/').map_or("", |(folder, _)| folder);
    let neighbour = file.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    let up = || "../".repeat(text.matches('/').count()) + file;
    neighbour.map_or_else(up, str::to_owned)
}

/// Where docs.rs shows what is named, by its kind in the list of the public API.
fn places(label: &str, api: &str) -> Vec<String> {
    let (path, heading) = label.split_at(label.find('#').unwrap_or(label.len()));
    let (parent, name) = path.rsplit_once("::").unwrap_or(("", path));
    let folder =
        |path: &str| if path.is_empty() { String::new() } else { path.replace("::", "/") + "/" };
    let (of_parent, parent_name) = parent.rsplit_once("::").unwrap_or(("", parent));
    if page(path).is_some() {
        return vec![format!("{DOCUMENTATION}{}index.html{heading}", folder(path))];
    }
    let mut places = Vec::new();
    for kind in kinds(path, api) {
        for parent_kind in kinds(parent, api).filter(|kind| ["struct", "enum"].contains(kind)) {
            let part = if kind == "fn" { "method" } else { "variant" };
            let folder = folder(of_parent);
            places.push(format!(
                "{DOCUMENTATION}{folder}{parent_kind}.{parent_name}.html#{part}.{name}"
            ));
        }
        places.push(match kind {
            "mod" => format!("{DOCUMENTATION}{}index.html{heading}", folder(path)),
            "use" => {
                let kind = if path == ATTRIBUTE { "attr" } else { "macro" };
                format!("{DOCUMENTATION}{kind}.{path}.html{heading}")
            }
            _ => format!("{DOCUMENTATION}{}{kind}.{name}.html{heading}", folder(parent)),
        });
    }
    places
}

/// `struct`, `fn`, `mod` and so on: the word before a path of the list. A variant has none.
fn kinds<'a>(path: &str, api: &'a str) -> impl Iterator<Item = &'a str> {
    let path = format!("lockable_runtime::{path}");
    let lines = api.lines().filter_map(move |line| {
        let (before, after) = line.split_once(&path)?;
        let is_whole = !after.starts_with(|c: char| c.is_alphanumeric() || "_:".contains(c));
        is_whole.then_some(before)
    });
    lines.filter_map(|before| {
        before.split("pub").nth(1)?.split_whitespace().last().or(Some("variant"))
    })
}

/// The path from the workspace, if the link leads to a file of it.
fn in_repository(text: &str, path: &str) -> Option<String> {
    if let Some(image) = path.strip_prefix(IMAGES) {
        return image.strip_suffix("?sanitize=true").map(str::to_owned);
    }
    if let Some(path) = path.strip_prefix(REPOSITORY) {
        let kinds = ["blob/main/", "tree/main/"];
        return kinds.iter().find_map(|kind| path.strip_prefix(kind)).map(str::to_owned);
    }
    let folder = Path::new(text).parent().unwrap().to_str().unwrap();
    match path {
        _ if path.contains("://") => None,
        "" => Some(text.to_owned()),
        _ if folder.is_empty() => Some(path.to_owned()),
        _ => Some(format!("{folder}/{path}")),
    }
}

fn headings(path: &str) -> BTreeSet<String> {
    read(path).lines().filter_map(|line| line.strip_prefix('#')).map(anchor).collect()
}

/// The headings in the documentation of the items.
fn headings_in_code() -> BTreeSet<String> {
    let files = files(&root().join("lockable-runtime/src")).into_iter();
    let code: String = files.map(|file| fs::read_to_string(file).unwrap()).collect();
    code.lines().filter_map(|line| line.strip_prefix("/// #")).map(anchor).collect()
}

/// A heading as GitHub and rustdoc name it.
fn anchor(title: &str) -> String {
    let title = title.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    title.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}

fn targets(text: &str) -> Vec<String> {
    let text = read(text);
    let defined = definitions(&text).into_iter().map(|(_, target)| target);
    inline(&text).into_iter().chain(defined).collect()
}

/// The targets of `[text](target)`.
fn inline(text: &str) -> Vec<String> {
    let text = prose(text);
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.map(str::to_owned).collect()
}

/// The labels of `[text][label]`.
fn labels(text: &str) -> Vec<String> {
    let text = prose(text);
    let labels = text.split("][").skip(1).filter_map(|rest| rest.split(']').next());
    labels.map(str::to_owned).collect()
}

/// The questions of the design that are links: `[question?]`, without another label.
fn questions(text: &str) -> Vec<String> {
    let parts = text.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
    let is_alone = |rest: &str| !rest.is_empty() && !rest.starts_with(['(', '[']);
    let parts = parts.filter(|(label, rest)| label.ends_with('?') && is_alone(rest));
    let labels = parts.map(|(label, _)| label);
    labels.map(|label| label.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// The lines `[label]: target`.
fn definitions(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
    lines.map(|(label, target)| (label.to_owned(), target.to_owned())).collect()
}

/// The text without code and comments, which have no links.
fn prose(text: &str) -> String {
    let without_blocks: String = text.split("```").step_by(2).collect();
    let without_code: String = without_blocks.split('`').step_by(2).collect();
    let mut parts = without_code.split("<!--");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once("-->").map_or("", |(_, rest)| rest))
}
