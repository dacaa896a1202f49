//! A site that asks to be left alone while pages can't be kept: every worker knows at once.

use std::sync::Arc;

use crate::ground::*;
use crate::support::*;

#[test]
fn a_block_is_in_force_before_the_page_that_brought_it_is_kept() {
    with_mounts("left_alone::a_block_is_in_force_before_the_page_that_brought_it_is_kept", || {
        let disk = Arc::new(SmallDisk::new(4_096));
        let pages = disk.data().path().to_owned();
        let full = disk.clone();
        let site = star(40).faults(move |request| {
            (request.path == "/p/5").then(|| {
                full.fill(0);
                let body: String = (0..400_000).map(|_| fastrand::alphanumeric()).collect();
                Reply { body: body.into(), ..Reply::status(429) }.header("retry-after", "3600")
            })
        });
        let site = site.serve();
        let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(200))]);
        let running = ground.crawl().arg("--pages").arg(&pages).start();
        eventually("the request", || (site.count("/p/5") == 1).then_some(()));
        let view = eventually("the block", || {
            let view = ground.view("shop");
            view.blocked_until.is_some().then_some(view)
        });
        assert_eq!(view.download.retried, 0, "it isn't settled: {:?}", view.download);
        eventually("a page in vain", || running.stderr().contains("pages can't be kept").then_some(()));
        let asked = site.requests().len();
        std::thread::sleep(ms(1_000));
        assert_eq!(site.requests().len(), asked, "nothing more is asked for");
        let view = ground.view("shop");
        assert!(view.download.leased >= 1 && view.download.retried == 0, "{:?}", view.download);
        disk.free();
        eventually("its end", || (ground.view("shop").download.retried == 1).then_some(()));
        running.kill();
        running.finish();
    });
}
