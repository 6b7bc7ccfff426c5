"""The contestants of the rounds on a GPU: the first argument says which one a process plays."""

import re
import sys

from author import Move, files, run, verdicts

ONE_PASS = Move(
    name="one-pass",
    problem="Each row is read three times, and what was computed for its sum is computed again for its result.",
    change="Compute each value once, and keep a row on the multiprocessor until its sum is known.",
    replaced={},
    speedup=(1.3, 1.8, 3.0),
    odds={"adopt": 0.85, "marginal": 0.05, "valid-negative": 0.05, "regression": 0.05},
    evidence=[("calculation", "A row of 8 kB or less fits beside others in the memory of a multiprocessor.")],
    risk=("medium", "rows longer than a multiprocessor's memory do not fit"),
)
FOUR_LOADS = Move(
    name="four-loads",
    problem="A thread waits for each value before it asks for the next.",
    change="Ask for four values of a row before the first is used.",
    replaced={},
    speedup=(1.0, 1.1, 1.3),
    odds={"adopt": 0.4, "marginal": 0.2, "valid-negative": 0.3, "incorrect": 0.1},
    evidence=[("reference", "More loads in flight hide more of the memory's latency.")],
)
BIG_BLOCKS = Move(
    name="big-blocks",
    problem="A block of 128 threads leaves a multiprocessor idle.",
    change="Blocks of 1,024 threads.",
    replaced={},
    speedup=(2.0, 3.0, 4.0),
    odds={"adopt": 0.95, "marginal": 0.05},
    evidence=[("intuition", "More threads do more work.")],
    risk=("none", "one number changes"),
)
ALL_IN_REGISTERS = Move(
    name="all-in-registers",
    problem="Registers are the fastest memory, and most of them are empty.",
    change="Keep up to 80 values of a row in the registers of each thread.",
    replaced={},
    speedup=(1.2, 1.5, 2.0),
    odds={"adopt": 0.6, "valid-negative": 0.3, "regression": 0.1},
    evidence=[("calculation", "A multiprocessor has 256 kB of registers.")],
)

MOST = "most = fmaxf(most, from[col]);"
POWER = "powf(2.71828183f, from[col] - most)"
LOOP = "for (int col = threadIdx.x; col < cols; col += THREADS) "
FOUR = """int col = threadIdx.x;
    for (; col + 3 * THREADS < cols; col += 4 * THREADS) {
        const float one = from[col], two = from[col + THREADS];
        const float three = from[col + 2 * THREADS], four = from[col + 3 * THREADS];
        most = fmaxf(most, fmaxf(fmaxf(one, two), fmaxf(three, four)));
    }"""
# The values that are no full step of four blocks' threads.
REST = "\n    for (; col < cols; col += THREADS) " + MOST
EACH = "for (int at = 0, col = threadIdx.x; at < 80; at++, col += THREADS) "


def replaced(texts, path, *pairs):
    """The file with all its replacements; none if one of them finds nothing."""
    text = texts.get(path, "")
    for old, new in pairs:
        if old not in text:
            return {}
        text = text.replace(old, new)
    return {path: text}


def one_pass(texts):
    kernel = replaced(
        texts, "softmax.cu",
        ("    const float lowest", "    extern __shared__ float powers[];\n    const float lowest"),
        (f"sum += {POWER};", "sum += powers[col] = __expf(from[col] - most);"),
        (f"to[col] = {POWER} / sum;", "to[col] = powers[col] / sum;"),
    )
    launch = replaced(texts, "softmax.toml", ('block = "THREADS"\n', 'block = "THREADS"\nshared = "4 * cols"\n'))
    if kernel and launch:
        return {**kernel, **launch}
    return replaced(texts, "kernel.py", ("BLOCK=STEP, num_warps=1", "BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8"))


def four_loads(texts, rest=""):
    return replaced(texts, "softmax.cu", (LOOP + MOST, FOUR + rest))


def big_blocks(texts):
    return replaced(texts, "softmax.toml", ("[128, 64, 256, 512, 1024]", "[1024, 64, 128, 256, 512]"))


def all_in_registers(texts):
    kept = "kept[at]"
    return replaced(
        texts, "softmax.cu",
        ("    const float lowest", "    float kept[80];\n    const float lowest"),
        (LOOP + MOST, f"#pragma unroll\n    {EACH}{{\n        {kept} = col < cols ? from[col] : lowest;\n"
                      f"        most = fmaxf(most, {kept});\n    }}"),
        (f"{LOOP}sum += {POWER};", f"#pragma unroll\n    {EACH}sum += {kept} = __expf({kept} - most);"),
        (f"{LOOP}to[col] = {POWER} / sum;", f"#pragma unroll\n    {EACH}if (col < cols) to[col] = {kept} / sum;"),
    )


PLAYED = {
    "one-pass": (ONE_PASS, one_pass),
    "four-loads": (FOUR_LOADS, four_loads),
    "big-blocks": (BIG_BLOCKS, big_blocks),
    "all-in-registers": (ALL_IN_REGISTERS, all_in_registers),
}
MOVE, CHANGED = PLAYED[sys.argv[1]]


def kernel_of(round_name):
    """The name of a round that is played several times, such as gpu-softmax of gpu-softmax-2."""
    return re.sub(r"-\d+$", "", round_name)


def verdicts_here(question):
    """The verdicts on this contestant's change of this kernel, oldest first."""
    past = verdicts(question, MOVE.name)
    return [verdict for verdict in past if kernel_of(verdict["round"]) == kernel_of(question["round"])]


def was_wrong(question):
    past = verdicts_here(question)
    return bool(past) and past[-1]["verdict"] == "incorrect"


def pitch(question):
    if not CHANGED(files(question)):
        return {"pass": "there is nothing for me to change"}
    if was_wrong(question):
        return {"pitch": MOVE.pitch(**{"new-evidence": "The ends of rows are read now, and the mended kernel is right."})}
    if verdicts_here(question):
        return {"pass": "I have no other evidence"}
    return {"pitch": MOVE.pitch()}


def build(question):
    texts = files(question)
    return {"files": four_loads(texts, REST) if was_wrong(question) else CHANGED(texts)}


def mend(question):
    mended = four_loads(files(question), REST)
    return {"files": mended} if mended else {"withdraw": "this is another kernel"}


if __name__ == "__main__":
    run(pitch=pitch, build=build, mend=mend)
