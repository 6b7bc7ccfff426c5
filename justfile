# What one does daily: `just RECIPE`. `just` alone lists the recipes. (`pip install rust-just` or `cargo install just`.)

# Lists the recipes.
default:
    @just --list

# Builds the command: target/release/gauntlet.
build:
    cargo build --release

# Tests one crate, by the name of its package without `gauntlet-`: just test judge [FILTER].
test crate *filter:
    cargo test -p {{ if crate == "cli" { "kernel-gauntlet" } else { "gauntlet-" + crate } }} {{ filter }}

# Formats Rust, CUDA and C. (`pip install -r .ci/tools.txt` has clang-format.)
format:
    cargo fmt --all
    git ls-files -z '*.cu' '*.cuh' '*.c' '*.h' | xargs -0 clang-format -i

# Looks for faults without running anything: lints, the documentation of the crates, links, results.
lint:
    cargo clippy --release --workspace --all-targets --features gauntlet-kernels-cpu/peers --locked -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps --locked
    scripts/check-links
    scripts/results check

# Builds the book of the documentation into FOLDER. (`pip install mkdocs-material`.)
book folder="target/book":
    scripts/book {{ folder }}

# Everything that must hold before a change lands; `just ci --full` adds what takes long.
ci *options:
    .ci/run {{ options }}
