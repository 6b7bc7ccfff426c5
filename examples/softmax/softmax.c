/* Softmax of each row, twice: plain, and with one pass less over the row.
 *
 *     cc -O3 -march=native -shared -fPIC -o libsoftmax.so softmax.c -lm
 *
 * libsoftmax.toml beside it names the arguments in order. */
#include <math.h>
#include <stdint.h>

/* The greatest value, the sum of exponentials, the quotients: three passes. */
void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
    for (int64_t row = 0; row < rows; row++) {
        const float* from = x + row * cols;
        float* to = y + row * cols;
        float most = -INFINITY;
        for (int64_t col = 0; col < cols; col++) most = fmaxf(most, from[col]);
        float sum = 0;
        for (int64_t col = 0; col < cols; col++) {
            to[col] = expf(from[col] - most);
            sum += to[col];
        }
        for (int64_t col = 0; col < cols; col++) to[col] /= sum;
    }
}

/* Greatest value and sum in one pass: when a greater value comes, the sum so far is scaled (Milakov and Gimelshein,
 * "Online normalizer calculation for softmax", 2018). */
void softmax_online(const float* x, float* y, int64_t rows, int64_t cols) {
    for (int64_t row = 0; row < rows; row++) {
        const float* from = x + row * cols;
        float most = -INFINITY, sum = 0;
        for (int64_t col = 0; col < cols; col++) {
            if (from[col] > most) {
                sum *= expf(most - from[col]);
                most = from[col];
            }
            sum += expf(from[col] - most);
        }
        const float scale = 1 / sum;
        for (int64_t col = 0; col < cols; col++) y[row * cols + col] = expf(from[col] - most) * scale;
    }
}
