//! mutex
