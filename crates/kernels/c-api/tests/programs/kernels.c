/* Uses the C interface as a C program does: products, attention, errors. Prints one line for each check. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gauntlet.h"

static void must(gauntlet_status status, const char* what) {
    if (status != GAUNTLET_OK) {
        fprintf(stderr, "%s: %d: %s\n", what, status, gauntlet_error());
        exit(1);
    }
}

/* Prints a status and its words. The words are read after the call: C may evaluate arguments in any order. */
static void show(gauntlet_status status) { printf("%d %s\n", status, gauntlet_error()); }

static gauntlet_matrix* filled(size_t rows, size_t columns, float value) {
    float* elements = malloc(rows * columns * sizeof *elements);
    for (size_t at = 0; at < rows * columns; at++) elements[at] = value;
    gauntlet_matrix* matrix = NULL;
    must(gauntlet_matrix_quantize(rows, columns, elements, &matrix), "quantize");
    free(elements);
    return matrix;
}

static void products(const gauntlet_engine* engine) {
    enum { N = 24, K = 64 };
    const gauntlet_product groups[] = {{3, N, K}, {0, N, K}, {5, N, K}};
    const gauntlet_matrix* tokens[] = {filled(3, K, 1.0f), filled(0, K, 0.0f), filled(5, K, 2.0f)};
    const gauntlet_matrix* weights[] = {filled(N, K, 0.5f), filled(N, K, 0.5f), filled(N, K, 0.25f)};
    gauntlet_plan* plan = NULL;
    must(gauntlet_plan_gemm(engine, groups, 3, GAUNTLET_PLAIN, GAUNTLET_F32, &plan), "plan");
    float output[8 * N];
    printf("bytes %zu of %zu\n", gauntlet_plan_output_bytes(plan), sizeof output);
    for (int call = 0; call < 2; call++)
        must(gauntlet_run_gemm(plan, tokens, weights, NULL, 3, output, sizeof output), "run");
    printf("plain %g %g\n", output[0], output[8 * N - 1]);
    show(gauntlet_run_gemm(plan, tokens, weights, NULL, 3, output, 4));
    gauntlet_plan_destroy(plan);

    must(gauntlet_plan_gemm(engine, groups, 1, GAUNTLET_SWIGLU, GAUNTLET_F32, &plan), "plan");
    must(gauntlet_run_gemm(plan, tokens, weights, weights, 1, output, 3 * N * sizeof *output), "run");
    printf("swiglu %.3f\n", output[0]);
    gauntlet_plan_destroy(plan);
    for (int group = 0; group < 3; group++) {
        gauntlet_matrix_destroy((gauntlet_matrix*)tokens[group]);
        gauntlet_matrix_destroy((gauntlet_matrix*)weights[group]);
    }
}

static void floats(const gauntlet_engine* engine) {
    enum { N = 24, K = 48 };
    const gauntlet_product groups[] = {{2, N, K}, {0, N, K}};
    float ones[2 * K];
    for (int at = 0; at < 2 * K; at++) ones[at] = 1.0f;
    const void* tokens[] = {ones, NULL};
    const gauntlet_matrix* weights[] = {filled(N, K, 0.5f), filled(N, K, 0.5f)};
    gauntlet_plan* plan = NULL;
    float output[2 * N];
    must(gauntlet_plan_gemm_floats(engine, groups, 2, GAUNTLET_PLAIN, GAUNTLET_F32, GAUNTLET_F32, &plan), "plan");
    must(gauntlet_run_gemm_floats(plan, tokens, weights, NULL, 2, output, sizeof output), "run");
    printf("floats %g %g\n", output[0], output[2 * N - 1]);
    show(gauntlet_run_gemm_floats(plan, tokens, weights, NULL, 1, output, sizeof output));
    gauntlet_plan_destroy(plan);
    show(gauntlet_plan_gemm_floats(engine, groups, 2, GAUNTLET_PLAIN, GAUNTLET_INT8, GAUNTLET_F32, &plan));
    for (int group = 0; group < 2; group++) gauntlet_matrix_destroy((gauntlet_matrix*)weights[group]);
}

static void attention(const gauntlet_engine* engine) {
    /* All values are 3 times their scale, so whatever the weights are, the result is 3 times the value's scale. */
    const gauntlet_attention sizes = {1, 2, 1, 4, 10, 16, GAUNTLET_INT8, GAUNTLET_F32, true};
    int8_t elements[2 * 10 * 16];
    memset(elements, 3, sizeof elements);
    const float scales[] = {0.5f, 0.5f};
    gauntlet_plan* plan = NULL;
    must(gauntlet_plan_attention(engine, &sizes, &plan), "plan");
    const gauntlet_heads heads = {elements, scales};
    float output[2 * 4 * 16];
    must(gauntlet_run_attention(plan, heads, heads, heads, output, sizeof output), "run");
    printf("attention %g\n", output[17]);
    gauntlet_plan_destroy(plan);
}

/* Three rows of 48 values, the first of one in each byte, the scales all one. */
static void packing(void) {
    enum { N = 3, K = 48 };
    uint8_t values[N * K / 2], scales[N * K / 16];
    for (int at = 0; at < N * K / 2; at++) values[at] = (uint8_t)(at + 1);
    memset(scales, 0x38, sizeof scales);
    size_t of_values = 0, of_scales = 0;
    must(gauntlet_cuda_packed_bytes(GAUNTLET_STEPS, N, K, &of_values, &of_scales), "bytes");
    printf("steps %zu %zu\n", of_values, of_scales);
    must(gauntlet_cuda_packed_bytes(GAUNTLET_ROWS, N, K, &of_values, &of_scales), "bytes");
    printf("rows %zu %zu\n", of_values, of_scales);
    uint8_t *packed_values = malloc(of_values), *packed_scales = malloc(of_scales);
    must(gauntlet_cuda_pack(GAUNTLET_ROWS, GAUNTLET_BF16, N, K, values, scales, packed_values, packed_scales), "pack");
    printf("row 1: %d %d, then %d; scales %d, then %d\n", packed_values[128], packed_values[128 + K / 2 - 1],
           packed_values[128 + K / 2], packed_scales[16], packed_scales[16 + K / 16]);
    show(gauntlet_cuda_pack(GAUNTLET_STEPS, GAUNTLET_NVFP4, N, K, values, scales, packed_values, packed_scales));
    show(gauntlet_cuda_pack(GAUNTLET_ROWS, GAUNTLET_F32, N, K, values, scales, packed_values, packed_scales));
    show(gauntlet_cuda_pack(GAUNTLET_ROWS, GAUNTLET_F16, N, 40, values, scales, packed_values, packed_scales));
    show(gauntlet_cuda_pack(GAUNTLET_ROWS, GAUNTLET_F16, N, K, values, scales, packed_values, NULL));
    show(gauntlet_cuda_packed_bytes((gauntlet_packing)7, N, K, &of_values, &of_scales));
    free(packed_values);
    free(packed_scales);
}

static void errors(const gauntlet_engine* engine) {
    gauntlet_matrix* matrix = NULL;
    gauntlet_plan* plan = NULL;
    const float elements[20] = {0};
    const gauntlet_product odd = {1, 1, 20}, right = {1, 1, 32};
    show(gauntlet_matrix_quantize(1, 20, elements, &matrix));
    show(gauntlet_matrix_quantize(1, 16, NULL, &matrix));
    show(gauntlet_matrix_quantize(1, 16, elements, NULL));
    show(gauntlet_plan_gemm(NULL, &right, 1, GAUNTLET_PLAIN, GAUNTLET_F32, &plan));
    show(gauntlet_plan_gemm(engine, &odd, 1, GAUNTLET_PLAIN, GAUNTLET_F32, &plan));
    show(gauntlet_plan_gemm(engine, &right, 1, GAUNTLET_PLAIN, GAUNTLET_INT8, &plan));
    gauntlet_cuda_layer* layer = NULL;
    show(
        gauntlet_cuda_layer_create(NULL, NULL, 0, GAUNTLET_PLAIN, GAUNTLET_BF16, GAUNTLET_STEPS, GAUNTLET_F16, &layer));
    gauntlet_cuda_plan* routed = NULL;
    show(gauntlet_cuda_plan_create_routed(NULL, 8, &routed));
    show(gauntlet_cuda_enqueue_routed(NULL, NULL, 0, 0, 0, 0));
    must(gauntlet_matrix_quantize(1, 16, elements, &matrix), "quantize");
    printf("no error: '%s'\n", gauntlet_error());
    gauntlet_matrix_destroy(matrix);
    gauntlet_matrix_destroy(NULL);
}

int main(void) {
    gauntlet_engine* engine = NULL;
    must(gauntlet_engine_create(2, &engine), "engine");
    products(engine);
    floats(engine);
    attention(engine);
    packing();
    errors(engine);
    gauntlet_engine_destroy(engine);
    return 0;
}
