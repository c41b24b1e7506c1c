//! Which hole of a key template could not be filled.

enum Piece<'a> {
    Text(String),
    Hole(&'a str),
}

/// Names the hole at which a rendering ended, as the template has it.
///
/// What was rendered can be read in one way only: a value does not contain the character after it if another hole
/// follows.
pub(crate) fn at_end(template: &str, rendered: &str) -> String {
    let pieces = pieces(template);
    let is_hole = |piece: &Piece<'_>| matches!(piece, Piece::Hole(_));
    let last = pieces.iter().filter(|piece| is_hole(piece)).count();
    let mut rest = rendered;
    let mut holes = 0;
    for (piece, next) in pieces.iter().zip(pieces.iter().skip(1).map(Some).chain([None])) {
        match piece {
            Piece::Text(text) => rest = rest.strip_prefix(text.as_str()).unwrap_or_default(),
            Piece::Hole(name) => {
                holes += 1;
                match after_value(rest, next) {
                    Some(after) if holes < last => rest = after,
                    _ => return shown(name, holes),
                }
            }
        }
    }
    "a hole".to_owned()
}

fn after_value<'a>(rest: &'a str, next: Option<&Piece<'_>>) -> Option<&'a str> {
    let Some(Piece::Text(text)) = next else { return None };
    let end = text.chars().next().and_then(|end| rest.find(end)).filter(|end| *end > 0)?;
    rest.get(end..)
}

fn shown(name: &str, number: usize) -> String {
    match name {
        "" => format!("`{{}}` (hole {number})"),
        _ => format!("`{{{name}}}`"),
    }
}

/// The template as `format_args!` reads it; the compiler has checked it.
fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let doubled = ["{{", "}}"].into_iter().find_map(|two| from.strip_prefix(two));
        rest = if let Some(after) = doubled {
            text.extend(from.chars().next());
            after
        } else {
            let (inside, after) = from.split_once('}').unwrap_or((from, ""));
            pieces.extend([
                Piece::Text(std::mem::take(&mut text)),
                Piece::Hole(inside.trim_matches(['{', ' '])),
            ]);
            after
        };
    }
    text.push_str(rest);
    pieces.push(Piece::Text(text));
    pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
    pieces
}

#[cfg(test)]
mod tests {
    use super::at_end;

    #[test]
    fn a_hole_without_a_value_is_named() {
        let cases = [
            ("order:{id}", "order:", "`{id}`"),
            ("{shop}:{id}:a", ":", "`{shop}`"),
            ("{shop}:{id}:a", "s:", "`{id}`"),
            ("{shop}:{ id }:a", "s:half", "`{id}`"),
            ("{{x}}:{}-{}:{1}", "{x}:a-", "`{}` (hole 2)"),
            ("{{x}}:{}-{}:{1}", "{x}:a-b:", "`{1}`"),
            ("{a}/{b}", "", "`{a}`"),
            ("{a}:{id}/end", "x:half/of it", "`{id}`"),
        ];
        for (template, rendered, hole) in cases {
            assert_eq!(at_end(template, rendered), hole, "{template} {rendered}");
        }
    }
}
