//! Tables for people: a line for each row, without borders.

use comfy_table::{Table, presets::NOTHING};
use wfe_api::GROUP;

use crate::output::line;

/// Renders rows below their headings. Each cell stays on one line.
pub(crate) fn table(
    headings: impl IntoIterator<Item = &'static str>,
    rows: impl IntoIterator<Item = impl IntoIterator<Item = String>>,
) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(headings.into_iter().collect::<Vec<_>>());
    for row in rows {
        table.add_row(row.into_iter().map(|cell| line(&cell).into_owned()).collect::<Vec<_>>());
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Names objects of one of our kinds as `kubectl get -o name` does.
pub(crate) fn names<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<String> = names.map(|name| format!("{kind}.{GROUP}/{}\n", line(name))).collect();
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells_and_a_cell_stays_on_its_line() {
        let rows = [["a".to_owned(), "x\ny".to_owned()], ["longer".to_owned(), String::new()]];
        assert_eq!(table(["NAME", "WHY"], rows), "NAME    WHY\na       x\\ny\nlonger\n");
    }

    #[test]
    fn a_name_has_its_kind_before_it() {
        let named = names("workflowexecution", ["a", "b\u{1b}"].into_iter());
        assert_eq!(named, "workflowexecution.kubernaut.ai/a\nworkflowexecution.kubernaut.ai/b\\u{1b}\n");
    }
}
