//! `paced audit`: the proof of pace, from the send stamps of every request that was kept.

use std::collections::BTreeSet;

use clap::Args;
use serde_json::json;

use crate::archive::{Filter, scan};
use crate::audit::{Audit, Gaps, Lateness, MeanGap, UnitReport};
use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Globals, Trouble, sites};
use crate::quantity::spoken;

/// Options of `paced audit`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  paced audit books > books-pace.txt    # a report for the site's owner")]
pub(in crate::cli) struct AuditArgs {
    /// Sites: names or files; all without any
    #[arg(value_name = "SITE")]
    sites: Vec<String>,
    /// One JSON object a pace unit
    #[arg(long)]
    json: bool,
}

/// Tells of each pace unit how it was asked.
pub(super) async fn run(options: AuditArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let pages = globals.existing_pages()?;
    let wanted = sites::names(&options.sites)?;
    let audit = tokio::task::spawn_blocking(move || -> Result<Audit, Trouble> {
        let mut audit = Audit::default();
        for record in scan(pages, Filter::default())? {
            audit.count(&record?);
        }
        Ok(audit)
    });
    let reports = audit.await??.report();
    for name in &wanted {
        if !reports.iter().any(|report| report.sites.contains(name)) {
            let kept: BTreeSet<&String> = reports.iter().flat_map(|report| &report.sites).collect();
            let kept: Vec<_> = kept.into_iter().map(String::as_str).collect();
            let others = if kept.is_empty() { "to no other either".to_owned() } else { kept.join(", ") };
            return Err(Trouble::failed(format!("no request to site `{name}` is kept; kept are: {others}")));
        }
    }
    let asked =
        |report: &&UnitReport| wanted.is_empty() || report.sites.iter().any(|site| wanted.contains(site));
    let mut results = Results::default();
    for report in reports.iter().filter(asked) {
        if options.json { results.json(object(report))? } else { results.lines(lines(report))? }
    }
    Ok(Exit::Done)
}

fn lines(report: &UnitReport) -> Vec<String> {
    let (least, most) = report.interval;
    let interval =
        if least == most { spoken(least) } else { format!("{} to {}", spoken(least), spoken(most)) };
    let mut lines = vec![report.unit.clone()];
    if report.sites != [report.unit.clone()] {
        lines.push(format!("  sites     {}", report.sites.join(", ")));
    }
    lines.push(format!("  starts    {} from {} to {}", report.starts, report.first, report.last));
    lines.push(format!("  interval  {interval}"));
    if let Some(gaps) = report.gaps {
        let [min, p50, p99, max] = [gaps.min, gaps.p50, gaps.p99, gaps.max].map(|gap| gap.as_millis());
        lines.push(format!("  gaps      min {min} ms, p50 {p50} ms, p99 {p99} ms, max {max} ms"));
    }
    if let Some(Lateness { p50, p99 }) = report.lateness {
        lines.push(format!("  lateness  p50 {} ms, p99 {} ms", p50.as_millis(), p99.as_millis()));
    }
    if let Some(MeanGap { gap, due, kept }) = report.quick {
        let verdict = if kept { "" } else { ": too fast" };
        lines.push(format!("  mean      {} of {} due{verdict}", spoken(gap), spoken(due)));
    }
    lines.push(format!("  early     {}", report.early));
    for early in &report.early_starts {
        let (at, gap, due) = (early.at, early.gap.as_millis(), early.wait.as_millis());
        lines.push(format!("            {at}: {gap} ms after the one before, {due} ms were due"));
    }
    if report.without_unit_wait > 0 {
        lines.push(format!(
            "  untold    {} starts without their group's wait, as older builds kept them:",
            report.without_unit_wait
        ));
        lines.push("            gaps between sites of the group aren't judged there".to_owned());
    }
    let statuses: Vec<String> =
        report.statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
    lines.push(format!("  answers   {}; none: {}", statuses.join(", "), report.unanswered));
    for (key, count) in &report.signed_by {
        lines.push(format!("  signed    {count} with the key {key}"));
    }
    lines.push(format!("  bytes     {}", report.bytes));
    lines
}

fn object(report: &UnitReport) -> serde_json::Value {
    let gap =
        |pick: fn(&Gaps) -> std::time::Duration| report.gaps.as_ref().map(|gaps| pick(gaps).as_millis());
    json!({
        "unit": report.unit, "sites": report.sites, "starts": report.starts, "first": report.first,
        "last": report.last, "interval_ms": { "min": report.interval.0.as_millis(), "max": report.interval.1.as_millis() },
        "gap_ms": { "min": gap(|g| g.min), "p50": gap(|g| g.p50), "p99": gap(|g| g.p99), "max": gap(|g| g.max) },
        "lateness_ms": report.lateness.map(|late| json!({ "p50": late.p50.as_millis(), "p99": late.p99.as_millis() })),
        "mean_ms": report.quick.map(|quick| json!({
            "gap": quick.gap.as_secs_f64() * 1000.0, "due": quick.due.as_secs_f64() * 1000.0, "kept": quick.kept,
        })),
        "early": report.early, "without_unit_wait": report.without_unit_wait, "statuses": report.statuses, "unanswered": report.unanswered, "signed_by": report.signed_by, "bytes": report.bytes,
    })
}
