//! content_coding
