//! The table that ends a demo: what each shop was promised, and what it saw.

use std::time::Duration;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::gaps::{GapReport, PaceVerdict};
use crate::forecast::rate_of;
use crate::quantity::compact_rate;

/// One shop's line.
#[derive(Clone, Debug)]
pub struct ShopRow {
    /// The shop's name.
    pub shop: String,
    /// Items that were extracted.
    pub items: usize,
    /// Items that there are to be had.
    pub products: usize,
    /// Requests that arrived, `robots.txt`, redirects and failures included.
    pub requests: usize,
    /// Between the first and the last arrival.
    pub span: Duration,
    /// The gaps between arrivals, measured by the shop; their interval is the pace that was allowed.
    pub gaps: GapReport,
}

impl ShopRow {
    /// Whether a start came early.
    pub fn is_early(&self) -> bool {
        self.gaps.verdict() == PaceVerdict::Broken
    }

    /// Whether each item was found and no start came early.
    pub fn is_good(&self) -> bool {
        self.items == self.products && !self.is_early()
    }
}

/// The table, with a heading and without a line end; gaps in ms.
pub fn table(rows: &[ShopRow]) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["shop", "items", "requests", "allowed", "reached", "min", "p50", "p99", "early"]);
    for row in rows {
        table.add_row(cells(row));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

fn cells(row: &ShopRow) -> [String; 9] {
    let gaps = &row.gaps;
    [
        row.shop.clone(),
        format!("{}/{}", row.items, row.products),
        row.requests.to_string(),
        rate(1, gaps.interval),
        rate(gaps.count, row.span),
        millis(gaps.min),
        millis(gaps.p50),
        millis(gaps.p99),
        gaps.early.len().to_string(),
    ]
}

fn rate(starts: usize, span: Duration) -> String {
    rate_of(starts as u64, span).map_or("-".to_owned(), compact_rate)
}

fn millis(time: Duration) -> String {
    time.as_millis().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shop_is_a_line_with_what_was_allowed_and_what_was_reached() {
        let arrivals: Vec<Duration> = (0..=50).map(|n| Duration::from_millis(n * 204)).collect();
        let row = ShopRow {
            shop: "slow".to_owned(),
            items: 40,
            products: 41,
            requests: 51,
            span: Duration::from_millis(50 * 204),
            gaps: GapReport::new(&arrivals, &[], Duration::from_millis(200)),
        };
        let text = table(&[row]);
        let line = text.lines().find(|line| line.contains("slow")).expect("the shop's line");
        let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "│").collect();
        assert_eq!(words.join(" "), "slow 40/41 51 5.00/s 4.90/s 204 204 204 0", "{text}");
        assert!(text.contains("allowed") && text.contains("p99"), "{text}");
    }

    #[test]
    fn l7_a_shop_is_good_where_each_item_was_found_and_no_gap_is_early() {
        for (gaps, items, good) in [
            (&[200, 200, 200][..], 3, true),
            (&[200, 180, 900], 3, true), // the grace is 20 ms
            (&[200, 179, 900], 3, false),
            (&[0], 3, false),
            (&[200, 200], 2, false),
            (&[], 3, true),
        ] {
            let mut at = 0;
            let arrivals = std::iter::once(0).chain(gaps.iter().map(|gap| {
                at += gap;
                at
            }));
            let arrivals: Vec<Duration> = arrivals.map(Duration::from_millis).collect();
            let gaps = GapReport::new(&arrivals, &[], Duration::from_millis(200));
            let row = ShopRow {
                shop: "x".to_owned(),
                items,
                products: 3,
                requests: arrivals.len(),
                span: Duration::from_millis(at),
                gaps,
            };
            assert_eq!(row.is_good(), good, "{row:?}");
        }
    }

    #[test]
    fn a_shop_that_nobody_visited_has_no_rate() {
        let gaps = GapReport::new(&[], &[], Duration::from_millis(200));
        let row =
            ShopRow { shop: "x".to_owned(), items: 0, products: 1, requests: 0, span: Duration::ZERO, gaps };
        assert!(table(&[row]).contains(" - "));
    }
}
