//! A table for people. At least two blanks stand between columns, so that a cell may hold one.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use crate::plain_text::plain;

/// The rows below their heads, which have commas between them, each cell in one line; from column `first_number` on cells stand at the right.
pub(in crate::cli) fn table<const N: usize>(
    heads: &str,
    rows: Vec<[String; N]>,
    first_number: usize,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(heads.split(", ")).add_rows(rows.into_iter().map(|row| row.map(plain)));
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index >= first_number {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// A cell that may have nothing to show.
pub(in crate::cli) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}
