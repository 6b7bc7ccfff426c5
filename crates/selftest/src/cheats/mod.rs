//! Candidates that cheat, each an ordinary worker, and the gate that has to catch it.
