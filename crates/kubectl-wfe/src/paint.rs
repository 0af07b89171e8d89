//! Colours for people on a terminal: headings, marks, and the words for how things are.
//!
//! They are added to finished text, after everything in it that could control a terminal was made harmless.

use anstyle::{AnsiColor, Style};

const HEADING: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const OPEN: Style = AnsiColor::Yellow.on_default();
const BUSY: Style = AnsiColor::Cyan.on_default();

/// Words that fill a cell of a table.
const CELLS: [(&str, Style); 13] = [
    ("Completed", GOOD),
    ("runs", GOOD),
    ("ok", GOOD),
    ("Failed", BAD),
    ("BLOCKED", BAD),
    ("x", BAD),
    ("Skipped", OPEN),
    ("skipped", OPEN),
    ("Pending", OPEN),
    ("!", OPEN),
    ("Running", BUSY),
    ("cleared", BUSY),
    ("cancelled", BUSY),
];

/// Words within a line that is neither indented nor a row of a table. The first one that the line contains counts.
const HEADS: [(&str, Style); 12] = [
    ("would run now", GOOD),
    ("is Completed", GOOD),
    ("Completed after", GOOD),
    (" completed ", GOOD),
    ("is BLOCKED", BAD),
    ("would fail", BAD),
    ("is Failed", BAD),
    ("Failed", BAD),
    ("would be skipped", OPEN),
    ("would be held", OPEN),
    ("would wait", OPEN),
    ("is Running", BUSY),
];

/// Adds colours to lines.
pub(crate) fn painted(text: &str) -> String {
    text.split_inclusive('\n').map(painted_line).collect()
}

fn painted_line(line: &str) -> String {
    let (body, end) = line.strip_suffix('\n').map_or((line, ""), |body| (body, "\n"));
    if is_heading(body) {
        return format!("{HEADING}{body}{HEADING:#}{end}");
    }
    // A mark before a message, as `lint` writes it.
    let mark = body.split_once(' ').and_then(|(mark, rest)| Some((styled(mark).filter(|_| mark.len() == 1)?, rest)));
    if let Some((mark, rest)) = mark {
        return format!("{mark} {rest}{end}");
    }
    if !body.contains("  ") && !body.starts_with(' ') {
        let found = HEADS.iter().find_map(|(word, style)| Some((body.split_once(word)?, word, style)));
        if let Some(((before, after), word, style)) = found {
            return format!("{before}{style}{word}{style:#}{after}{end}");
        }
    }
    // Cells are two spaces apart. Empty parts are further spaces.
    let cells: Vec<String> = body.split("  ").map(cell).collect();
    cells.join("  ") + end
}

/// Paints a cell, which may begin with a space.
fn cell(cell: &str) -> String {
    let word = cell.trim_start_matches(' ');
    let Some(styled) = styled(word) else { return cell.to_owned() };
    format!("{}{styled}", " ".repeat(cell.len() - word.len()))
}

fn styled(word: &str) -> Option<String> {
    let (_, style) = CELLS.iter().find(|(known, _)| *known == word)?;
    Some(format!("{style}{word}{style:#}"))
}

/// Returns whether a line has the headings of a table, or is the heading of a part, such as `RUNNING (1)`.
fn is_heading(line: &str) -> bool {
    let is_part = |it: char| it.is_ascii_uppercase() || it.is_ascii_digit() || " ()-".contains(it);
    line.starts_with(|it: char| it.is_ascii_uppercase()) && line.len() > 1 && line.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a text with its colours as marks that can be read.
    fn seen(text: &str) -> String {
        let marks = [
            ("\u{1b}[0m", ">"),
            ("\u{1b}[1m", "<bold "),
            ("\u{1b}[32m", "<green "),
            ("\u{1b}[31m", "<red "),
            ("\u{1b}[33m", "<yellow "),
            ("\u{1b}[36m", "<cyan "),
        ];
        marks.iter().fold(painted(text), |text, (code, mark)| text.replace(code, mark))
    }

    #[test]
    fn headings_marks_phases_and_verdicts_have_colours() {
        for (text, expected) in [
            ("NAMESPACE  NAME  PHASE    WHY\n", "<bold NAMESPACE  NAME  PHASE    WHY>\n"),
            ("NEEDS A PERSON (1)\n", "<bold NEEDS A PERSON (1)>\n"),
            ("ops        a     Failed   exit 1\n", "ops        a     <red Failed>   exit 1\n"),
            ("ops  b  Completed\n", "ops  b  <green Completed>\n"),
            ("ops  c  Running    x2\n", "ops  c  <cyan Running>    x2\n"),
            ("ok  operator   a leads\n", "<green ok>  operator   a leads\n"),
            ("            !   \"cool-down\" does nothing\n", "            <yellow !>   \"cool-down\" does nothing\n"),
            ("x wfe.yaml:4: no name\n", "<red x> wfe.yaml:4: no name\n"),
            ("node/n is BLOCKED for 12m: nothing runs\n", "node/n <red is BLOCKED> for 12m: nothing runs\n"),
            ("a new execution on node/n: would run now\n", "a new execution on node/n: <green would run now>\n"),
            ("ns/a on node/n: would be skipped, X\n", "ns/a on node/n: <yellow would be skipped>, X\n"),
            ("  decided by   rule 6 otherwise\n", "  decided by   rule 6 otherwise\n"),
            ("Clear it? [y/N] ", "Clear it? [y/N] "),
            ("\n", "\n"),
        ] {
            assert_eq!(seen(text), expected);
        }
    }
}
