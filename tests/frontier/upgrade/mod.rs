//! Frontiers of earlier schemas are opened and worked on (N9).

mod make;
mod redis;
mod sqlite;
mod state;
