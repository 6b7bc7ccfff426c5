/* The kernels of Gauntlet: NVFP4 grouped GEMM and attention on processors, NVFP4 grouped GEMM on NVIDIA
 * GPUs of compute capability 8.0 to 12.9 (run on 9.0 only).
 *
 * Every object is created, used and destroyed by the functions below. A function that can fail returns a
 * gauntlet_status; gauntlet_error() then says in words what is wrong and what to do. Nothing here aborts the process.
 *
 * After fork(), the child may use engines, matrices and plans of the CPU that the parent made, but no plan that another
 * thread of the parent was running. What belongs to a GPU is for the process that made it alone.
 *
 * An NVFP4 matrix has e2m1 values, two a byte, low nibble first, [rows, columns / 2]; one e4m3 scale for each 16 values
 * along a row, [rows, columns / 16]; and one float scale for the whole matrix.
 */
#ifndef GAUNTLET_H
#define GAUNTLET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gauntlet_status {
    GAUNTLET_OK = 0,
    /* An argument is wrong: a null pointer, a shape, a size, a value. */
    GAUNTLET_BAD_ARGUMENT = 1,
    /* This machine cannot do it: no GPU, no driver, no compiler, an instruction set. */
    GAUNTLET_UNSUPPORTED = 2,
    GAUNTLET_OUT_OF_MEMORY = 3,
    /* The CUDA driver reports an error. */
    GAUNTLET_DRIVER = 4,
    /* An error inside Gauntlet; please report it. */
    GAUNTLET_INTERNAL = 5
} gauntlet_status;

/* The words of the calling thread's last error; empty if there was none. Valid until the thread's next call. */
const char* gauntlet_error(void);

typedef enum gauntlet_dtype {
    GAUNTLET_F16 = 0,
    GAUNTLET_BF16 = 1,
    GAUNTLET_F32 = 2,
    /* Operands of attention only, with scales. */
    GAUNTLET_E4M3 = 3,
    GAUNTLET_INT8 = 4,
    /* Tokens of a layer on a GPU only, with scales as in a matrix. */
    GAUNTLET_NVFP4 = 5
} gauntlet_dtype;

typedef enum gauntlet_form {
    /* C = A B^T */
    GAUNTLET_PLAIN = 0,
    /* C = silu(A B1^T) * (A B2^T) */
    GAUNTLET_SWIGLU = 1
} gauntlet_form;

/* ---- Matrices on the CPU ------------------------------------------------------------------------------------- */

typedef struct gauntlet_matrix gauntlet_matrix;

/* Copies an NVFP4 matrix. columns must be a multiple of 16, scales finite. */
gauntlet_status gauntlet_matrix_create(size_t rows, size_t columns, const uint8_t* values, const uint8_t* scales,
                                       float tensor_scale, gauntlet_matrix** matrix);

/* Quantises a row-major matrix of finite numbers. */
gauntlet_status gauntlet_matrix_quantize(size_t rows, size_t columns, const float* elements, gauntlet_matrix** matrix);

void gauntlet_matrix_destroy(gauntlet_matrix* matrix);

/* ---- The CPU ------------------------------------------------------------------------------------------------- */

/* Threads and an instruction set. Plans keep what they need of it. */
typedef struct gauntlet_engine gauntlet_engine;

/* threads = 0 takes one for each processor that the process may use. */
gauntlet_status gauntlet_engine_create(size_t threads, gauntlet_engine** engine);
void gauntlet_engine_destroy(gauntlet_engine* engine);

/* The sizes of one product: A is [m, k], B is [n, k], C is [m, n]. */
typedef struct gauntlet_product {
    size_t m, n, k;
} gauntlet_product;

/* A planned call. One thread at a time may use it. */
typedef struct gauntlet_plan gauntlet_plan;

gauntlet_status gauntlet_plan_gemm(const gauntlet_engine* engine, const gauntlet_product* groups, size_t count,
                                   gauntlet_form form, gauntlet_dtype output, gauntlet_plan** plan);

/* The same for tokens without scales: GAUNTLET_F16, GAUNTLET_BF16 or GAUNTLET_F32. Products of 16-bit floats are exact.
 */
gauntlet_status gauntlet_plan_gemm_floats(const gauntlet_engine* engine, const gauntlet_product* groups, size_t count,
                                          gauntlet_form form, gauntlet_dtype tokens, gauntlet_dtype output,
                                          gauntlet_plan** plan);

typedef struct gauntlet_attention {
    /* Sequences of equal lengths. */
    size_t batch, heads, kv_heads, queries, keys, head_size;
    /* Of query, key and value. */
    gauntlet_dtype operands;
    gauntlet_dtype output;
    /* The last query sees all keys, each one before it one key fewer. */
    bool causal;
} gauntlet_attention;

gauntlet_status gauntlet_plan_attention(const gauntlet_engine* engine, const gauntlet_attention* attention,
                                        gauntlet_plan** plan);

/* The size of a plan's result in bytes: all groups, or [batch, heads, queries, head_size], without padding. */
size_t gauntlet_plan_output_bytes(const gauntlet_plan* plan);

void gauntlet_plan_destroy(gauntlet_plan* plan);

/* Computes a planned GEMM. tokens and weights have one matrix a group, second too for GAUNTLET_SWIGLU, else NULL. */
gauntlet_status gauntlet_run_gemm(gauntlet_plan* plan, const gauntlet_matrix* const* tokens,
                                  const gauntlet_matrix* const* weights, const gauntlet_matrix* const* second,
                                  size_t count, void* output, size_t output_bytes);

/* Computes a GEMM of gauntlet_plan_gemm_floats: tokens has the address of each group's, [m, k] of the planned type. */
gauntlet_status gauntlet_run_gemm_floats(gauntlet_plan* plan, const void* const* tokens,
                                         const gauntlet_matrix* const* weights, const gauntlet_matrix* const* second,
                                         size_t count, void* output, size_t output_bytes);

/* Q, K or V: elements [batch, heads, positions, head_size]; scales [batch, heads] for GAUNTLET_E4M3 and GAUNTLET_INT8,
 * else NULL. */
typedef struct gauntlet_heads {
    const void* elements;
    const float* scales;
} gauntlet_heads;

gauntlet_status gauntlet_run_attention(gauntlet_plan* plan, gauntlet_heads query, gauntlet_heads key,
                                       gauntlet_heads value, void* output, size_t output_bytes);

/* ---- NVIDIA GPUs --------------------------------------------------------------------------------------------- *
 * Objects of a GPU stay in the thread that made its library. Addresses are those of device memory, multiples of 16. */

typedef struct gauntlet_cuda_library gauntlet_cuda_library;
typedef struct gauntlet_cuda_layer gauntlet_cuda_layer;
typedef struct gauntlet_cuda_plan gauntlet_cuda_plan;
typedef struct gauntlet_cuda_queue gauntlet_cuda_queue;

/* Opens the GPU with this number and its primary context, which the CUDA runtime uses too. */
gauntlet_status gauntlet_cuda_library_create(size_t ordinal, gauntlet_cuda_library** library);
void gauntlet_cuda_library_destroy(gauntlet_cuda_library* library);

/* The order of a layer's weights in memory. */
typedef enum gauntlet_packing {
    /* Row by row, as a matrix has them, each row filled up with zeros to a multiple of 256 values. */
    GAUNTLET_ROWS = 0,
    /* For GAUNTLET_NVFP4 tokens on a Hopper GPU: in the pieces that its threads load. */
    GAUNTLET_FRAGMENTS = 1,
    /* For tokens of 16-bit floats on a Hopper GPU: in the steps of its matrix unit. The order depends on the format. */
    GAUNTLET_STEPS = 2
} gauntlet_packing;

/* The bytes of n rows of k values, a multiple of 16, in this order: those of the values, and those of the scales. */
gauntlet_status gauntlet_cuda_packed_bytes(gauntlet_packing packing, size_t n, size_t k, size_t* values,
                                           size_t* scales);

/* Puts the values and scales of one matrix of weights, as a gauntlet_matrix has them, into this order for such tokens.
 * All four arrays are in the memory of the processor; the packed ones have the bytes of gauntlet_cuda_packed_bytes, to
 * be copied to the GPU. Done once, before any call. Results are the same in every order, to the bit. */
gauntlet_status gauntlet_cuda_pack(gauntlet_packing packing, gauntlet_dtype tokens, size_t n, size_t k,
                                   const uint8_t* values, const uint8_t* scales, uint8_t* packed_values,
                                   uint8_t* packed_scales);

/* The weights of one product: n rows of k values, in the layer's order. */
typedef struct gauntlet_cuda_weights {
    size_t n, k;
    /* The second address is that of the second weights of GAUNTLET_SWIGLU, else 0. */
    uint64_t values[2];
    uint64_t scales[2];
    /* The tensor scale of the weights, for GAUNTLET_NVFP4 times that of the tokens. */
    float scale[2];
} gauntlet_cuda_weights;

/* Registers weights, which must stay at their addresses as long as a call uses them. tokens is GAUNTLET_NVFP4, or
 * GAUNTLET_F16 or GAUNTLET_BF16, whose rows are not filled up and whose token_scales are 0. */
gauntlet_status gauntlet_cuda_layer_create(const gauntlet_cuda_library* library, const gauntlet_cuda_weights* weights,
                                           size_t count, gauntlet_form form, gauntlet_dtype tokens,
                                           gauntlet_packing packing, gauntlet_dtype output,
                                           gauntlet_cuda_layer** layer);
void gauntlet_cuda_layer_destroy(gauntlet_cuda_layer* layer);

/* Plans a call with these token counts, one for each product. The first plan of a kind compiles a kernel. */
gauntlet_status gauntlet_cuda_plan_create(const gauntlet_cuda_layer* layer, const size_t* tokens, size_t count,
                                          gauntlet_cuda_plan** plan);
/* Plans a call with this many rows of tokens of all products, which have one size. The device knows how many each has.
 */
gauntlet_status gauntlet_cuda_plan_create_routed(const gauntlet_cuda_layer* layer, size_t rows,
                                                 gauntlet_cuda_plan** plan);
/* Destroy it after the stream's work is done, and after the graphs that hold it. */
void gauntlet_cuda_plan_destroy(gauntlet_cuda_plan* plan);

/* A queue on a CUstream or cudaStream_t of the primary context, which must live as long as the queue. */
gauntlet_status gauntlet_cuda_queue_create(const gauntlet_cuda_library* library, void* stream,
                                           gauntlet_cuda_queue** queue);
void gauntlet_cuda_queue_destroy(gauntlet_cuda_queue* queue);

/* Makes sure of the scratch memory of a plan. It may allocate, also while the stream is being captured. */
gauntlet_status gauntlet_cuda_reserve(const gauntlet_cuda_queue* queue, const gauntlet_cuda_plan* plan);

/* Enqueues a call: tokens, their scales and the result of all products one after another. It may be captured. */
gauntlet_status gauntlet_cuda_enqueue(const gauntlet_cuda_queue* queue, const gauntlet_cuda_plan* plan, uint64_t tokens,
                                      uint64_t token_scales, uint64_t output);

/* Enqueues a call of gauntlet_cuda_plan_create_routed. ends is the address of an int32_t for each product in device
 * memory: the row at which its tokens end, counted over all products. A captured call reads them anew in each replay.
 * Rows beyond the last end are neither read nor written. */
gauntlet_status gauntlet_cuda_enqueue_routed(const gauntlet_cuda_queue* queue, const gauntlet_cuda_plan* plan,
                                             uint64_t tokens, uint64_t token_scales, uint64_t output, uint64_t ends);

#ifdef __cplusplus
}
#endif

#endif
