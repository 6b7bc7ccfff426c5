/* What a C program can pass and do that must not end it: sizes beyond all memory, many sequences, and `fork`. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gauntlet.h"

enum { M = 64, N = 512, K = 256, BYTES = M * N * 4 };

/* A child that waits for ever is ended, and told apart by its signal. */
enum { PATIENCE_SECONDS = 120 };

static void must(gauntlet_status status, const char* what) {
    if (status != GAUNTLET_OK) {
        fprintf(stderr, "%s: %d: %s\n", what, status, gauntlet_error());
        exit(1);
    }
}

static void show(gauntlet_status status) { printf("%d %s\n", status, gauntlet_error()); }

static gauntlet_status attention(const gauntlet_engine* engine, size_t batch, size_t heads) {
    const gauntlet_attention sizes = {batch, heads, heads, 1, 1, 8, GAUNTLET_F16, GAUNTLET_F16, false};
    gauntlet_plan* plan = NULL;
    gauntlet_status status = gauntlet_plan_attention(engine, &sizes, &plan);
    gauntlet_plan_destroy(plan);
    return status;
}

static gauntlet_matrix* filled(size_t rows, size_t columns) {
    float* elements = malloc(rows * columns * sizeof *elements);
    for (size_t at = 0; at < rows * columns; at++) elements[at] = (float)(at % 7) - 3;
    gauntlet_matrix* matrix = NULL;
    must(gauntlet_matrix_quantize(rows, columns, elements, &matrix), "quantize");
    free(elements);
    return matrix;
}

static gauntlet_plan* planned(const gauntlet_engine* engine, size_t m, size_t n, size_t k) {
    const gauntlet_product product = {m, n, k};
    gauntlet_plan* plan = NULL;
    must(gauntlet_plan_gemm(engine, &product, 1, GAUNTLET_PLAIN, GAUNTLET_F32, &plan), "plan");
    return plan;
}

/* A plan whose result has more bytes than there is memory. */
static void too_large(const gauntlet_engine* engine) {
    gauntlet_plan* plan = planned(engine, 1 << 18, 1 << 18, 16);
    const gauntlet_matrix* one = filled(1, 16);
    char output[8];
    gauntlet_status status = gauntlet_run_gemm(plan, &one, &one, NULL, 1, output, sizeof output);
    printf("%d of %zu bytes\n", status, gauntlet_plan_output_bytes(plan));
    status = gauntlet_run_gemm(plan, &one, &one, NULL, 1, output, gauntlet_plan_output_bytes(plan));
    printf("%d %.32s\n", status, gauntlet_error());
    gauntlet_plan_destroy(plan);
    gauntlet_matrix_destroy((gauntlet_matrix*)one);
}

static const gauntlet_matrix *tokens, *weights;

static float* multiplied(gauntlet_plan* plan, float* output) {
    must(gauntlet_run_gemm(plan, &tokens, &weights, NULL, 1, output, BYTES), "run");
    return output;
}

static atomic_bool is_over;

static void* busy(void* plan) {
    float* output = malloc(BYTES);
    while (!atomic_load(&is_over)) multiplied(plan, output);
    free(output);
    return NULL;
}

/* Runs a plan, with everything that was made before, in a forked child, and prints how that ends. */
static void in_child(const char* what, gauntlet_engine* engine, gauntlet_plan* plan, const float* expected) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE_SECONDS);
        float* output = malloc(BYTES);
        if (memcmp(multiplied(plan, output), expected, BYTES) != 0) _exit(2);
        gauntlet_plan* own = planned(engine, M, N, K);
        if (memcmp(multiplied(own, output), expected, BYTES) != 0) _exit(3);
        gauntlet_plan_destroy(own);
        gauntlet_plan_destroy(plan);
        gauntlet_engine_destroy(engine);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    printf("%s: %s %d\n", what, WIFSIGNALED(status) ? "signal" : "exit",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void forks(gauntlet_engine* engine) {
    tokens = filled(M, K), weights = filled(N, K);
    gauntlet_plan *plan = planned(engine, M, N, K), *others = planned(engine, M, N, K);
    float* expected = multiplied(plan, malloc(BYTES));
    in_child("fork", engine, plan, expected);
    /* Another thread may be in a call of the engine, with a plan of its own. */
    pthread_t thread;
    pthread_create(&thread, NULL, busy, others);
    for (int round = 0; round < 5; round++) in_child("fork beside a call", engine, plan, expected);
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    printf("parent %d\n", memcmp(multiplied(plan, malloc(BYTES)), expected, BYTES));
}

int main(void) {
    gauntlet_engine* engine = NULL;
    must(gauntlet_engine_create(3, &engine), "engine");
    show(attention(engine, (size_t)1 << 31, 1));
    show(attention(engine, SIZE_MAX, 1));
    show(attention(engine, (size_t)1 << 31, 0));
    show(attention(engine, 1, (size_t)1 << 62));
    /* Planning takes time in proportion to the sequences; in proportion to their square this would not end. */
    show(attention(engine, (size_t)1 << 20, 1));
    too_large(engine);
    forks(engine);
    return 0;
}
