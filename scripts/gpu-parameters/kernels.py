"""The kernels of the micro-benchmarks, as text. Each writes the clocks it took to `out`."""

HELPERS = r"""
typedef unsigned int u32; typedef unsigned long long u64; typedef long long i64;
__device__ __forceinline__ u32 shared_address(const void* pointer) { return (u32)__cvta_generic_to_shared(pointer); }
__device__ __forceinline__ void barrier_init(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void barrier_expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void barrier_arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_wait(u32 barrier, u32 phase) {
  asm volatile("{\n.reg .pred done;\nwaiting:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra waiting;\n}"
               ::"r"(barrier), "r"(phase) : "memory");
}
__device__ __forceinline__ void bulk_copy(u32 to, const void* from, u32 bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
"""

EMPTY = 'extern "C" __global__ void measure() {}'


def _sums(columns):
    return ", ".join(f"d{index}" for index in range(columns // 2))


def _wgmma_loop(columns, flight, count):
    """One asm block: `count` instructions, `flight` a group, waiting for each group. Sums live in the block."""
    one = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.f16.f16 {{{_sums(columns)}}}, %1, %2, add, 1, 1, 0, 0;"
    zero = "".join(f"mov.f32 d{index}, 0f00000000;" for index in range(columns // 2))
    keep = "mov.f32 sum, 0f00000000;" + "".join(f"add.f32 sum, sum, d{index};" for index in range(columns // 2))
    body = "\\n".join([one] * flight)
    return (
        '"{\\n.reg .pred more, add; .reg .u32 left; .reg .f32 sum;"\n'
        f'".reg .f32 d<{columns // 2}>;"\n'
        f'"{zero}"\n'
        f'"mov.u32 left, {count // flight}; setp.eq.u32 add, 0, 0;\\n"\n'
        '"wgmma.fence.sync.aligned;\\n"\n'
        '"again:\\n"\n'
        f'"{body}\\n"\n'
        '"wgmma.commit_group.sync.aligned;\\n"\n'
        '"wgmma.wait_group.sync.aligned 0;\\n"\n'
        '"sub.u32 left, left, 1; setp.ne.u32 more, left, 0; @more bra again;\\n"\n'
        f'"{keep} mov.b32 %0, sum;\\n"\n'
        '"}"'
    )


def wgmma(columns, flight, count):
    loop = _wgmma_loop(columns, flight, count)
    # %0: the sum; %1, %2: descriptors of zeroed shared memory, 128-byte swizzle, 1024 bytes from one group of 8 rows to the next.
    return HELPERS + f"""
extern "C" __global__ void __launch_bounds__(128, 1) measure(i64* out) {{
  extern __shared__ __align__(1024) unsigned char memory[];
  for (int index = threadIdx.x; index < 25600; index += 128) ((u32*)memory)[index] = 0;
  __syncthreads();
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  u32 base = shared_address(memory);
  u64 fixed = (64ull << 16) | (64ull << 32) | (1ull << 62);
  u64 rows = (u64)((base & 0x3FFFF) >> 4) | fixed;
  u64 columns = (u64)(((base + 16384) & 0x3FFFF) >> 4) | fixed;
  u32 sum = 0;
  i64 start = clock64();
  asm volatile({loop}
    : "=r"(sum) : "l"(rows), "l"(columns) : "memory");
  i64 end = clock64();
  if (threadIdx.x == 0 && blockIdx.x == 0) {{ out[0] = end - start; out[63] = sum; }}
}}
"""


def loaded_clock(count):
    return wgmma(256, 4, count).replace(
        "i64 start = clock64();",
        'u64 begin; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin)); i64 start = clock64();',
    ).replace(
        "i64 end = clock64();",
        'i64 end = clock64(); u64 finish; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(finish));',
    ).replace("out[63] = sum;", "out[1] = finish - begin; out[63] = sum;")


def mma_sync(count):
    def one(index):
        return (
            'asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, {%0, %1, %2, %3};"'
            + f': "+f"(d[{index}][0]), "+f"(d[{index}][1]), "+f"(d[{index}][2]), "+f"(d[{index}][3]) : "r"(zero));'
        )

    return HELPERS + f"""
extern "C" __global__ void measure(i64* out) {{
  float d[4][4] = {{}};
  u32 zero = 0;
  __syncthreads();
  i64 start = clock64();
  for (int index = 0; index < {count}; ++index) {{ {" ".join(one(index) for index in range(4))} }}
  i64 end = clock64();
  float sum = 0;
  for (int row = 0; row < 4; ++row) for (int column = 0; column < 4; ++column) sum += d[row][column];
  if (threadIdx.x == 0) {{ out[0] = end - start; out[63] = (i64)sum; }}
}}
"""


def convert(count):
    """32 codes (four words) a thread and turn, with two scales. Shifts put sign and code where fp16 has sign, exponent
    and first bit; the product with scale · 2¹⁴ is exact."""
    return HELPERS + f"""
__device__ __forceinline__ u32 multiply(u32 left, u32 right) {{
  u32 product; asm volatile("mul.f16x2 %0, %1, %2;" : "=r"(product) : "r"(left), "r"(right)); return product;
}}
extern "C" __global__ void measure(i64* out, u32 seed) {{
  u32 words[4], halves[16];
  for (int index = 0; index < 4; ++index) words[index] = seed * (threadIdx.x + index);
  for (int index = 0; index < 16; ++index) halves[index] = 0;
  u32 scales = 0x74007400;
  __syncthreads();
  i64 start = clock64();
  #pragma unroll 1
  for (int turn = 0; turn < {count}; ++turn) {{
    #pragma unroll
    for (int index = 0; index < 4; ++index) {{
      u32 word = words[index];
      #pragma unroll
      for (int part = 0; part < 4; ++part) {{
        u32 turned = word >> (4 * part);
        u32 half = ((turned << 12) & 0x80008000) | ((turned << 9) & 0x0E000E00);
        halves[4 * index + part] = multiply(half, scales);
      }}
      words[index] = word + turn;
      scales ^= (u32)turn & 1;
    }}
    #pragma unroll
    for (int index = 0; index < 16; ++index) asm volatile("" : "+r"(halves[index]));
  }}
  i64 end = clock64();
  u32 sum = 0;
  for (int index = 0; index < 16; ++index) sum ^= halves[index];
  __syncthreads();
  if (threadIdx.x == 0) {{ out[0] = end - start; out[63] = sum; }}
}}
"""


def exponential(count):
    return HELPERS + f"""
extern "C" __global__ void measure(i64* out) {{
  float values[8];
  for (int index = 0; index < 8; ++index) values[index] = -0.01f * (threadIdx.x + index);
  __syncthreads();
  i64 start = clock64();
  #pragma unroll 1
  for (int turn = 0; turn < {count}; ++turn) {{
    #pragma unroll
    for (int index = 0; index < 8; ++index) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(values[index]));
  }}
  i64 end = clock64();
  float sum = 0;
  for (int index = 0; index < 8; ++index) sum += values[index];
  __syncthreads();
  if (threadIdx.x == 0) {{ out[0] = end - start; out[63] = (i64)sum; }}
}}
"""


def block_barrier(count):
    return HELPERS + f"""
extern "C" __global__ void measure(i64* out) {{
  __syncthreads();
  i64 start = clock64();
  #pragma unroll 1
  for (int turn = 0; turn < {count}; ++turn) __syncthreads();
  i64 end = clock64();
  if (threadIdx.x == 0) out[0] = end - start;
}}
"""


def hand_over(count):
    return HELPERS + f"""
extern "C" __global__ void measure(i64* out) {{
  __shared__ u64 barriers[2];
  u32 full = shared_address(&barriers[0]), empty = shared_address(&barriers[1]);
  if (threadIdx.x == 0) {{ barrier_init(full, 1); barrier_init(empty, 1); }}
  __syncthreads();
  i64 start = clock64();
  #pragma unroll 1
  for (int turn = 0; turn < {count}; ++turn) {{
    if (threadIdx.x < 32) {{
      if (threadIdx.x == 0) barrier_arrive(full);
      barrier_wait(empty, turn & 1);
    }} else {{
      barrier_wait(full, turn & 1);
      if (threadIdx.x == 32) barrier_arrive(empty);
    }}
  }}
  i64 end = clock64();
  if (threadIdx.x == 0) out[0] = end - start;
}}
"""


def counter(count):
    return HELPERS + f"""
extern "C" __global__ void measure(i64* out, int* next) {{
  int sum = 0;
  i64 start = clock64();
  #pragma unroll 1
  for (int turn = 0; turn < {count}; ++turn) {{ if (threadIdx.x == 0) sum = atomicAdd(next, 1 + (sum & 0)); sum = __shfl_sync(~0u, sum, 0); }}
  i64 end = clock64();
  if (threadIdx.x == 0) {{ out[0] = end - start; out[63] = sum; }}
}}
"""


def copy_latency(size, where):
    """Eight copies one after another, each of bytes never read before (`memory`) or just read (`l2`). Before it, other
    parts of the buffer are read to push what was there out of the second-level cache: the launch before did that."""
    again = 1 if where == "l2" else 0
    return HELPERS + f"""
extern "C" __global__ void measure(i64* out, const unsigned char* source) {{
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ u64 barrier;
  u32 full = shared_address(&barrier), phase = 0;
  if (threadIdx.x == 0) {{
    barrier_init(full, 1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    u64 now; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    // A place that is new with each launch: copies come from memory unless the same place was just read.
    const unsigned char* place = source + ((now * 0x9E3779B97F4A7C15ull) >> 36) * 1024 % ((1u << 30) - (1u << 21));
    place = (const unsigned char*)((u64)place & ~1023ull);
    for (int turn = 0; turn < 8; ++turn) {{
      for (int again = 0; again <= {again}; ++again) {{
        i64 start = clock64();
        barrier_expect(full, {size});
        bulk_copy(shared_address(memory), place + turn * 131072, {size}, full);
        barrier_wait(full, phase); phase ^= 1;
        out[turn] = clock64() - start;
      }}
    }}
  }}
}}
"""


def copy_stream(size, slots, steps, span):
    return HELPERS + f"""
extern "C" __global__ void measure(i64* out, const unsigned char* source) {{
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ u64 barriers[{slots}];
  if (threadIdx.x == 0) {{
    for (int slot = 0; slot < {slots}; ++slot) barrier_init(shared_address(&barriers[slot]), 1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    const unsigned char* place = source + (u64)blockIdx.x * {span};
    u32 offset = 0;
    auto load = [&](int slot) {{
      u32 full = shared_address(&barriers[slot]);
      barrier_expect(full, {size});
      bulk_copy(shared_address(memory) + slot * {size}, place + offset, {size}, full);
      offset = offset + {size} < {span} ? offset + {size} : 0;
    }};
    i64 start = clock64();
    for (int step = 0; step < {slots}; ++step) load(step);
    int slot = 0, phase = 0;
    for (int step = 0; step < {steps}; ++step) {{
      barrier_wait(shared_address(&barriers[slot]), phase);
      if (step + {slots} < {steps}) load(slot);
      if (++slot == {slots}) {{ slot = 0; phase ^= 1; }}
    }}
    i64 end = clock64();
    if (blockIdx.x == 0) out[0] = end - start;
  }}
}}
"""


def store(how, count):
    if how == "direct":
        # Thread t of a warp group holds rows t/4 and t/4 + 8 of its warp's 16, columns 2·(t mod 4) + 8·j.
        body = """
      #pragma unroll
      for (int half = 0; half < 4; ++half) {
        int row = (threadIdx.x / 32) * 16 + (threadIdx.x % 32) / 4 + (half & 1) * 8 + (half >> 1) * 64;
        #pragma unroll
        for (int column = 0; column < 16; ++column)
          *(u32*)(tile + (u64)row * 8192 + (column * 8 + 2 * (threadIdx.x % 4)) * 2) = turn + column;
      }"""
        after = ""
    else:
        body = """
      // One row of the tile each: 256 bytes.
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"
                   ::"l"(tile + (u64)threadIdx.x * 8192), "r"(shared_address(memory) + threadIdx.x * 256) : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");"""
        after = 'asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");'
    return HELPERS + f"""
extern "C" __global__ void __launch_bounds__(128, 1) measure(i64* out, unsigned char* target) {{
  extern __shared__ __align__(128) unsigned char memory[];
  for (int index = threadIdx.x; index < 8192; index += 128) ((u32*)memory)[index] = index;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  i64 start = clock64();
  #pragma unroll 1
  for (int turn = 0; turn < {count}; ++turn) {{
    // Rows lie 8192 bytes apart, as in a matrix of 4096 columns; 32 tiles side by side.
    unsigned char* tile = target + ((u64)blockIdx.x * 2 + turn / 32) % 256 * 128 * 8192 + turn % 32 * 256;
    {body}
  }}
  {after}
  __threadfence();
  __syncthreads();
  i64 end = clock64();
  if (threadIdx.x == 0 && blockIdx.x == 0) out[0] = end - start;
}}
"""
