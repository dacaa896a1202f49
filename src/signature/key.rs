//! An Ed25519 key: made, read from its file, published, and signed with.

use data_encoding::{BASE64, BASE64URL_NOPAD};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use super::{AGENT, INPUT, SIGNATURE, SignatureFields};
use crate::clock::Timestamp;

/// The signature's name in its header fields.
const LABEL: &str = "sig1";
/// A signature holds for so many seconds: a request may wait for its turn after it was signed. It binds a host and no page: who
/// overhears one can use it as long.
const LIFETIME: i64 = 3_600;
/// Clocks of sites may be behind ours by so many seconds.
const BEHIND: i64 = 10;
/// Bytes in a line of a PEM file (RFC 7468 section 2).
const PEM_LINE: usize = 64;

/// A key to sign with. It can't be shown; its file is its owner's alone.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// A new key, and the text of its file: PKCS #8 in PEM.
    ///
    /// # Errors
    /// In words, where the system has no random numbers.
    pub fn make() -> Result<(Self, String), String> {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let made = made.map_err(|_| "the system gave no random numbers".to_owned())?;
        let body = BASE64.encode(made.as_ref());
        let lines: Vec<&str> =
            (0..body.len()).step_by(PEM_LINE).map(|at| &body[at..body.len().min(at + PEM_LINE)]).collect();
        let text = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"));
        Ok((Self::read(text.as_bytes())?, text))
    }

    /// The key of a file's text, as this program or `openssl genpkey -algorithm ed25519` makes it.
    ///
    /// # Errors
    /// In words, where it is none. They don't repeat the text.
    pub fn read(pem: &[u8]) -> Result<Self, String> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem)
            .map_err(|_| "it holds no key in PEM (BEGIN PRIVATE KEY)".to_owned())?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der())
            .map_err(|_| "its key is no Ed25519 key".to_owned())?;
        Ok(Self(pair))
    }

    /// The key's name for everybody: the SHA-256 thumbprint of its public half (RFC 7638, RFC 8037 appendix A.3).
    pub fn thumbprint(&self) -> String {
        let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, self.public());
        BASE64URL_NOPAD.encode(digest(&SHA256, members.as_bytes()).as_ref())
    }

    /// The key's entry in the directory that the agent's site publishes. Nothing of it is secret.
    pub fn directory_entry(&self) -> Value {
        json!({ "kty": "OKP", "crv": "Ed25519", "kid": self.thumbprint(), "x": self.public(), "use": "sig" })
    }

    /// Signs requests to an authority, a host with its port where it isn't the scheme's own, from `now` on. `agent` is the URL of the
    /// site that publishes the key.
    pub fn sign(&self, authority: &str, agent: &str, now: Timestamp) -> SignatureFields {
        let now = now.as_millis().div_euclid(1_000);
        let nonce: [u8; 32] = std::array::from_fn(|_| fastrand::u8(..));
        let key_id = self.thumbprint();
        let ends = now + LIFETIME;
        let params = format!(
            r#"("@authority" "{AGENT}";key="{LABEL}");created={};keyid="{key_id}";alg="ed25519";expires={ends};nonce="{}";tag="web-bot-auth""#,
            now - BEHIND,
            BASE64.encode(&nonce),
        );
        let agent = format!("\"{agent}\"");
        let signature = self.signature(authority, (LABEL, &agent), &params);
        let fields = vec![
            (AGENT, format!("{LABEL}={agent}")),
            (INPUT, format!("{LABEL}={params}")),
            (SIGNATURE, format!("{LABEL}=:{signature}:")),
        ];
        SignatureFields { fields, key_id, ends: Some(Timestamp::from_millis(ends * 1_000)) }
    }

    /// Signs the base of RFC 9421 section 2.5. `agent` is the label and the value of its member of `Signature-Agent`.
    fn signature(&self, authority: &str, agent: (&str, &str), params: &str) -> String {
        let (label, agent) = agent;
        let base = format!(
            "\"@authority\": {authority}\n\"{AGENT}\";key=\"{label}\": {agent}\n\"@signature-params\": {params}"
        );
        BASE64.encode(self.0.sign(base.as_bytes()).as_ref())
    }

    fn public(&self) -> String {
        BASE64URL_NOPAD.encode(self.0.public_key().as_ref())
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ED25519, UnparsedPublicKey};
    use sfv::{Dictionary, Parser};

    use super::*;

    /// The key of RFC 9421 appendix B.1.4, which RFC 8037 has as well.
    const PUBLISHED: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n";
    const AUTHORITY: &str = "example.com";

    fn published() -> SigningKey {
        SigningKey::read(PUBLISHED.as_bytes()).expect("a key")
    }

    fn field<'a>(signed: &'a SignatureFields, name: &str) -> &'a str {
        &signed.fields.iter().find(|(field, _)| *field == name).expect("a field").1
    }

    #[test]
    fn a_key_has_the_thumbprint_that_everybody_gives_it() {
        let entry = published().directory_entry();
        assert_eq!(entry["kid"], "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U");
        assert_eq!(entry["x"], "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs");
    }

    #[test]
    fn a_signature_is_the_one_of_the_draft_s_vector() {
        let params = r#"("@authority" "signature-agent";key="agent2");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=4889289600;nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==";tag="web-bot-auth""#;
        let agent = ("agent2", "\"https://signature-agent.test\"");
        assert_eq!(
            published().signature(AUTHORITY, agent, params),
            "RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg=="
        );
    }

    #[test]
    fn the_key_signs_as_in_rfc_9421() {
        // Appendix B.2.6.
        let base = "\"date\": Tue, 20 Apr 2021 02:07:55 GMT\n\"@method\": POST\n\"@path\": /foo\n\"@authority\": example.com\n\"content-type\": application/json\n\"content-length\": 18\n\"@signature-params\": (\"date\" \"@method\" \"@path\" \"@authority\" \"content-type\" \"content-length\");created=1618884473;keyid=\"test-key-ed25519\"";
        assert_eq!(
            BASE64.encode(published().0.sign(base.as_bytes()).as_ref()),
            "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
        );
    }

    #[test]
    fn what_is_sent_is_what_a_site_checks_and_never_the_same_twice() {
        let (key, now) = (published(), Timestamp::from_millis(1_800_000_000_999));
        let signed = key.sign(AUTHORITY, "https://bots.example", now);
        let inputs: Dictionary = Parser::new(field(&signed, INPUT)).parse().expect("a dictionary");
        assert_eq!(inputs.len(), 1);
        let params = field(&signed, INPUT).strip_prefix("sig1=").expect("the label");
        assert!(
            params.contains(";created=1799999990;") && params.contains(";expires=1800003600;"),
            "{params}"
        );
        assert_eq!(field(&signed, AGENT), "sig1=\"https://bots.example\"");
        let base = format!(
            "\"@authority\": example.com\n\"signature-agent\";key=\"sig1\": \"https://bots.example\"\n\"@signature-params\": {params}"
        );
        let sent = field(&signed, SIGNATURE).strip_prefix("sig1=:").and_then(|rest| rest.strip_suffix(':'));
        let sent = BASE64.decode(sent.expect("bytes").as_bytes()).expect("base64");
        let public = UnparsedPublicKey::new(&ED25519, key.0.public_key().as_ref());
        assert!(public.verify(base.as_bytes(), &sent).is_ok());
        assert!(public.verify(base.replace("example.com", "other.example").as_bytes(), &sent).is_err());
        assert_eq!(signed.key_id, key.thumbprint());
        assert_eq!(signed.ends, Some(Timestamp::from_millis(1_800_003_600_000)));
        assert_ne!(field(&key.sign(AUTHORITY, "https://bots.example", now), INPUT), field(&signed, INPUT));
    }

    #[test]
    fn a_new_key_is_read_back_from_its_text_and_others_are_refused_without_a_word_of_theirs() {
        let (key, text) = SigningKey::make().expect("a key");
        assert_eq!(SigningKey::read(text.as_bytes()).expect("its text").thumbprint(), key.thumbprint());
        assert!(text.lines().all(|line| line.len() <= PEM_LINE), "{text}");
        for wrong in ["", "planted", &text.replace("PRIVATE", "PUBLIC"), &text.replacen("MFEC", "MFED", 1)] {
            let Err(why) = SigningKey::read(wrong.as_bytes()) else { panic!("{wrong} is a key") };
            assert!(why.contains("key") && !why.contains("planted"), "{why}");
        }
    }
}
