//! Texts with expressions: `${ expression }`, and `$${` for a literal `${`.

pub(super) const HOLE: &str = "${";
/// Written for a literal [`HOLE`].
const ESCAPED_HOLE: &str = "$${";

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(String),
    /// The text of the expression.
    Hole(&'a str),
}

/// The pieces of a text: no two plain texts in a row, and none empty. None if an expression is not closed.
pub(crate) fn pieces(text: &str) -> Option<Vec<Piece<'_>>> {
    let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some(dollar) = rest.find('$') {
        plain.push_str(&rest[..dollar]);
        rest = &rest[dollar..];
        if let Some(after) = rest.strip_prefix(ESCAPED_HOLE) {
            plain.push_str(HOLE);
            rest = after;
        } else if let Some(inside) = rest.strip_prefix(HOLE) {
            let end = end_of_hole(inside)?;
            pieces.extend(Some(std::mem::take(&mut plain)).filter(|text| !text.is_empty()).map(Piece::Text));
            pieces.push(Piece::Hole(&inside[..end]));
            rest = &inside[end + 1..];
        } else {
            plain.push('$');
            rest = &rest[1..];
        }
    }
    plain.push_str(rest);
    pieces.extend(Some(plain).filter(|text| !text.is_empty()).map(Piece::Text));
    Some(pieces)
}

/// The position of the bracket that closes the expression, skipping brackets of maps and texts inside it.
fn end_of_hole(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut last) = (0_usize, None, ' ');
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match (quote, c) {
            (Some((end, _)), _) if c == end => quote = None,
            (Some((_, false)), '\\') => drop(characters.next()),
            (Some(_), _) => {}
            // In a raw string (r"…") a backslash escapes nothing.
            (None, '\'' | '"') => quote = Some((c, matches!(last, 'r' | 'R'))),
            (None, '{') => depth += 1,
            (None, '}') if depth == 0 => return Some(at),
            (None, '}') => depth -= 1,
            (None, _) => {}
        }
        last = c;
    }
    None
}
