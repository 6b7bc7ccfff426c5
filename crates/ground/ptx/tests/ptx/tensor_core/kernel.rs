//! The text of a kernel that multiplies NVFP4 operands on the tensor cores, with a ring of two stages.

use std::fmt::Write as _;

use super::operands::SCALE_BYTES;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swizzle {
    None,
    Bytes32,
    Bytes64,
    Bytes128,
}

impl Swizzle {
    /// Bytes of the swizzle.
    pub fn width(self) -> usize {
        match self {
            Self::None => 16,
            Self::Bytes32 => 32,
            Self::Bytes64 => 64,
            Self::Bytes128 => 128,
        }
    }

    fn code(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Bytes128 => 2,
            Self::Bytes64 => 4,
            Self::Bytes32 => 6,
        }
    }
}

/// How operands get into shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    ByCopyEngine,
    ByThreads,
}

#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// N.
    pub columns: usize,
    /// K.
    pub depth: usize,
    /// The depth of a stage.
    pub chunk: usize,
    pub swizzle: Swizzle,
    /// Whether two blocks compute 256 rows together.
    pub pair: bool,
    pub filled: Filled,
}

/// Stages of the ring.
pub const STAGES: usize = 2;
/// Bytes behind the stages: five barriers and the address of tensor memory.
pub const REST: usize = 64;
impl Case {
    pub fn blocks(&self) -> usize {
        1 + usize::from(self.pair)
    }

    /// Bytes of A in a stage, and of B.
    fn operand_bytes(&self) -> [usize; 2] {
        [
            128 * self.chunk / 2,
            self.columns / self.blocks() * self.chunk / 2,
        ]
    }

    /// Bytes of a stage: both operands and their scales, so that the next begins at a multiple of 1024.
    pub fn stage_bytes(&self) -> usize {
        let scales = self.chunk / 64 * self.scales_bytes();
        (self.operand_bytes().iter().sum::<usize>() + scales).next_multiple_of(1024)
    }

    /// Columns of tensor memory for the sums, in front of those for scales.
    pub fn sums(&self) -> usize {
        self.columns.next_multiple_of(32)
    }

    /// Columns of tensor memory: sixteen for the scales of each step of a stage.
    pub fn allocated(&self) -> usize {
        (self.sums() + 16 * self.chunk / 64).next_power_of_two()
    }

    /// Bytes of the scales of a depth of 64.
    fn scales_bytes(&self) -> usize {
        SCALE_BYTES * (1 + self.columns.div_ceil(128))
    }

    pub fn shared_bytes(&self) -> usize {
        STAGES * self.stage_bytes() + REST
    }

    /// The shared memory descriptor of an operand's rows, without its address.
    fn descriptor(&self, rows: usize) -> u64 {
        let (leading, stride) = match self.swizzle {
            Swizzle::None => (16 * rows, 8 * 16),
            swizzle => (16, 8 * swizzle.width()),
        };
        (leading as u64 >> 4) << 16 | (stride as u64 >> 4) << 32 | 1 << 46 | self.swizzle.code() << 61
    }

    /// Bytes from an operand's begin to its step of 64 along the depth.
    fn step(&self, rows: usize, step: usize) -> usize {
        let width = self.swizzle.width();
        match self.swizzle {
            Swizzle::None => step * 2 * rows * 16,
            _ => step * 32 / width * rows * width + step * 32 % width,
        }
    }

    /// The kernel's text. Its parameters are the address of the images (or, for a pair, of their tensor maps, 128 bytes each) and
    /// that of the results.
    pub fn text(&self) -> String {
        let group = self.blocks();
        let full = STAGES * self.stage_bytes();
        let (empty, done, address) = (full + 8 * STAGES, full + 16 * STAGES, full + 16 * STAGES + 8);
        let mut text = String::from(
            ".extern .shared .align 1024 .b8 memory[];
.visible .entry one(.param .u64 one_param_0, .param .u64 one_param_1)
{
.reg .pred %p<16>; .reg .b16 %h<4>; .reg .b32 %r<32>; .reg .b32 %v<128>; .reg .b64 %rd<24>;
ld.param.u64 %rd0, [one_param_0]; ld.param.u64 %rd1, [one_param_1];
mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; mov.u32 %r2, memory; mov.u32 %r3, %cluster_ctarank;
mov.b16 %h0, 3; and.b32 %r4, %r2, 4278190079;
setp.ne.u32 %p0, %r0, 0; setp.ne.u32 %p1, %r1, 0;
@%p0 bra PREPARED;
",
        );
        let arrivals = match self.filled {
            Filled::ByCopyEngine => group,
            Filled::ByThreads => 128,
        };
        for stage in 0..STAGES {
            let _ = writeln!(
                text,
                "mbarrier.init.shared::cta.b64 [%r2+{}], {arrivals};",
                full + 8 * stage
            );
            let _ = writeln!(
                text,
                "mbarrier.init.shared::cta.b64 [%r2+{}], 1;",
                empty + 8 * stage
            );
        }
        let _ = write!(
            text,
            "mbarrier.init.shared::cta.b64 [%r2+{done}], 1;
fence.mbarrier_init.release.cluster;
PREPARED: @%p1 bra ALLOCATED;
add.u32 %r5, %r2, {address};
tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%r5], {};
tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;
ALLOCATED: tcgen05.fence::before_thread_sync;
{}
tcgen05.fence::after_thread_sync;
ld.shared.u32 %r6, [%r2+{address}];
",
            self.allocated(),
            self.meet()
        );
        self.produce(&mut text, full, empty);
        self.issue(&mut text, full, empty, done);
        self.finish(&mut text, done);
        text
    }

    fn meet(&self) -> &'static str {
        match self.pair {
            true => "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;",
            false => "bar.sync 0;",
        }
    }

    /// Fills stages: one thread by the copy engine, or all threads.
    fn produce(&self, text: &mut String, full: usize, empty: usize) {
        if self.filled == Filled::ByCopyEngine {
            text.push_str("@%p0 bra PRODUCED;\n");
        }
        let bytes = self.stage_bytes();
        for chunk in 0..self.depth / self.chunk {
            let (stage, round) = (chunk % STAGES, chunk / STAGES);
            if round > 0 {
                let _ = writeln!(
                    text,
                    "EMPTY{chunk}: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2+{}], {}; @!%p2 bra EMPTY{chunk};",
                    empty + 8 * stage,
                    (round - 1) % 2
                );
            }
            let (to, barrier) = (stage * bytes, full + 8 * stage);
            let _ = match (self.filled, self.pair) {
                (Filled::ByCopyEngine, false) => write!(
                    text,
                    "add.u32 %r7, %r2, {to}; add.u32 %r8, %r2, {barrier}; add.u64 %rd2, %rd0, {};
mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r8], {bytes};
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r7], [%rd2], {bytes}, [%r8];\n",
                    chunk * bytes
                ),
                // Both blocks signal the barrier of the even one. Their maps have rows of 256 bytes.
                (Filled::ByCopyEngine, true) => write!(
                    text,
                    "add.u32 %r7, %r2, {to}; add.u32 %r8, %r4, {barrier}; mul.wide.u32 %rd2, %r3, 128; add.u64 %rd2, %rd2, %rd0;
mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r8], {bytes};
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%r7], [%rd2, {{0, {}}}], [%r8];\n",
                    chunk * bytes / 256
                ),
                (Filled::ByThreads, _) => write!(
                    text,
                    "mov.u32 %r9, %r0;
FILL{chunk}: shl.b32 %r10, %r9, 4; cvt.u64.u32 %rd3, %r10; add.u64 %rd3, %rd3, %rd0; add.u32 %r10, %r10, %r2;
ld.global.v4.u32 {{%r11, %r12, %r13, %r14}}, [%rd3+{}]; st.shared.v4.u32 [%r10+{to}], {{%r11, %r12, %r13, %r14}};
add.u32 %r9, %r9, 128; setp.lt.u32 %p3, %r9, {}; @%p3 bra FILL{chunk};
fence.proxy.async.shared::cta;
mbarrier.arrive.shared::cta.b64 _, [%r2+{barrier}];\n",
                    chunk * bytes,
                    bytes / 16
                ),
            };
        }
        text.push_str("PRODUCED:\n");
    }

    /// One thread of the even block copies scales, multiplies and commits.
    fn issue(&self, text: &mut String, full: usize, empty: usize, done: usize) {
        let group = self.blocks();
        let commit = |barrier: usize| match self.pair {
            true => format!(
                "add.u32 %r15, %r2, {barrier}; tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 \
                 [%r15], %h0;\n"
            ),
            false => format!(
                "add.u32 %r15, %r2, {barrier}; tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r15];\n"
            ),
        };
        let description = 1 << 7 | 1 << 10 | (self.columns >> 3) << 17 | group << 27;
        let _ = writeln!(
            text,
            "setp.ne.u32 %p4, %r0, 32; @%p4 bra ISSUED; setp.ne.u32 %p4, %r3, 0; @%p4 bra ISSUED;
cvt.u64.u32 %rd4, %r2; shr.u64 %rd4, %rd4, 4; and.b64 %rd4, %rd4, 16383; mov.u32 %r16, {description}; setp.ne.u32 %p5, %r0, %r0;"
        );
        let [left_bytes, right_bytes] = self.operand_bytes();
        let (left_rows, right_rows) = (128, self.columns / group);
        for chunk in 0..self.depth / self.chunk {
            let (stage, round) = (chunk % STAGES, chunk / STAGES);
            let begin = stage * self.stage_bytes();
            let _ = writeln!(
                text,
                "FULL{chunk}: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2+{}], {}; @!%p2 bra FULL{chunk};",
                full + 8 * stage,
                round % 2
            );
            for step in 0..self.chunk / 64 {
                let scales = begin + left_bytes + right_bytes + step * self.scales_bytes();
                let columns = self.sums() + 16 * step;
                let mut copy = |column: usize, from: usize| {
                    let descriptor = (from as u64 >> 4) + ((128 >> 4) << 32 | 1 << 46);
                    let _ = writeln!(
                        text,
                        "add.u64 %rd5, %rd4, {descriptor}; add.u32 %r17, %r6, {column}; \
                         tcgen05.cp.cta_group::{group}.32x128b.warpx4 [%r17], %rd5;"
                    );
                };
                copy(columns, scales);
                for block in 0..self.columns.div_ceil(128) {
                    copy(columns + 4 * (1 + block), scales + SCALE_BYTES * (1 + block));
                }
                let left = begin + self.step(left_rows, step);
                let right = begin + left_bytes + self.step(right_rows, step);
                let _ = writeln!(
                    text,
                    "add.u64 %rd6, %rd4, {}; add.u64 %rd7, %rd4, {}; add.u32 %r17, %r6, {columns}; add.u32 %r18, %r6, {};
tcgen05.mma.cta_group::{group}.kind::mxf4nvf4.block_scale.scale_vec::4X [%r6], %rd6, %rd7, %r16, [%r17], [%r18], %p5;
setp.eq.u32 %p5, %r0, %r0;",
                    (left as u64 >> 4) + self.descriptor(left_rows),
                    (right as u64 >> 4) + self.descriptor(right_rows),
                    columns + 4
                );
            }
            text.push_str(&commit(empty + 8 * stage));
        }
        text.push_str(&commit(done));
        text.push_str("ISSUED:\n");
    }

    /// All warps load the sums and store them; then tensor memory is freed.
    fn finish(&self, text: &mut String, done: usize) {
        let _ = writeln!(
            text,
            "DONE: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2+{done}], 0; @!%p2 bra DONE;
tcgen05.fence::after_thread_sync;
shl.b32 %r19, %r1, 21; add.u32 %r19, %r19, %r6;
shl.b32 %r20, %r3, 7; add.u32 %r20, %r20, %r0; mul.wide.u32 %rd8, %r20, {}; add.u64 %rd8, %rd8, %rd1;",
            4 * self.columns
        );
        let wide = [128, 64, 32, 16, 8]
            .into_iter()
            .find(|wide| self.columns.is_multiple_of(*wide));
        let wide = wide.unwrap_or(8);
        for first in (0..self.columns).step_by(wide) {
            let registers: Vec<_> = (0..wide).map(|index| format!("%v{index}")).collect();
            let _ = writeln!(
                text,
                "tcgen05.ld.sync.aligned.32x32b.x{wide}.b32 {{{}}}, [%r19+{first}];\ntcgen05.wait::ld.sync.aligned;",
                registers.join(", ")
            );
            for (index, register) in registers.iter().enumerate() {
                let _ = writeln!(text, "st.global.b32 [%rd8+{}], {register};", 4 * (first + index));
            }
        }
        let _ = write!(
            text,
            "tcgen05.fence::before_thread_sync; {}
@%p1 bra END;
tcgen05.dealloc.cta_group::{}.sync.aligned.b32 %r6, {};
END: ret;
}}",
            self.meet(),
            self.blocks(),
            self.allocated()
        );
    }
}
