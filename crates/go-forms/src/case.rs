//! Lower case, as `strings.ToLower`.

/// The text in lower case. Go maps each character to one other, without regard to those around it.
pub fn to_lower(text: &str) -> String {
    text.chars().map(lower).collect()
}

fn lower(character: char) -> char {
    let mut mapped = character.to_lowercase();
    match (mapped.next(), mapped.next()) {
        (Some(lower), None) => lower,
        // The only character of which Unicode makes two: Go takes the first.
        (Some(first), Some(_)) => first,
        (None, _) => character,
    }
}

#[cfg(test)]
mod tests {
    use super::to_lower;

    #[test]
    fn characters_are_mapped_one_by_one() {
        let rows = [("Foo.IO", "foo.io"), ("É", "é"), ("\u{130}", "i"), ("ΑΣ", "ασ")];
        for (text, expected) in rows {
            assert_eq!(to_lower(text), expected);
        }
    }
}
