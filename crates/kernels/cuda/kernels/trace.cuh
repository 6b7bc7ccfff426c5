// The records of a traced build (TRACE 1): which role does what, from when to when. In other builds recorders are empty
// and compile to nothing; the other half is src/trace.rs.
//
// One thread writes for its role, one record after another, to the role's own part of the buffer: a common counter
// would cause waiting. Nothing is written while products are in flight, because ptxas would serialise them.
#pragma once
#include "ptx.cuh"

// A part of a block, or all of it; the values are indices of the host's list.
enum class Role : u32 {
    Everyone,
    Loader,
    Multiplier1,
    Multiplier2,
    Multiplier3,
    Multiplier4,
    WeightLoader,
    TokenLoader,
    Storer,
    Count
};

// The activity; the values are indices of the host's list.
enum class Activity : u32 { Lookup, Load, Convert, Multiply, Store, Reduce, Wait, Launch };

constexpr u32 NO_TILE = ~0u, NO_STEP = ~0u;

#if TRACE

// Set by the host before a launch: in constant memory, which takes neither registers nor time to read.
struct TraceBuffer {
    uint4* records;
    u32* lost;  // number of records that did not fit
    u32 room;   // records for each role of each block
    u32 reserved;
};

extern "C" {
__constant__ TraceBuffer trace;
}

// Nanoseconds, the same for all multiprocessors; it ticks more coarsely than it counts.
DEVICE u64 trace_time() {
    u64 time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
    return time;
}

// Records a role's activities. The last one ended at `since`. Only the low half of the time is kept, which suffices for
// activities shorter than four seconds: kernels have few registers left.
struct Recorder {
    u32 since = (u32)trace_time(), role_and_count = NOBODY;

    static constexpr u32 NOBODY = ~0u, COUNT_BITS = 24, COUNT = (1u << COUNT_BITS) - 1;

    // From now on this thread belongs to the `index`-th role of its kind; one thread of the role `writes`.
    DEVICE void begin(Role kind, u32 index, bool writes) {
        if (writes) role_and_count = ((u32)kind + index) << COUNT_BITS;
        end(Activity::Launch, NO_TILE);
    }

    // Warps enter and leave as whole warps, as hardware barriers and products require.
    DEVICE void end(Activity activity, u32 tile) {
        if (role_and_count != NOBODY) write(activity, tile);
        __syncwarp();
    }

private:
    DEVICE void write(Activity activity, u32 tile) {
        u32 role = role_and_count >> COUNT_BITS, count = role_and_count & COUNT, processor;
        u64 now = trace_time(), begin = now - ((u32)now - since);
        since = (u32)now;
        role_and_count++;
        if (count >= trace.room) {
            atomicAdd(trace.lost, 1);
            return;
        }
        asm volatile("mov.u32 %0, %%smid;" : "=r"(processor));
        uint4* record = trace.records + 2 * ((u64)(blockIdx.x * (u32)Role::Count + role) * trace.room + count);
        record[0] = make_uint4((u32)begin, (u32)(begin >> 32), (u32)now, (u32)(now >> 32));
        record[1] = make_uint4(blockIdx.x, tile, NO_STEP, processor | role << 16 | (u32)activity << 24);
    }
};

#else

struct Recorder {
    DEVICE void begin(Role, u32, bool) {}
    DEVICE void end(Activity, u32) {}
};

#endif
