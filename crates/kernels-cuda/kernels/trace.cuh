// What a traced build (TRACE 1) writes down: who does what from when to when. In other builds recorders are empty, and
// nothing is left of them; the other half is src/trace.rs.
//
// One thread writes for its role, one record after another, to a part of the buffer that is the role's own: a common
// counter would be waited for. Nothing is written between products that are on their way, since ptxas would serialise
// them.
#pragma once
#include "ptx.cuh"

// Who: a part of a block, or all of it, by its place in the host's list.
enum class Role : u32 {
    Everyone,
    Loader,
    Multiplier1,
    Multiplier2,
    Multiplier3,
    Multiplier4,
    WeightLoader,
    TokenLoader,
    Count
};

// What is done, by its place in the host's list.
enum class Activity : u32 { Lookup, Load, Convert, Multiply, Store, Reduce, Wait, Launch };

constexpr u32 NO_TILE = ~0u, NO_STEP = ~0u;

#if TRACE

// Set by the host before a launch: in constant memory, which takes neither registers nor time to read.
struct TraceBuffer {
    uint4* records;
    u32* lost;  // how many records found no room
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

// What a role did last has ended at `since`, of which the low half is enough for what takes less than four seconds: kernels
// have few registers left.
struct Recorder {
    u32 since = (u32)trace_time(), role_and_count = NOBODY;

    static constexpr u32 NOBODY = ~0u, COUNT_BITS = 24, COUNT = (1u << COUNT_BITS) - 1;

    // From now on this thread is of a role, the `index`-th of its kind; one of them `writes`.
    DEVICE void begin(Role kind, u32 index, bool writes) {
        if (writes) role_and_count = ((u32)kind + index) << COUNT_BITS;
        end(Activity::Launch, NO_TILE);
    }

    // Warps come whole and go on whole: hardware barriers and products want them so.
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
