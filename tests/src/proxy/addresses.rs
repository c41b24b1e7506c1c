//! Addresses of servers in what servers send.

/// Writes another port behind each address of this machine whose port is one of the first of these pairs.
///
/// All have five digits, so no reply changes its length.
pub(super) fn replace(bytes: &mut [u8], ports: &[(String, String)]) {
    let mut from = 0;
    while let Some(at) = bytes[from..].windows(HOST.len()).position(|window| window == HOST) {
        from += at + HOST.len();
        let between = BETWEEN.iter().find(|between| bytes[from..].starts_with(between.as_bytes()));
        let Some(start) = between.map(|between| from + between.len()) else { continue };
        let port = bytes.get_mut(start..start + DIGITS).unwrap_or_default();
        if let Some((_, new)) = ports.iter().find(|(old, _)| old.as_bytes() == port) {
            port.copy_from_slice(new.as_bytes());
        }
    }
}

const HOST: &[u8] = b"127.0.0.1";
const DIGITS: usize = 5;

/// In an error, in a message, in a list of numbers and of texts, and in a list with names.
const BETWEEN: [&str; 5] = [":", " ", "\r\n:", "\r\n$5\r\n", "\r\n$4\r\nport\r\n$5\r\n"];

#[cfg(test)]
mod tests {
    use super::replace;

    fn replaced(text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        replace(&mut bytes, &[("12345".to_owned(), "20000".to_owned())]);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn each_form_of_an_address_is_replaced() {
        let forms = [
            "-MOVED 5 127.0.0.1:12345\r\n",
            "mm 127.0.0.1 1 127.0.0.1 12345",
            "$9\r\n127.0.0.1\r\n:12345\r\n",
            "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n12345\r\n",
            "$9\r\n127.0.0.1\r\n$4\r\nport\r\n$5\r\n12345\r\n",
        ];
        for form in forms {
            assert_eq!(replaced(form), form.replace("12345", "20000"));
        }
    }

    #[test]
    fn other_numbers_stay() {
        for text in ["127.0.0.1:12346", "10.0.0.1:12345", ":12345\r\n", "127.0.0.1", "127.0.0.1:1"]
        {
            assert_eq!(replaced(text), text);
        }
    }
}
