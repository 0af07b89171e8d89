//! Files that people name.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

use anyhow::{Result, ensure};

/// More than the API server takes of one object, in bytes.
const LARGEST_FILE: u64 = 4 << 20;

/// Reads a file to its end; `-` is standard input.
pub(crate) fn read(file: &Path) -> Result<String> {
    let source: Box<dyn Read> = if file == Path::new("-") { Box::new(stdin()) } else { Box::new(File::open(file)?) };
    let mut text = String::new();
    source.take(LARGEST_FILE + 1).read_to_string(&mut text)?;
    ensure!(text.len() as u64 <= LARGEST_FILE, "it is larger than {LARGEST_FILE} bytes");
    Ok(text)
}
