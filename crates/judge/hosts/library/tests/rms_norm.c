/* RMS norms for the tests: right ones, and ones that are wrong in the ways that the judge has to notice. */
#include <math.h>
#include <stdint.h>
#include <string.h>

void rms_norm(const float* x, const float* weight, float* y, int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; row++) {
        const float* from = x + row * columns;
        double squares = 0;
        for (int64_t column = 0; column < columns; column++) squares += (double)from[column] * from[column];
        double scale = 1 / sqrt(squares / columns + 1e-5);
        for (int64_t column = 0; column < columns; column++)
            y[row * columns + column] = (float)(from[column] * scale * weight[column]);
    }
}

/* Other order of arguments, narrower sizes, a status. */
int checked(int columns, int rows, float* y, const float* weight, const float* x) {
    if (columns <= 0 || rows <= 0) return 1;
    rms_norm(x, weight, y, rows, columns);
    return 0;
}

int failing(const float* x, const float* weight, float* y) { return 7; }

void without_weight(const float* x, const float* weight, float* y, int64_t rows, int64_t columns) {
    float ones[4096];
    for (int64_t column = 0; column < columns; column++) ones[column] = 1;
    rms_norm(x, ones, y, rows, columns);
}

void forgets_the_last(const float* x, const float* weight, float* y, int64_t rows, int64_t columns) {
    float last = y[rows * columns - 1];
    rms_norm(x, weight, y, rows, columns);
    y[rows * columns - 1] = last;
}

/* Answers from a cache by the address of its input: right only while addresses mean the same values. */
void remembers(const float* x, const float* weight, float* y, int64_t rows, int64_t columns) {
    static const float* known[64];
    static float results[64][4096];
    static int count;
    for (int i = 0; i < count; i++)
        if (known[i] == x) {
            memcpy(y, results[i], rows * columns * sizeof(float));
            return;
        }
    rms_norm(x, weight, y, rows, columns);
    if (count < 64 && rows * columns <= 4096) {
        known[count] = x;
        memcpy(results[count++], y, rows * columns * sizeof(float));
    }
}

/* Counts the calls whose operands are not aligned to 64 bytes, and fails in them. */
int aligned(const float* x, const float* weight, float* y, int64_t rows, int64_t columns) {
    if (((uintptr_t)x | (uintptr_t)weight | (uintptr_t)y) % 64) return 1;
    rms_norm(x, weight, y, rows, columns);
    return 0;
}

/* More arguments than registers. */
void many(int64_t a, int b, int64_t c, int d, int64_t e, int f, const float* x, const float* weight, float* y, int rows,
          int64_t columns) {
    if (a == 1 && b == -2 && c == 3 && d == -4 && e == 5 && f == -6) rms_norm(x, weight, y, rows, columns);
}
