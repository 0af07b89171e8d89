//! Splits the answer to a list into objects while its bytes arrive. A page is never whole in memory, and an unreadable
//! object does not affect the others.

use std::collections::VecDeque;

use kube::core::ListMeta;
use serde::Deserialize;

/// The limit of one object, in bytes: ten times what etcd stores by default.
const MAX_OBJECT: usize = 16 << 20;
/// The limit of everything outside the objects, in bytes: a token and a version.
const MAX_FRAME: usize = 1 << 20;

/// Why an answer cannot be split.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    /// An object has more bytes than the limit.
    #[error("an object of the list has more than {MAX_OBJECT} bytes")]
    ObjectTooLarge,
    /// The part outside the objects has more bytes than the limit.
    #[error("the list has more than {MAX_FRAME} bytes beside its objects")]
    FrameTooLarge,
    /// The bytes ended before the list was complete.
    #[error("the list ended in the middle")]
    Truncated,
    /// The part outside the objects is not that of a list.
    #[error("the answer is no list: {0}")]
    NoList(#[source] serde_json::Error),
}

/// The parser of one page.
#[derive(Debug, Default)]
pub(super) struct Page {
    depth: u32,
    is_in_string: bool,
    is_escaped: bool,
    /// Whether the parser is inside `items`.
    is_in_items: bool,
    /// The last string directly in the outermost object. Before a `[`, it is the field name of the list.
    name: Vec<u8>,
    /// The object that is being read.
    object: Vec<u8>,
    /// All bytes outside the objects.
    frame: Vec<u8>,
}

/// The fields of a list outside its objects.
#[derive(Debug, Default, Deserialize)]
struct Frame {
    #[serde(default)]
    metadata: ListMeta,
}

impl Page {
    /// Reads the next bytes, and appends each object that is now complete.
    ///
    /// # Errors
    /// Why the answer cannot be read further.
    pub(super) fn push(&mut self, bytes: &[u8], objects: &mut VecDeque<Vec<u8>>) -> Result<(), PageError> {
        let mut rest = bytes;
        while let [byte, after @ ..] = rest {
            if self.is_in_string && !self.is_escaped {
                // Most bytes are plain text: copy everything up to the next significant byte at once.
                let plain = rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\')).count();
                if plain > 0 {
                    let (text, after) = rest.split_at(plain);
                    self.keep(text)?;
                    rest = after;
                    continue;
                }
            }
            self.take(*byte, objects)?;
            rest = after;
        }
        Ok(())
    }

    /// Returns the fields of the list outside its objects.
    ///
    /// # Errors
    /// If the bytes ended too early, or were no list.
    pub(super) fn finish(self) -> Result<ListMeta, PageError> {
        if self.depth > 0 || self.is_in_string {
            return Err(PageError::Truncated);
        }
        let frame: Frame = serde_json::from_slice(&self.frame).map_err(PageError::NoList)?;
        Ok(frame.metadata)
    }

    fn take(&mut self, byte: u8, objects: &mut VecDeque<Vec<u8>>) -> Result<(), PageError> {
        if self.is_in_string {
            let is_end = byte == b'"' && !self.is_escaped;
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            self.is_in_string = !is_end;
            if is_end {
                return self.keep_structure(byte);
            }
            return self.keep(&[byte]);
        }
        match byte {
            b'"' => {
                self.is_in_string = true;
                if self.depth == 1 {
                    self.name.clear();
                }
                self.keep_structure(byte)
            }
            b'{' | b'[' => {
                let opens_items = byte == b'[' && self.depth == 1 && self.name == b"items";
                self.keep_structure(byte)?;
                self.depth += 1;
                self.is_in_items |= opens_items;
                Ok(())
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.is_in_items && self.depth == 1 {
                    self.is_in_items = false;
                }
                self.keep_structure(byte)?;
                if self.is_in_items && self.depth == 2 {
                    objects.push_back(std::mem::take(&mut self.object));
                }
                Ok(())
            }
            // Separators between objects are dropped.
            _ if self.is_in_items && self.depth == 2 => Ok(()),
            _ => self.keep_structure(byte),
        }
    }

    /// Appends text of a string to the object or to the frame.
    fn keep(&mut self, text: &[u8]) -> Result<(), PageError> {
        if self.depth == 1 && !self.is_in_items {
            self.name.extend_from_slice(text);
        }
        let (kept, most, error) = if self.is_in_items {
            (&mut self.object, MAX_OBJECT, PageError::ObjectTooLarge)
        } else {
            (&mut self.frame, MAX_FRAME, PageError::FrameTooLarge)
        };
        if kept.len() + text.len() > most {
            return Err(error);
        }
        kept.extend_from_slice(text);
        Ok(())
    }

    fn keep_structure(&mut self, byte: u8) -> Result<(), PageError> {
        let name = std::mem::take(&mut self.name);
        let kept = self.keep(&[byte]);
        self.name = name;
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits an answer that arrives in pieces of this many bytes.
    fn apart(answer: &str, piece: usize) -> (Vec<String>, Result<ListMeta, PageError>) {
        let (mut page, mut objects) = (Page::default(), VecDeque::new());
        let pushed = answer.as_bytes().chunks(piece).try_for_each(|bytes| page.push(bytes, &mut objects));
        let objects = objects.into_iter().map(|object| String::from_utf8(object).unwrap()).collect();
        (objects, pushed.and_then(|()| page.finish()))
    }

    #[test]
    fn the_objects_of_a_page_come_one_by_one_wherever_the_bytes_are_cut() {
        let first = r#"{"metadata":{"name":"a \"]}[{ \\"},"spec":{"items":[1,[2],{"x":"ä"}]}}"#;
        let answer = format!(
            r#" {{"kind":"List", "items" : [ {first} ,
            {{"n":1}}], "metadata":{{"resourceVersion":"7","continue":"to\"ken"}}}} "#
        );
        for piece in [1, 2, 3, 7, 1000] {
            let (objects, end) = apart(&answer, piece);
            assert_eq!(objects, [first, r#"{"n":1}"#], "{piece}");
            let end = end.unwrap();
            assert_eq!((end.resource_version.as_deref(), end.continue_.as_deref()), (Some("7"), Some("to\"ken")));
        }
        for none in [
            r#"{"items":[],"metadata":{"resourceVersion":"7"}}"#,
            r#"{"metadata":{"resourceVersion":"7"},"items":null}"#,
        ] {
            let (objects, end) = apart(none, 5);
            assert_eq!((objects.len(), end.unwrap().resource_version.as_deref()), (0, Some("7")));
        }
    }

    #[test]
    fn only_the_list_of_the_outermost_object_has_objects() {
        let (objects, _) = apart(r#"{"metadata":{"items":[{"a":1}]},"other":[{"b":1}],"items":[{"c":1}]}"#, 4);
        assert_eq!(objects, [r#"{"c":1}"#]);
    }

    #[test]
    fn what_ends_in_the_middle_or_is_no_list_is_an_error() {
        for (answer, word) in
            [(r#"{"items":[{"a":1}"#, "middle"), (r#"{"items":[],"metadata":"#, "middle"), ("nothing", "no list")]
        {
            let (_, end) = apart(answer, 3);
            let error = end.unwrap_err().to_string();
            assert!(error.contains(word), "{answer}: {error}");
        }
    }
}
