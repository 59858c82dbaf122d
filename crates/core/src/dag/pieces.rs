//! Texts with holes: `${ expression }`, and `$${` where `${` is meant.

pub(super) const HOLE: &str = "${";
/// Stands for the text of [`HOLE`].
const ESCAPED_HOLE: &str = "$${";

/// What a text consists of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(String),
    /// The expression inside.
    Hole(&'a str),
}

/// The pieces of a text, no two texts side by side and none empty. `None` if a hole is not closed.
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

/// Where the bracket is that closes a hole: not one inside of the expression's maps or texts.
fn end_of_hole(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut last) = (0_usize, None, ' ');
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match (quote, c) {
            (Some((end, _)), _) if c == end => quote = None,
            (Some((_, false)), '\\') => drop(characters.next()),
            (Some(_), _) => {}
            // After an r a backslash is a backslash.
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
