//! Just enough of the Redis protocol to see where one command or reply ends.

/// Cuts a stream of bytes into its top-level frames.
///
/// A stream that is not RESP (TLS, say) gives no frame, ever.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The start of a frame whose end has not come yet.
    buffer: Vec<u8>,
    is_foreign: bool,
}

impl Frames {
    /// Takes the next bytes of the stream and gives the frames that they complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        if self.is_foreign {
            return Vec::new();
        }
        self.buffer.extend_from_slice(bytes);
        let mut frames = Vec::new();
        while let Some(frame) = self.next() {
            frames.push(frame);
        }
        frames
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        match frame_length(&self.buffer) {
            Ok(length) => Some(self.buffer.drain(..length).collect()),
            Err(Stop::Incomplete) => None,
            Err(Stop::Foreign) => {
                self.is_foreign = true;
                self.buffer.clear();
                None
            }
        }
    }
}

/// The name of a command as clients send it, an array of bulk strings, in upper case.
pub(crate) fn command_name(frame: &[u8]) -> String {
    let mut lines = frame.split(|&byte| byte == b'\n');
    let name = lines.nth(2).unwrap_or_default().trim_ascii_end();
    String::from_utf8_lossy(name).to_uppercase()
}

/// The words of a command as clients send it, an array of bulk strings.
pub(crate) fn words(frame: &[u8]) -> Vec<&[u8]> {
    let (mut words, mut rest) = (Vec::new(), after_line(frame));
    while let Some(Ok(Some(length))) = line(rest).ok().map(number) {
        let text = after_line(rest);
        words.push(&text[..length]);
        rest = &text[length + LINE_END.len()..];
    }
    words
}

/// The elements of a list; none of what is no list.
pub(crate) fn elements(frame: &[u8]) -> Vec<Vec<u8>> {
    match frame.first() {
        Some(b'*' | b'~' | b'>') => Frames::default().feed(after_line(frame)),
        _ => Vec::new(),
    }
}

fn after_line(bytes: &[u8]) -> &[u8] {
    line(bytes).map_or(&[], |line| &bytes[line.len() + LINE_END.len()..])
}

/// Whether a frame is an out-of-band message of RESP3, which answers no command.
pub(crate) fn is_push(frame: &[u8]) -> bool {
    frame.first() == Some(&b'>')
}

enum Stop {
    Incomplete,
    Foreign,
}

/// The length of the frame that starts `bytes`, with everything nested in it.
fn frame_length(bytes: &[u8]) -> Result<usize, Stop> {
    let line = line(bytes)?;
    let header = line.len() + LINE_END.len();
    match line.first() {
        Some(b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(') => Ok(header),
        Some(b'$' | b'=' | b'!') => with_text(bytes, header, number(line)?),
        Some(b'*' | b'~' | b'>') => with_items(bytes, header, number(line)?.unwrap_or(0)),
        Some(b'%') => with_items(bytes, header, number(line)?.unwrap_or(0) * 2),
        Some(b'|') => with_items(bytes, header, number(line)?.unwrap_or(0) * 2 + 1),
        _ => Err(Stop::Foreign),
    }
}

/// The first line without its end.
fn line(bytes: &[u8]) -> Result<&[u8], Stop> {
    match bytes.windows(LINE_END.len()).position(|end| end == LINE_END) {
        Some(length) => Ok(&bytes[..length]),
        None if bytes.len() > LINE_LIMIT => Err(Stop::Foreign),
        None => Err(Stop::Incomplete),
    }
}

/// A length; `None` is the -1 of an absent value, which has nothing after its line.
fn number(line: &[u8]) -> Result<Option<usize>, Stop> {
    let text = std::str::from_utf8(&line[1..]).map_err(|_| Stop::Foreign)?;
    let number: i32 = text.parse().map_err(|_| Stop::Foreign)?;
    Ok(usize::try_from(number).ok())
}

fn with_text(bytes: &[u8], header: usize, length: Option<usize>) -> Result<usize, Stop> {
    let Some(length) = length else { return Ok(header) };
    let end = header + length + LINE_END.len();
    if bytes.len() < end { Err(Stop::Incomplete) } else { Ok(end) }
}

fn with_items(bytes: &[u8], header: usize, count: usize) -> Result<usize, Stop> {
    (0..count).try_fold(header, |end, _| Ok(end + frame_length(&bytes[end..])?))
}

const LINE_END: &[u8] = b"\r\n";

/// Longer than the longest error message, which is the longest line.
const LINE_LIMIT: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::{Frames, command_name, words};

    #[test]
    fn a_command_is_whole_only_with_its_last_byte() {
        let bytes = b"*2\r\n$3\r\nget\r\n$1\r\nk\r\n";
        let mut frames = Frames::default();
        assert!(frames.feed(&bytes[..bytes.len() - 1]).is_empty());
        assert_eq!(frames.feed(b"\n"), [bytes.to_vec()]);
        assert_eq!(command_name(bytes), "GET");
        assert_eq!(words(bytes), [b"get".as_slice(), b"k"]);
        assert_eq!(words(b"*2\r\n$0\r\n\r\n$4\r\na\r\nb\r\n"), [b"".as_slice(), b"a\r\nb"]);
    }

    #[test]
    fn replies_of_every_shape_are_one_frame_each() {
        let replies: [&[u8]; 8] = [
            b"+OK\r\n",
            b"-ERR no\r\n",
            b":12\r\n",
            b"$-1\r\n",
            b"*-1\r\n",
            b"*2\r\n*1\r\n:1\r\n$2\r\n\r\n\r\n",
            b"%1\r\n+a\r\n_\r\n",
            b">2\r\n+message\r\n#t\r\n",
        ];
        assert_eq!(Frames::default().feed(&replies.concat()), replies);
    }

    #[test]
    fn another_protocol_gives_no_frames() {
        let mut frames = Frames::default();
        assert!(frames.feed(b"\x16\x03\x01\r\n").is_empty());
        assert!(frames.feed(b"+OK\r\n").is_empty());
    }
}
