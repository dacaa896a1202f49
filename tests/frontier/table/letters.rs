//! Dead letters: listed in order of death, put away for good (I13).

use paced::internals::frontier::LetterPlace;
use paced::internals::task::{PutReply, Stage};

use crate::world::{World, on_every_backend, url};

async fn dies(w: &World, path: &str) {
    w.put("a", path).await;
    let lease = w.take().await;
    w.die(&lease).await;
}

/// All letters of site `a`, listed so many at a time.
async fn listed(w: &World, most: u64) -> Vec<String> {
    let (mut paths, mut after) = (Vec::new(), None);
    loop {
        let letters = w.frontier.dead_letters_after("a", after, most).await.expect("answers");
        assert!(letters.len() <= usize::try_from(most).expect("few"), "{letters:?}");
        let Some(last) = letters.last() else { return paths };
        after = Some(LetterPlace::of(last));
        paths.extend(letters.iter().map(|letter| letter.url.url().path().trim_start_matches('/').to_owned()));
    }
}

#[test]
fn i13_letters_are_listed_in_order_of_death_a_portion_at_a_time() {
    on_every_backend(async |w| {
        w.site_with("a", |shop| shop.settings.interval = 0).await;
        for path in ["c", "b", "e"] {
            dies(w, path).await;
        }
        w.pass(1_000);
        for path in ["d", "a"] {
            dies(w, path).await;
        }
        for most in 1..=6 {
            assert_eq!(listed(w, most).await, ["b", "c", "e", "a", "d"], "{most} at a time");
        }
    });
}

#[test]
fn i13_a_list_goes_on_after_a_letter_that_is_gone() {
    on_every_backend(async |w| {
        w.site_with("a", |shop| shop.settings.interval = 0).await;
        for path in ["a", "b", "c", "d"] {
            dies(w, path).await;
        }
        let first = w.frontier.dead_letters("a", 2).await.expect("answers");
        let after = LetterPlace::of(&first[1]);
        let gone = vec![(Stage::Download, url("a", "b")), (Stage::Download, url("a", "x"))];
        assert_eq!(w.frontier.drop_letters("a", gone).await.expect("answers"), [true, false]);
        let rest = w.frontier.dead_letters_after("a", Some(after), 9).await.expect("answers");
        let rest: Vec<_> = rest.iter().map(|letter| letter.url.clone()).collect();
        assert_eq!(rest, [url("a", "c"), url("a", "d")]);
    });
}

#[test]
fn i13_a_letter_dropped_is_gone_and_no_link_of_the_run_brings_it_back() {
    on_every_backend(async |w| {
        w.site_with("a", |shop| shop.settings.interval = 0).await;
        dies(w, "p").await;
        assert_eq!(w.downloads("a").await.letters, 1);
        let drop = || vec![(Stage::Download, url("a", "p"))];
        assert_eq!(w.frontier.drop_letters("a", drop()).await.expect("answers"), [true]);
        assert_eq!(w.frontier.drop_letters("a", drop()).await.expect("answers"), [false]);
        assert_eq!(w.frontier.drop_letters("none", drop()).await.expect("answers"), [false]);
        let books = w.downloads("a").await;
        assert_eq!((books.letters, books.dead), (0, 1));
        assert_eq!(w.link("a", "p").await, PutReply::Known);
        assert_eq!(w.put("a", "p").await, PutReply::Created, "a request does");
    });
}
