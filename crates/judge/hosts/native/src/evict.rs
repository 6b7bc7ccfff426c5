//! Evicts the level-2 cache of a GPU.

use gauntlet_cuda::driver::{Context, DeviceMemory, Dimensions, DriverError, Function, Stream};

/// A kernel that reads one word of each 32-byte sector. Reading leaves clean lines; a flush by writing would leave lines
/// that the next call has to write back. The sum is stored only if it has a value that zeros do not have, so that the
/// reads are not removed. PTX for the oldest architecture that is served, which the driver translates.
const READER: &str = "
.version 6.3
.target sm_75
.address_size 64
.visible .entry gauntlet_evict(.param .u64 p_at, .param .u64 p_sectors)
{
.reg .pred %p<3>;
.reg .b32 %r<9>;
.reg .b64 %rd<8>;
ld.param.u64 %rd1, [p_at];
ld.param.u64 %rd2, [p_sectors];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mov.u32 %r4, %nctaid.x;
mad.lo.s32 %r5, %r1, %r2, %r3;
mul.lo.s32 %r6, %r4, %r2;
cvt.u64.u32 %rd4, %r5;
cvt.u64.u32 %rd5, %r6;
mov.u32 %r7, 0;
NEXT:
setp.ge.u64 %p1, %rd4, %rd2;
@%p1 bra STORE;
shl.b64 %rd6, %rd4, 5;
add.s64 %rd7, %rd1, %rd6;
ld.global.u32 %r8, [%rd7];
or.b32 %r7, %r7, %r8;
add.s64 %rd4, %rd4, %rd5;
bra NEXT;
STORE:
setp.eq.u32 %p2, %r7, 0;
@%p2 bra DONE;
st.global.u32 [%rd1], %r7;
DONE:
ret;
}
\0";

const ENTRY: &str = "gauntlet_evict";
const SECTOR: usize = 32;
const THREADS: u32 = 256;
const BLOCKS_PER_PROCESSOR: u32 = 4;

/// Memory of twice the level-2 cache, and a kernel that reads it; without the driver's translator the memory is
/// written instead.
#[derive(Debug)]
pub(crate) struct Eviction {
    memory: DeviceMemory,
    reader: Option<Function>,
    blocks: u32,
}

impl Eviction {
    pub fn new(context: &Context, stream: &Stream) -> Result<Self, DriverError> {
        let device = context.device();
        let memory = DeviceMemory::new(context, 2 * device.l2_bytes.max(1 << 20))?;
        memory.fill(0, stream)?;
        Ok(Self {
            memory,
            reader: Function::new(context, READER.as_bytes(), ENTRY, ENTRY, THREADS, 0).ok(),
            blocks: device.processors * BLOCKS_PER_PROCESSOR,
        })
    }

    /// Queues the eviction.
    pub fn queue(&self, stream: &Stream) -> Result<(), DriverError> {
        let Some(reader) = &self.reader else {
            return self.memory.fill(0, stream);
        };
        let dimensions = Dimensions {
            grid: [self.blocks, 1, 1],
            block: [THREADS, 1, 1],
            cluster: [1, 1, 1],
        };
        let sectors = (self.memory.bytes() / SECTOR) as u64;
        let arguments = [self.memory.address().to_le_bytes(), sectors.to_le_bytes()];
        // SAFETY: the kernel takes an address and a number of sectors, which lie in the memory; it lives as long as
        // `self`, and the caller waits for the stream before the next call.
        unsafe { reader.launch_with(dimensions, &[&arguments[0], &arguments[1]], stream) }
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_ptx::{Kernel, Launch, Memory, run};

    use super::*;

    /// The kernel reads every sector: a single word that is not zero is found wherever it lies.
    #[test]
    fn every_sector_is_read() {
        let kernel = Kernel::read(READER.trim_end_matches('\0'), ENTRY).unwrap();
        for sector in [0, 1, 299] {
            let mut bytes = vec![0; 300 * SECTOR];
            bytes[sector * SECTOR] = 7;
            let mut memory = Memory::new();
            let address = memory.allocate(bytes);
            let parameter: Vec<u8> = [address, 300].iter().flat_map(|one| one.to_le_bytes()).collect();
            let launch = Launch {
                parameter: &parameter,
                ..Launch::of(&kernel, [2, 1, 1], [64, 1, 1])
            };
            run(&[launch], &mut memory, 1).unwrap();
            assert_eq!(memory.contents(address).unwrap()[0], 7, "sector {sector}");
        }
    }
}
