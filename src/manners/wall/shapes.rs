//! The shapes of vendors' pages: challenges and blocks, as they stand in place of a shop's page. Each is told by what only that
//! page has: the scripts that a vendor puts on good pages are no shape.

use std::sync::LazyLock;

use memchr::memmem::find;
use regex::bytes::Regex;

use crate::page::Headers;

/// Whose page it is, what its title contains in lower case (empty: whatever), and what stands in its text, each of it.
struct VendorPage(&'static str, &'static str, &'static [&'static str]);

const SHAPES: &[VendorPage] = &[
    VendorPage("Cloudflare", "", &["_cf_chl_opt"]),
    VendorPage("Cloudflare", "", &["cf-browser-verification"]),
    VendorPage("Cloudflare", "", &["cf-challenge-running"]),
    VendorPage("Cloudflare", "just a moment", &[]),
    VendorPage("Cloudflare", "attention required! | cloudflare", &[]),
    VendorPage("Cloudflare", "", &["cf-error-details", "you have been blocked"]),
    VendorPage("Cloudflare", "access denied", &["cf-error-details"]),
    VendorPage("DataDome", "", &["captcha-delivery.com", "var dd="]),
    VendorPage("DataDome", "", &["captcha-delivery.com", "Please enable JS and disable any ad blocker"]),
    VendorPage("DataDome", "", &["\"url\":\"https://geo.captcha-delivery.com/"]),
    VendorPage("DataDome", "", &["src=\"https://geo.captcha-delivery.com/"]),
    VendorPage("HUMAN (PerimeterX)", "access to this page has been denied", &[]),
    VendorPage("HUMAN (PerimeterX)", "", &["px-captcha", "Access to this page has been denied"]),
    VendorPage("HUMAN (PerimeterX)", "", &["px-captcha", "Press & Hold"]),
    VendorPage("HUMAN (PerimeterX)", "", &["px-captcha", "Press &amp; Hold"]),
    VendorPage("HUMAN (PerimeterX)", "", &["px-captcha", "_pxUuid"]),
    VendorPage("HUMAN (PerimeterX)", "", &["\"jsClientSrc\"", "\"blockScript\""]),
    VendorPage("Akamai", "access denied", &["Reference&#32;&#35;"]),
    VendorPage("Akamai", "access denied", &["Reference #"]),
    VendorPage("Akamai", "access denied", &["errors.edgesuite.net"]),
    VendorPage("Akamai", "", &["sec-if-cpt-container"]),
    VendorPage("Akamai", "", &["_sec/cp_challenge"]),
    VendorPage("Akamai", "", &["_sec/verify?provider=interstitial"]),
    VendorPage("Imperva", "", &["Incapsula incident ID"]),
    VendorPage("Imperva", "", &["_Incapsula_Resource", "main-iframe"]),
    VendorPage("Imperva", "", &["_Incapsula_Resource?CWUDNSAI"]),
    VendorPage("Imperva", "", &["_Incapsula_Resource?SWUDNSAI"]),
    VendorPage("Imperva", "pardon our interruption", &[]),
    VendorPage("AWS WAF", "", &["gokuProps"]),
    VendorPage("AWS WAF", "", &["AwsWafIntegration.checkForceRefresh"]),
    VendorPage("AWS WAF", "", &["awswaf.com", "id=\"challenge-container\""]),
    VendorPage("AWS WAF", "", &["awswaf.com", "id=\"captcha-container\""]),
    VendorPage("Kasada", "", &["KPSDK", "/ips.js"]),
    VendorPage("Sucuri", "", &["Sucuri WebSite Firewall"]),
    VendorPage("Sucuri", "", &["sucuri_cloudproxy_js"]),
    VendorPage("F5", "", &["The requested URL was rejected. Please consult with your administrator"]),
    VendorPage("Vercel", "vercel security checkpoint", &[]),
    VendorPage("Anubis", "", &["anubis_challenge"]),
    VendorPage("Anubis", "making sure you're not a bot", &[]),
    VendorPage("DDoS-Guard", "ddos-guard", &[]),
    VendorPage("DDoS-Guard", "", &["check.ddos-guard.net"]),
    VendorPage("SiteGround", "", &["/.well-known/sgcaptcha/"]),
    VendorPage("Alibaba", "", &["_____tmd_____/punish"]),
    VendorPage("Alibaba", "", &["acw_sc__v2", "var arg1="]),
    VendorPage("Amazon", "", &["/errors/validateCaptcha"]),
    VendorPage("a guard", "robot check", &[]),
    VendorPage("a guard", "checking your browser", &[]),
    VendorPage("a guard", "are you a robot", &[]),
    VendorPage("a guard", "are you human", &[]),
    VendorPage("a guard", "you are human", &[]),
    VendorPage("a guard", "not a robot", &[]),
    VendorPage("a guard", "human verification", &[]),
    VendorPage("a guard", "bot verification", &[]),
];

/// Fields that a vendor sends with a challenge alone, and what they say then.
const MITIGATED: &[(&str, &str, &str)] = &[
    ("x-amzn-waf-action", "challenge", "AWS WAF"),
    ("x-amzn-waf-action", "captcha", "AWS WAF"),
    ("x-vercel-mitigated", "challenge", "Vercel"),
    ("sg-captcha", "challenge", "SiteGround"),
];

/// The first text of each shape that has no title, all at once, and where a title begins.
static KEYS: LazyLock<Regex> = LazyLock::new(|| {
    let keys = SHAPES.iter().filter(|shape| shape.1.is_empty()).filter_map(|shape| shape.2.first());
    let mut keys: Vec<String> = keys.map(|text| regex::escape(text)).collect();
    keys.sort_by_key(|key| std::cmp::Reverse(key.len()));
    keys.dedup();
    Regex::new(&format!("{}|<title|<TITLE", keys.join("|"))).expect("texts that are escaped")
});

/// Whose page a body is, if it is a vendor's.
pub(super) fn of(body: &[u8]) -> Option<&'static str> {
    let (mut keys, mut title): (Vec<&[u8]>, _) = (Vec::new(), None);
    for part in KEYS.find_iter(body) {
        if part.as_bytes().eq_ignore_ascii_case(b"<title") {
            title = title.or_else(|| Some(text_of(&body[part.end()..])));
        } else if !keys.contains(&part.as_bytes()) {
            keys.push(part.as_bytes());
        }
    }
    let title = title.unwrap_or_default();
    let may_be = |VendorPage(_, says, texts): &&VendorPage| match says {
        &"" => texts.first().is_some_and(|text| keys.contains(&text.as_bytes())),
        says => title.contains(says),
    };
    let is_it = |shape: &&VendorPage| shape.2.iter().all(|text| find(body, text.as_bytes()).is_some());
    SHAPES.iter().filter(may_be).find(is_it).map(|shape| shape.0)
}

/// Who says in the header that it challenges.
pub(super) fn mitigated(headers: &Headers) -> Option<&'static str> {
    let says =
        |name: &str, word: &str| headers.all(name).any(|value| value.trim().eq_ignore_ascii_case(word));
    MITIGATED.iter().find(|(name, word, _)| says(name, word)).map(|(_, _, whose)| *whose)
}

/// The text of a title, in lower case; `rest` begins behind the name of its tag.
fn text_of(rest: &[u8]) -> String {
    let from = rest.iter().position(|byte| *byte == b'>').map_or(rest.len(), |at| at + 1);
    let text = &rest[from..];
    let text = &text[..text.iter().position(|byte| *byte == b'<').unwrap_or(text.len()).min(200)];
    let text = String::from_utf8_lossy(text).to_lowercase();
    text.replace(['\u{2019}'], "'").replace("&#39;", "'").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w1_each_shape_is_found_by_its_own_texts_and_title() {
        for VendorPage(whose, title, texts) in SHAPES {
            let body = format!("<html><title>{title}</title><body>{}</body>", texts.join("</p><p>"));
            assert_eq!(of(body.as_bytes()), Some(*whose), "{body}");
        }
    }

    #[test]
    fn w1_a_vendor_s_page_has_a_shape_and_its_scripts_on_a_shop_s_page_have_none() {
        for (body, whose) in [
            ("<html><head><title>Just a moment...</title></head>", Some("Cloudflare")),
            ("<TITLE>\n Access Denied\n</TITLE> Reference&#32;&#35;18&#46;2f", Some("Akamai")),
            ("<script>var dd={'host':'geo.captcha-delivery.com'}</script>", Some("DataDome")),
            ("<title>Making sure you&#39;re not a bot!</title>", Some("Anubis")),
            ("<iframe id=\"main-iframe\" src=\"/_Incapsula_Resource?SWUDNSAI=31\">", Some("Imperva")),
            (
                "<title>Shop</title><script src=/cdn-cgi/challenge-platform/scripts/jsd/main.js></script>",
                None,
            ),
            ("<script src=\"https://js.datadome.co/tags.js\"></script>", None),
            ("<script src=\"/_Incapsula_Resource?SWJIYLWA=71\"></script>", None),
            ("<script>window._pxAppId='PX1'</script>", None),
            ("<script src=\"https://a.token.awswaf.com/b/challenge.js\" defer></script>", None),
            ("<script src=\"/149e9513/p.js\"></script><script>KPSDK.configure([])</script>", None),
            ("<title>Access Denied</title><p>Members only</p>", None),
            ("", None),
        ] {
            assert_eq!(of(body.as_bytes()), whose, "{body}");
        }
    }
}
