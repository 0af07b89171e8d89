//! Files named on the command line.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

use anyhow::{Result, anyhow, ensure};
use serde_json::Value;

/// More than the API server accepts for one object, in bytes.
const LARGEST_FILE: u64 = 4 << 20;

/// Reads a file to its end; `-` is standard input.
pub(crate) fn read(file: &Path) -> Result<String> {
    let source: Box<dyn Read> = if file == Path::new("-") { Box::new(stdin()) } else { Box::new(File::open(file)?) };
    let mut text = String::new();
    source.take(LARGEST_FILE + 1).read_to_string(&mut text)?;
    ensure!(text.len() as u64 <= LARGEST_FILE, "it is larger than {LARGEST_FILE} bytes");
    Ok(text)
}

/// Reads the one object of this kind in a file.
pub(crate) fn the_one_in(text: &str, kind: &str) -> Result<Value> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| anyhow!("it is not YAML: {error}"))?;
    let mut found = objects.into_iter().filter(|object| !object.is_null());
    match (found.next(), found.count()) {
        (Some(object), 0) if object["kind"] == kind => Ok(object),
        (_, 0) => Err(anyhow!("it holds no {kind}; give a file with one, and nothing else")),
        (_, more) => {
            let count = more + 1;
            Err(anyhow!("it holds {count} objects; give a file with one {kind}, and nothing else"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "WorkflowExecution";

    #[test]
    fn a_file_holds_one_execution_or_the_message_says_what_it_holds() {
        let one = "kind: WorkflowExecution\nmetadata: {name: a}\n";
        assert_eq!(the_one_in(one, KIND).unwrap()["metadata"]["name"], "a");
        assert!(the_one_in(&format!("---\n{one}---\n"), KIND).is_ok());
        for (text, said) in [
            ("kind: ConfigMap\n".to_owned(), "it holds no WorkflowExecution; give a file with one, and nothing else"),
            (String::new(), "it holds no WorkflowExecution; give a file with one, and nothing else"),
            ([one; 10].join("---\n"), "it holds 10 objects; give a file with one WorkflowExecution, and nothing else"),
        ] {
            assert_eq!(the_one_in(&text, KIND).unwrap_err().to_string(), said, "{text}");
        }
        let broken = the_one_in("a: [", KIND).unwrap_err().to_string();
        assert!(broken.starts_with("it is not YAML: ") && !broken.contains("from_"), "{broken}");
    }
}
