//! The demo, from its start to its exit code.

use crate::expected::json_lines_of;
use crate::support::*;

#[test]
fn l7_a_demo_crawls_its_shops_whole_finds_no_early_start_and_leaves_other_frontiers_alone() {
    let Some(redis) = redis_or_skip() else { return };
    in_three_tries(|| {
        let (data, folder) = (TempData::new(), TempData::new());
        let kept = folder.file("demo");
        let demo = Paced::new(["demo", "--keep"]).arg(&kept).data(&data);
        let run = demo.env("PACED_FRONTIER", redis.url(0)).run();
        bound(!run.stdout.contains("Too early at the shop"), &run.stdout)?;
        let run = run.expect_code(0);
        let audit = Paced::new(["audit", "--json"]).data_at(&kept).run().expect_code(0);
        let units = json_lines_of(&audit.stdout);
        for (shop, products) in [("fast", 200), ("slow", 100), ("flaky", 50), ("moved", 45), ("walled", 60)] {
            let row = run.stdout.lines().find(|line| line.contains(&format!("{products}/{products}")));
            let row = row.unwrap_or_else(|| panic!("{shop}: {}", run.stdout));
            let cells: Vec<&str> = row.split_whitespace().filter(|word| *word != "│").collect();
            assert_eq!((cells[0], cells[cells.len() - 1]), (shop, "0"), "{row}");
            let unit = units.iter().find(|unit| unit["unit"] == shop).unwrap_or_else(|| panic!("{units:?}"));
            assert_eq!((unit["starts"].to_string().as_str(), &unit["early"]), (cells[2], &0.into()), "{row}");
        }
        assert_eq!(std::fs::read_dir(data.path()).expect("a folder").count(), 0, "{run:?}");
        assert_eq!(redis.cli(&["DBSIZE"]), "0");
        Ok(())
    });
}
