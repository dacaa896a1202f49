//! Signed requests, as the shop's server sees them: whose they are, to whom they go, and when they end.

use data_encoding::{BASE64, BASE64URL_NOPAD};
use paced::internals::clock::{Clock, Timestamp};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::Value;

use crate::ground::*;
use crate::support::*;

const OURS: &str = "signature = { key = \"crawler\", agent = \"https://bots.example/\" }";
const MADE: &str = "signature = { env = \"PACED_SECRET_SHOP_SIG\" }";

/// A key named `crawler` of the ground's, as it is to be published.
fn published(ground: &Ground) -> Value {
    ground.verb("key").args(["new", "crawler"]).run().expect_code(0);
    let shown = ground.verb("key").args(["show", "crawler", "--json"]).run().expect_code(0);
    let directory: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    directory["keys"][0].clone()
}

/// Whether a site that knows the key takes the request for the one that it says, to that authority.
fn verifies(request: &Request, key: &Value, authority: &str) -> bool {
    let field = |name: &str| request.header(name).unwrap_or_default().to_owned();
    let Some(params) = field("signature-input").strip_prefix("sig1=").map(str::to_owned) else {
        return false;
    };
    let agent = field("signature-agent").strip_prefix("sig1=").unwrap_or_default().to_owned();
    let base = format!(
        "\"@authority\": {authority}\n\"signature-agent\";key=\"sig1\": {agent}\n\"@signature-params\": {params}"
    );
    let signature = field("signature");
    let signature =
        signature.strip_prefix("sig1=:").and_then(|rest| rest.strip_suffix(':')).unwrap_or_default();
    let (Ok(signature), Ok(public)) = (
        BASE64.decode(signature.as_bytes()),
        BASE64URL_NOPAD.decode(key["x"].as_str().unwrap_or_default().as_bytes()),
    ) else {
        return false;
    };
    let is_its = params.contains(&format!("keyid=\"{}\"", key["kid"].as_str().expect("a thumbprint")));
    is_its && UnparsedPublicKey::new(&ED25519, public).verify(base.as_bytes(), &signature).is_ok()
}

/// Header lines of a shop that end then.
fn made(ends: Timestamp) -> String {
    let input = format!(
        "Signature-Input: sig1=(\"@authority\" \"signature-agent\");keyid=\"shopkey\";nonce=\"planted\";tag=\"web-bot-auth\";expires={}",
        ends.as_millis() / 1_000
    );
    format!("{input}\\nSignature: sig1=:cGxhbnRlZA==:\\nSignature-Agent: \"https://shop.example\"")
}

fn in_days(days: i64) -> Timestamp {
    in_seconds(days * 24 * 3_600)
}

fn in_seconds(seconds: i64) -> Timestamp {
    Timestamp::from_millis(Clock::wall().now().as_millis() + seconds * 1_000)
}

#[test]
fn a_site_finds_our_requests_and_no_others_by_the_key_that_signed_them() {
    let (site, elsewhere) = (star(3).serve(), star(1).serve());
    let to_elsewhere = elsewhere.url("/p/1");
    site.put("/p/3", Reply::redirect(302, &to_elsewhere));
    let hosts = format!("hosts = [\"{}\", \"{}\"]", site.addr(), elsewhere.addr());
    let ground = Ground::new([SiteFile::of("shop", &site).scope(&hosts).fetch(OURS)]);
    let key = published(&ground);
    ground.crawled();
    let authority = site.addr().to_string();
    let requests = site.requests();
    assert!(requests.len() >= 4, "{requests:?}");
    for request in &requests {
        assert!(verifies(request, &key, &authority), "{request:?}");
        assert!(!verifies(request, &key, "other.example"));
        assert_eq!(request.header("signature-agent"), Some("sig1=\"https://bots.example\""));
    }
    let inputs: Vec<_> = requests.iter().map(|request| request.header("signature-input")).collect();
    assert!((1..inputs.len()).all(|at| !inputs[..at].contains(&inputs[at])), "each is made anew: {inputs:?}");
    assert!(elsewhere.requests().iter().all(|request| request.header("signature").is_none()));
    assert_eq!(elsewhere.count("/p/1"), 1, "it is in scope, and no seed's host");
    let signed = &ground.audit()["shop"]["signed_by"];
    assert_eq!(signed[key["kid"].as_str().expect("a thumbprint")], requests.len(), "{signed}");
    let report = ground.verb("audit").run().expect_code(0).stdout;
    assert!(report.contains(&format!("with the key {}", key["kid"].as_str().expect("a text"))), "{report}");
    let told = ground.verb("explain").arg("shop").run().expect_code(0).stdout;
    assert!(told.contains("with the key crawler, published by https://bots.example"), "{told}");
}

#[test]
fn a_key_that_is_missing_or_none_is_named_before_anything_is_asked_for() {
    let site = star(1).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).fetch(OURS)]);
    let run = ground.crawl().run().expect_code(1);
    assert!(
        run.stderr.contains("keys/crawler.pem") && run.stderr.contains("`paced key new crawler`"),
        "{}",
        run.stderr
    );
    let run = ground.verb("try").arg(site.url("/p/1")).arg("--site").arg(ground.file("shop")).run();
    assert!(run.stdout.contains("`paced key new crawler`"), "{}{}", run.stdout, run.stderr);
    let folder = ground.data.file("keys");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("crawler.pem"), "planted").expect("written");
    let run = ground.crawl().env("PACED_KEYS", &folder).run().expect_code(1);
    assert!(run.stderr.contains("no key in PEM") && !run.stderr.contains("planted"), "{}", run.stderr);
    assert_eq!(site.requests().len(), 0);
}

#[test]
fn what_a_shop_made_for_its_crawler_is_sent_to_it_and_kept_nowhere() {
    let site = star(2).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).fetch(MADE)]);
    let run = ground.crawl().env("PACED_SECRET_SHOP_SIG", made(in_days(30))).run().expect_code(0);
    assert!(!run.stderr.contains("signature"), "{}", run.stderr);
    for request in site.requests() {
        assert_eq!(request.header("signature"), Some("sig1=:cGxhbnRlZA==:"));
        assert_eq!(request.header("signature-agent"), Some("\"https://shop.example\""));
        assert!(request.header("signature-input").is_some_and(|input| input.contains("planted")));
    }
    assert_eq!(ground.audit()["shop"]["signed_by"]["shopkey"], site.requests().len());
    for args in [["explain", "shop"], ["audit", "shop"], ["status", "shop"]] {
        let run = ground.verb(args[0]).arg(args[1]).env("PACED_SECRET_SHOP_SIG", made(in_days(30))).run();
        assert!(!run.stdout.contains("planted") && !run.stdout.contains("cGxhbnRlZA"), "{}", run.stdout);
    }
}

#[test]
fn a_signature_that_ends_is_told_a_week_before_and_never_sent_after() {
    let site = star(2).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).fetch(MADE)]);
    let soon = || made(in_days(6));
    let run = ground.crawl().env("PACED_SECRET_SHOP_SIG", soon()).run().expect_code(0);
    let told = "its signature ends at";
    assert_eq!(run.stderr.matches(told).count(), 1, "{}", run.stderr);
    let file = ground.file("shop");
    let check = ground.verb("check").arg(&file).env("PACED_SECRET_SHOP_SIG", soon()).run().expect_code(0);
    assert!(check.stderr.contains(told) && check.stderr.contains("ask the site's owner"), "{}", check.stderr);
    let explained = ground.verb("explain").arg("shop").env("PACED_SECRET_SHOP_SIG", soon()).run();
    assert!(explained.stdout.contains(told), "{}", explained.stdout);
    let asked = site.requests().len();
    let run = ground.crawl().env("PACED_SECRET_SHOP_SIG", made(in_days(-1))).run().expect_code(1);
    assert!(run.stderr.contains("PACED_SECRET_SHOP_SIG ended at"), "{}", run.stderr);
    let run = ground.crawl().env("PACED_SECRET_SHOP_SIG", "planted").run().expect_code(1);
    assert!(
        run.stderr.contains("a line is no header field") && !run.stderr.contains("planted"),
        "{}",
        run.stderr
    );
    assert_eq!(site.requests().len(), asked);
}

#[test]
fn a_crawl_whose_signature_ends_on_the_way_is_given_up_and_says_why() {
    let site = star(400).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(200)).fetch(MADE)]);
    // One that ends within a minute isn't sent.
    let crawl = ground.crawl().arg("--give-up").arg("2s").env("PACED_SECRET_SHOP_SIG", made(in_seconds(66)));
    let run = crawl.run().expect_code(3);
    let why = "the signature of PACED_SECRET_SHOP_SIG is too short for a request, as it ends at ";
    for told in [format!("its pages go back to the others: {why}"), format!("without a start: {why}")] {
        assert_eq!(run.stderr.matches(&told).count(), 1, "{}", run.stderr);
    }
    let downloads = ground.view("shop").download;
    assert!(downloads.done > 0 && downloads.waiting > 0, "{downloads:?}");
    assert_eq!((downloads.leased, downloads.lost, downloads.dead, downloads.retried), (0, 0, 0, 0));
}
