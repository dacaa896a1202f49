//! `Location`, where pages are kept: what `--pages` says. Opening it is done elsewhere.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

const SCHEME: &str = "s3://";

/// Where pages are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A local folder.
    Folder(PathBuf),
    /// A bucket of object storage; only in a build with the feature `s3`.
    Bucket {
        /// The bucket's name.
        bucket: String,
        /// What the names of its objects begin with, without `/` at either end; may be empty.
        prefix: String,
    },
}

/// Why a text says no place for pages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// Some other kind of URL.
    #[error("{0}://…: pages are kept in a folder, or in a bucket named as s3://BUCKET/PREFIX")]
    Scheme(String),
    /// Not the name of a bucket and a prefix.
    #[error(
        "s3://…: {0}; name a bucket as s3://BUCKET/PREFIX, and give keys, region and endpoint in AWS_ACCESS_KEY_ID, \
         AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL"
    )]
    Name(&'static str),
    /// This program can't speak to object storage.
    #[error(
        "{0}: this paced was built without object storage; build one with it: cargo install --path . --features s3"
    )]
    NotBuilt(String),
}

impl Location {
    /// The folder, where it is one.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Bucket { .. } => None,
        }
    }
}

impl<T: AsRef<Path> + ?Sized> From<&T> for Location {
    fn from(folder: &T) -> Self {
        Self::Folder(folder.as_ref().to_owned())
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::Bucket { bucket, prefix } if prefix.is_empty() => write!(f, "{SCHEME}{bucket}"),
            Self::Bucket { bucket, prefix } => write!(f, "{SCHEME}{bucket}/{prefix}"),
        }
    }
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        let Some(name) = text.strip_prefix(SCHEME) else {
            return match text.split_once("://") {
                Some((scheme, _)) => Err(LocationError::Scheme(scheme.to_owned())),
                None => Ok(Self::Folder(PathBuf::from(text))),
            };
        };
        let (bucket, prefix) = name.split_once('/').unwrap_or((name, ""));
        let prefix = prefix.trim_end_matches('/');
        if !is_bucket(bucket) {
            return Err(LocationError::Name("a bucket's name has 3 to 63 small letters, digits, `.` or `-`"));
        }
        if !is_prefix(prefix) {
            return Err(LocationError::Name(
                "a prefix has letters, digits and `!_.*'()=-`, between single `/`",
            ));
        }
        let location = Self::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() };
        if cfg!(feature = "s3") { Ok(location) } else { Err(LocationError::NotBuilt(location.to_string())) }
    }
}

fn is_bucket(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-';
    (3..=63).contains(&name.len()) && name.chars().all(fits) && !name.starts_with(['.', '-'])
}

/// The characters that every store and every tool takes as they are.
fn is_prefix(prefix: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "!_.*'()=-".contains(c);
    let part = |part: &str| !part.is_empty() && part != "." && part != ".." && part.chars().all(fits);
    prefix.is_empty() || (prefix.len() <= 512 && prefix.split('/').all(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_scheme_is_a_folder() {
        for folder in ["pages", "/var/pages", "s3:/x", "a b"] {
            let location = folder.parse::<Location>();
            assert_eq!(location, Ok(Location::Folder(PathBuf::from(folder))));
            assert_eq!(location.map(|l| l.to_string()).as_deref(), Ok(folder));
        }
    }

    #[test]
    fn a_bucket_has_a_name_and_perhaps_a_prefix() {
        for (text, name, path) in [
            ("s3://shop-pages", "shop-pages", ""),
            ("s3://shop-pages/", "shop-pages", ""),
            ("s3://shop.pages/2026/books", "shop.pages", "2026/books"),
            ("s3://shop-pages/site=books/", "shop-pages", "site=books"),
        ] {
            let bucket = Location::Bucket { bucket: name.to_owned(), prefix: path.to_owned() };
            if cfg!(feature = "s3") {
                assert_eq!(text.parse(), Ok(bucket.clone()), "{text}");
                assert_eq!(bucket.to_string(), text.trim_end_matches('/'));
            } else {
                assert_eq!(text.parse::<Location>(), Err(LocationError::NotBuilt(bucket.to_string())));
            }
        }
    }

    #[test]
    fn other_urls_are_refused_and_what_they_hide_is_not_repeated() {
        for (text, told) in [
            ("gs://bucket/x", "gs://…: pages are kept in a folder"),
            ("https://me:secret@host/x", "https://…: pages are kept in a folder"),
            ("s3://", "a bucket's name has"),
            ("s3://ab", "a bucket's name has"),
            ("s3://me:secret@bucket/x", "a bucket's name has"),
            ("s3://Bucket", "a bucket's name has"),
            ("s3:///x", "a bucket's name has"),
            ("s3://bucket//x", "a prefix has"),
            ("s3://bucket/a/../x", "a prefix has"),
            ("s3://bucket/x?secret=1", "a prefix has"),
            ("s3://bucket/a b", "a prefix has"),
        ] {
            let refused = text.parse::<Location>().expect_err(text).to_string();
            assert!(refused.contains(told) && !refused.contains("secret"), "{text}: {refused}");
        }
    }
}
