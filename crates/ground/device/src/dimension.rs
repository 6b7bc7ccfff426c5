//! The quantities that figures measure, and their units.

/// A kind of quantity. Implementors are empty types that distinguish figures at compile time.
pub trait Dimension {
    /// Its name in messages.
    const NAME: &'static str;
    /// Accepted units, each with its conversion factor to the first.
    const UNITS: &'static [(&'static str, f64)];
}

macro_rules! dimensions {
    ($($(#[$doc:meta])* $name:ident = $text:literal [$($unit:literal = $factor:expr),+];)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {}

        impl Dimension for $name {
            const NAME: &'static str = $text;
            const UNITS: &'static [(&'static str, f64)] = &[$(($unit, $factor)),+];
        }
    )+};
}

dimensions! {
    /// A number of things, named by the unit.
    Count = "a count" ["SM" = 1.0, "thread" = 1.0, "warp" = 1.0, "register" = 1.0, "column" = 1.0];
    /// Hz.
    Frequency = "a frequency" ["Hz" = 1.0, "MHz" = 1e6, "GHz" = 1e9];
    /// Bytes a second; decimal prefixes.
    Bandwidth = "a bandwidth" ["B/s" = 1.0, "GB/s" = 1e9, "TB/s" = 1e12];
    /// Bytes; `MB` is decimal, `KiB` and `MiB` are binary.
    Bytes = "a size" ["B" = 1.0, "KiB" = 1024.0, "MiB" = 1_048_576.0, "MB" = 1e6];
    /// Clock cycles of one processor.
    Cycles = "a number of cycles" ["cycles" = 1.0];
    /// Seconds.
    Time = "a time" ["s" = 1.0, "ms" = 1e-3, "µs" = 1e-6, "ns" = 1e-9];
    /// Bytes a clock and processor.
    ByteRate = "a byte rate" ["B/clk" = 1.0];
    /// Floating-point operations a clock and processor; a multiply-add counts two.
    FlopRate = "an arithmetic rate" ["FLOP/clk" = 1.0];
    /// One time over another.
    Ratio = "a ratio" ["×" = 1.0];
    /// Operations a clock and processor.
    OperationRate = "an operation rate" ["op/clk" = 1.0];
    /// Floating-point operations a second of the whole device.
    Flops = "a throughput" ["FLOP/s" = 1.0, "GFLOP/s" = 1e9, "TFLOP/s" = 1e12];
}
