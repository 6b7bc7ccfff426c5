/* Multiplies the same 16-bit tokens by the same weights in each order that a layer takes, on GPU 0, and compares the
 * results byte by byte and with a product computed here. Exits with 77 if there is no GPU that the kernels run on. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gauntlet.h"

enum { TOKENS = 19, N = 72, K = 336, NO_GPU = 77 };

static void must(gauntlet_status status, const char* what) {
    if (status == GAUNTLET_OK) return;
    fprintf(stderr, "%s: %d: %s\n", what, status, gauntlet_error());
    exit(status == GAUNTLET_UNSUPPORTED ? NO_GPU : 1);
}

/* The functions of the CUDA driver that this program needs. */
static int (*allocate)(uint64_t*, size_t);
static int (*to_device)(uint64_t, const void*, size_t);
static int (*from_device)(void*, uint64_t, size_t);
static int (*create_stream)(void**, unsigned);
static int (*wait)(void*);

static void load_driver(void) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) exit(NO_GPU);
    const struct {
        const char* name;
        void* function;
    } functions[] = {{"cuMemAlloc_v2", &allocate},
                     {"cuMemcpyHtoD_v2", &to_device},
                     {"cuMemcpyDtoH_v2", &from_device},
                     {"cuStreamCreate", &create_stream},
                     {"cuStreamSynchronize", &wait}};
    for (size_t at = 0; at < sizeof functions / sizeof *functions; at++) {
        void* found = dlsym(driver, functions[at].name);
        if (!found) exit(NO_GPU);
        memcpy(functions[at].function, &found, sizeof found);
    }
}

static void check(int error, const char* what) {
    if (error) {
        fprintf(stderr, "%s: CUDA error %d\n", what, error);
        exit(1);
    }
}

static uint64_t uploaded(const void* bytes, size_t count) {
    uint64_t address = 0;
    check(allocate(&address, count), "allocate");
    check(to_device(address, bytes, count), "copy to the device");
    return address;
}

/* Small numbers, which bf16 holds exactly: the upper half of the bits of a float. */
static float token(int row, int column) { return (float)((row * 7 + column * 3) % 9 - 4); }

static float weight(const uint8_t* values, int row, int column) {
    static const float magnitudes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    int nibble = values[(row * K + column) / 2] >> (column % 2 * 4) & 15;
    return nibble & 8 ? -magnitudes[nibble & 7] : magnitudes[nibble];
}

int main(void) {
    gauntlet_cuda_library* library = NULL;
    must(gauntlet_cuda_library_create(0, &library), "library");
    load_driver();
    void* stream = NULL;
    check(create_stream(&stream, 0), "stream");
    gauntlet_cuda_queue* queue = NULL;
    must(gauntlet_cuda_queue_create(library, stream, &queue), "queue");

    static uint8_t values[N * K / 2], scales[N * K / 16];
    static uint16_t tokens[TOKENS * K];
    static float results[2][TOKENS * N];
    for (int at = 0; at < N * K / 2; at++) values[at] = (uint8_t)(at * 31 + at / 13);
    memset(scales, 0x38, sizeof scales); /* one */
    for (int at = 0; at < TOKENS * K; at++) {
        float value = token(at / K, at % K);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        tokens[at] = (uint16_t)(bits >> 16);
    }
    const uint64_t tokens_at = uploaded(tokens, sizeof tokens), output_at = uploaded(results[0], sizeof results[0]);

    for (int order = 0; order < 2; order++) {
        const gauntlet_packing packing = order ? GAUNTLET_STEPS : GAUNTLET_ROWS;
        size_t of_values = 0, of_scales = 0;
        must(gauntlet_cuda_packed_bytes(packing, N, K, &of_values, &of_scales), "bytes");
        uint8_t *packed_values = malloc(of_values), *packed_scales = malloc(of_scales);
        must(gauntlet_cuda_pack(packing, GAUNTLET_BF16, N, K, values, scales, packed_values, packed_scales), "pack");
        const gauntlet_cuda_weights weights = {
            N, K, {uploaded(packed_values, of_values), 0}, {uploaded(packed_scales, of_scales), 0}, {0.25f, 0}};
        free(packed_values);
        free(packed_scales);
        gauntlet_cuda_layer* layer = NULL;
        must(gauntlet_cuda_layer_create(library, &weights, 1, GAUNTLET_PLAIN, GAUNTLET_BF16, packing, GAUNTLET_F32,
                                        &layer),
             "layer");
        const size_t count = TOKENS;
        gauntlet_cuda_plan* plan = NULL;
        must(gauntlet_cuda_plan_create(layer, &count, 1, &plan), "plan");
        must(gauntlet_cuda_reserve(queue, plan), "reserve");
        must(gauntlet_cuda_enqueue(queue, plan, tokens_at, 0, output_at), "enqueue");
        check(wait(stream), "wait");
        check(from_device(results[order], output_at, sizeof results[order]), "copy from the device");
        gauntlet_cuda_plan_destroy(plan);
        gauntlet_cuda_layer_destroy(layer);
    }
    int wrong = 0;
    for (int row = 0; row < TOKENS; row++) {
        for (int column = 0; column < N; column++) {
            float sum = 0; /* exact: all terms are multiples of one half */
            for (int at = 0; at < K; at++) sum += token(row, at) * weight(values, column, at);
            wrong += results[0][row * N + column] != 0.25f * sum;
        }
    }
    const bool alike = memcmp(results[0], results[1], sizeof results[0]) == 0;
    printf("%d of %d results are wrong; both orders of the weights give %s bytes\n", wrong, TOKENS * N,
           alike ? "the same" : "different");
    gauntlet_cuda_queue_destroy(queue);
    gauntlet_cuda_library_destroy(library);
    return wrong || !alike;
}
