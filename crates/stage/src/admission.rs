//! To await.
