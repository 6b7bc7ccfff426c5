// What a traced build (TRACE 1) writes down: who does what from when to when. In other builds recorders are empty, and
// nothing is left of them; the other half is src/trace.rs.
//
// One thread writes for its role, one record after another, to a part of the buffer that is the role's own: a common
// counter would be waited for. Nothing is written between products that are on their way, since ptxas would serialise
// them.
#pragma once
#include "ptx.cuh"

// Who: a part of a block, by its place in the host's list.
enum class Role : u32 {
    Everyone,
    Loader,
    Multiplier,  // the first of four
    WeightLoader = Multiplier + 4,
    TokenLoader,
    Count
};

// What is done, by its place in the host's list.
enum class Activity : u32 { Lookup, Load, Convert, Multiply, Store, Reduce, Wait, Launch };

constexpr u32 NO_TILE = ~0u;

#if TRACE

// Set by the host before a launch. Each role of each block has room for `room` records.
struct TraceBuffer {
    uint4* records;
    u32 room;
    u32 lost;  // records that found no room
};

extern "C" {
__device__ TraceBuffer trace;
}

// Nanoseconds, the same for all multiprocessors; it ticks more coarsely than it counts.
DEVICE u64 trace_time() {
    u64 time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
    return time;
}

// What a role did last has ended at `since`.
struct Recorder {
    u64 since = trace_time();
    u32 role = (u32)Role::Count, count = 0;

    // From now on this thread is of a role, the `index`-th of its kind; one of them `writes`.
    DEVICE void begin(Role kind, u32 index, bool writes) {
        if (writes) role = (u32)kind + index;
        end(Activity::Launch, NO_TILE);
    }

    DEVICE void end(Activity activity, u32 tile) {
        if (role == (u32)Role::Count) return;
        u64 now = trace_time();
        if (count < trace.room) {
            u64 place = ((u64)blockIdx.x * (u32)Role::Count + role) * trace.room + count;
            u32 processor;
            asm volatile("mov.u32 %0, %%smid;" : "=r"(processor));
            uint4* record = trace.records + 2 * place;
            record[0] = make_uint4((u32)since, (u32)(since >> 32), (u32)now, (u32)(now >> 32));
            record[1] = make_uint4(blockIdx.x, tile, ~0u, processor | role << 16 | (u32)activity << 24);
        } else {
            atomicAdd(&trace.lost, 1);
        }
        count++;
        since = now;
    }
};

#else

struct Recorder {
    DEVICE void begin(Role, u32, bool) {}
    DEVICE void end(Activity, u32) {}
};

#endif
