//! Secrets reach the sites they are for, and nothing that is kept or said.

use std::io::Read;
use std::path::Path;

use data_encoding::{BASE64, BASE64URL_NOPAD};
use flate2::read::MultiGzDecoder;

use crate::ground::*;
use crate::support::*;

/// What stands in the variables, of which nothing may be found.
const SECRETS: [&str; 6] = [
    "planted-user",
    "planted:word/1",
    "planted key+2",
    "planted=nonce3",
    "planted-signature4",
    "planted:proxy/5",
];

/// The variables of the site, and what they hold.
fn variables() -> [(&'static str, String); 4] {
    let [user, password, key, nonce, signature, proxy] = SECRETS;
    let lines = format!(
        "Signature-Input: sig1=();keyid=\"shopkey\";nonce=\"{nonce}\"\\nSignature: sig1=:{}:",
        BASE64.encode(signature.as_bytes())
    );
    [
        ("PACED_SECRET_SHOP", format!("{user}:{password}")),
        ("PACED_SECRET_SHOP_KEY", key.to_owned()),
        ("PACED_SECRET_SHOP_SIG", lines),
        ("PACED_SECRET_SHOP_PROXY", percent(proxy)),
    ]
}

/// Each of its bytes that isn't a letter or digit, as in a URL.
fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// A secret as it may be written: plain, in a URL, and in base64 wherever it begins in there.
fn spellings(secret: &str) -> Vec<Vec<u8>> {
    let mut spelled = vec![secret.as_bytes().to_vec(), percent(secret).into_bytes()];
    for before in ["", "x", "xx"] {
        // What stands around it changes its first and last characters.
        let inside = |text: String| {
            let from = if before.is_empty() { 0 } else { before.len() + 1 };
            text.as_bytes()[from..text.len() - 4].to_vec()
        };
        let around = format!("{before}{secret}");
        spelled.push(inside(BASE64.encode(around.as_bytes())));
        spelled.push(inside(BASE64URL_NOPAD.encode(around.as_bytes())));
    }
    spelled
}

/// The first secret that is found, with what stands around it.
fn found(kept: &[u8]) -> Option<String> {
    SECRETS.iter().flat_map(|secret| spellings(secret)).find_map(|spelled| {
        let at = kept.windows(spelled.len()).position(|window| window == spelled)?;
        let around = &kept[at.saturating_sub(100)..kept.len().min(at + 200)];
        Some(String::from_utf8_lossy(around).into_owned())
    })
}

/// All that is below a folder, whatever is compressed unpacked.
fn all_bytes(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all.extend(all_bytes(&path));
        } else if path.is_file() {
            let bytes = std::fs::read(&path).expect("bytes");
            let mut unpacked = Vec::new();
            let _ = MultiGzDecoder::new(&bytes[..]).read_to_end(&mut unpacked);
            all.extend([bytes, unpacked].concat());
        }
    }
    all
}

/// The frontier's contents, wherever they are.
fn frontier_bytes(shared: &Shared, data: &Path) -> Vec<u8> {
    if !shared.is_redis() {
        return all_bytes(data);
    }
    let server = shared.server();
    server.cli(&["CONFIG", "SET", "rdbcompression", "no"]);
    server.cli(&["SAVE"]);
    [all_bytes(data), all_bytes(server.folder())].concat()
}

#[test]
fn a_secret_reaches_its_site_and_nothing_that_is_kept_or_said() {
    on_each_frontier(|shared| {
        let front = Reply::html(page("front", paths(2))).header("set-cookie", "basket=planted-user; Path=/");
        let site = star(2).reply("/", front).status("/p/2", 404).serve();
        let rules = "cookies = true\nauth_env = \"PACED_SECRET_SHOP\"\nsecret_headers = { X-Key = \"PACED_SECRET_SHOP_KEY\" }\nsignature = { env = \"PACED_SECRET_SHOP_SIG\" }";
        let ground = Ground::on(shared, [SiteFile::of("shop", &site).fetch(rules)]);
        let with = |run: Paced| {
            variables().iter().fold(run, |run, (name, value)| run.env(name, value)).env("RUST_LOG", "debug")
        };
        let mut said = String::new();
        let mut say = |run: Run| said.push_str(&(run.stdout + &run.stderr));
        say(with(ground.crawl()).run().expect_code(0));
        let requests = site.requests();
        let last = requests.iter().find(|request| request.path == "/p/1").expect("asked for");
        assert_eq!(last.header("x-key"), Some(SECRETS[2]));
        assert_eq!(last.header("cookie"), Some("basket=planted-user"));
        assert!(last.header("authorization").is_some_and(|value| value.starts_with("Basic ")));
        assert!(last.header("signature-input").is_some_and(|value| value.contains(SECRETS[3])));
        let (url, file) = (site.url("/p/2"), ground.file("shop").display().to_string());
        for args in [
            &["check", &file][..],
            &["seed", &file],
            &["work", "--until-empty"],
            &["put", "shop", &url],
            &["explain", "shop"],
            &["explain", &url, "--json"],
            &["status", "--json"],
            &["audit", "--json"],
            &["plan", "shop"],
            &["try", &url, "--json"],
            &["try", &site.url("/p/1"), "-v"],
            &["reparse", "shop", "--diff"],
            &["resume", "shop"],
            &["dead", "list", "--json"],
            &["dead", "show", &url],
            &["dead", "revive", "shop"],
        ] {
            say(args[1..].iter().fold(with(ground.verb(args[0])), Paced::arg).run());
        }
        // A variable that is no proxy's URL, one that leads nowhere, and those that are missing or wrong.
        let by_proxy = format!("{rules}\nproxy = {{ env = \"PACED_SECRET_SHOP_PROXY\" }}");
        ground.rewrite(&SiteFile::of("shop", &site).fetch(&by_proxy));
        let proxy = format!("http://me:{}@127.0.0.1:1/", percent(SECRETS[5]));
        say(with(ground.crawl()).run());
        say(with(ground.crawl()).env("PACED_SECRET_SHOP_PROXY", proxy).args(["--give-up", "1s"]).run());
        for (name, value) in variables() {
            say(with(ground.crawl()).env(name, format!("{value}\u{1}")).args(["--deadline", "1s"]).run());
        }
        let kept = [said.into_bytes(), frontier_bytes(shared, &ground.data.file("data"))].concat();
        let text = String::from_utf8_lossy(&kept);
        assert!(
            text.contains("x-key: ***") && text.contains("basket=***") && text.contains("signature: ***")
        );
        assert_eq!(found(&kept), None);
        for planted in [SECRETS[1].to_owned(), percent(SECRETS[2]), BASE64.encode(b"me:planted-user!!")] {
            assert!(found(&[&kept, planted.as_bytes()].concat()).is_some(), "{planted}");
        }
    });
}
