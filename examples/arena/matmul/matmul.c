/* c = a·b: a is m by k, b is k by n, all by rows. */
#include <stdint.h>

void matmul(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m * n; i++) c[i] = 0;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t p = 0; p < k; p++) {
            for (int64_t i = 0; i < m; i++) c[i * n + j] += a[i * k + p] * b[p * n + j];
        }
    }
}
