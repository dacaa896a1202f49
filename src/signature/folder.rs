//! The folder of keys: each a file `NAME.pem`.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::SigningKey;
use crate::owner_only;

/// A folder of keys; each is read once.
#[derive(Default)]
pub struct KeyFolder {
    folder: PathBuf,
    read: Mutex<HashMap<String, Arc<SigningKey>>>,
}

impl KeyFolder {
    /// That folder, which need not be there.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), read: Mutex::default() }
    }

    /// The file of a key.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.pem"))
    }

    /// The key of that name.
    ///
    /// # Errors
    /// In words, with the file, where it isn't there or is no key.
    pub fn get(&self, name: &str) -> Result<Arc<SigningKey>, String> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = read.get(name) {
            return Ok(Arc::clone(key));
        }
        let file = self.file(name);
        let told = |why: String| format!("{}: {why}", file.display());
        let pem = std::fs::read(&file).map_err(|error| told(error.to_string()))?;
        let key = Arc::new(SigningKey::read(&pem).map_err(told)?);
        read.insert(name.to_owned(), Arc::clone(&key));
        Ok(key)
    }

    /// Makes a key of that name, its owner's alone.
    ///
    /// # Errors
    /// In words, with the file, where one is there or none can be written.
    pub fn make(&self, name: &str) -> Result<SigningKey, String> {
        let file = self.file(name);
        let told = |why: String| format!("{}: {why}", file.display());
        let (key, text) = SigningKey::make().map_err(told)?;
        owner_only::make_with_data_folder(&self.folder).map_err(|error| told(error.to_string()))?;
        let opened = owner_only::options().write(true).create_new(true).open(&file);
        let mut opened = opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => told("it is there, and a key is never written over".to_owned()),
            _ => told(error.to_string()),
        })?;
        let written = opened.write_all(text.as_bytes()).and_then(|()| opened.sync_all());
        written.map_err(|error| {
            // Half a key would stand in the way of a whole one.
            let _ = std::fs::remove_file(&file);
            told(error.to_string())
        })?;
        Ok(key)
    }
}

/// Without its keys.
impl fmt::Debug for KeyFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyFolder").field(&self.folder).finish()
    }
}
