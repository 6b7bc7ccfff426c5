// A stand-in for NVIDIA's driver: memory of the device is memory of the host, and work is done as soon as it is queued.
// It has the functions that `CudaPlace` calls, and tells a test of some of them.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, OUT_OF_MEMORY = 2, NOT_FOUND = 500 };

// The test's side: it is told of each kernel and of each copy, and may lower the memory that is left.
typedef void (*Told)(char what, const uint64_t* numbers);
static Told told;
static size_t most = SIZE_MAX, used, live;

void stand_in_tell(Told test) { told = test; }
void stand_in_limit(size_t bytes) { most = bytes; }
size_t stand_in_live(void) { return live; }

static void tell(char what, uint64_t one, uint64_t two, uint64_t three, uint64_t four) {
    uint64_t numbers[4] = {one, two, three, four};
    if (told) told(what, numbers);
}

// clang-format off: one line a function.
int cuDriverGetVersion(int* version) { *version = 13000; return SUCCESS; }
int cuInit(unsigned flags) { return SUCCESS; }
int cuGetErrorName(int error, const char** text) {
    *text = error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "another error";
    return SUCCESS;
}
int cuGetErrorString(int error, const char** text) { *text = "in the stand-in"; return SUCCESS; }

int cuDeviceGetCount(int* count) { *count = 1; return SUCCESS; }
int cuDeviceGet(int* device, int ordinal) { *device = ordinal; return SUCCESS; }
int cuDeviceTotalMem_v2(size_t* bytes, int device) { *bytes = 1 << 30; return SUCCESS; }
int cuMemGetInfo_v2(size_t* free, size_t* total) { *free = 1 << 20; *total = 1 << 30; return SUCCESS; }
int cuDeviceGetName(char* name, int length, int device) { strncpy(name, "stand-in", length); return SUCCESS; }
int cuDeviceGetPCIBusId(char* name, int length, int device) { strncpy(name, "0000:00:00.0", length); return SUCCESS; }
int cuDeviceGetUuid_v2(char* bytes, int device) { memset(bytes, 0, 16); return SUCCESS; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
    // Compute capability 9.0; of everything else a number that is large enough.
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 2048;
    return SUCCESS;
}
int cuDeviceGetDefaultMemPool(void** pool, int device) { return SUCCESS; }
int cuMemPoolSetAttribute(void* pool, int attribute, void* value) { return SUCCESS; }
int cuDevicePrimaryCtxRetain(void** context, int device) { *context = &live; return SUCCESS; }
int cuDevicePrimaryCtxRelease_v2(int device) { return SUCCESS; }
int cuCtxSetCurrent(void* context) { return SUCCESS; }
int cuCtxSynchronize(void) { tell('s', 0, 0, 0, 0); return SUCCESS; }
int cuCtxResetPersistingL2Cache(void) { return SUCCESS; }

int cuStreamCreate(void** stream, unsigned flags) { *stream = &used; return SUCCESS; }
int cuStreamDestroy_v2(void* stream) { return SUCCESS; }
int cuStreamSynchronize(void* stream) { return SUCCESS; }
int cuEventCreate(void** event, unsigned flags) { *event = calloc(1, 1); return SUCCESS; }
int cuEventDestroy_v2(void* event) { free(event); return SUCCESS; }
int cuEventRecord(void* event, void* stream) { tell('r', 0, 0, 0, 0); return SUCCESS; }
int cuEventSynchronize(void* event) { tell('w', 0, 0, 0, 0); return SUCCESS; }
int cuEventElapsedTime_v2(float* milliseconds, void* begin, void* end) { *milliseconds = 0.25f; return SUCCESS; }

// An allocation begins with its length.
enum { HEAD = 256 };

int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
    if (used + bytes > most) return OUT_OF_MEMORY;
    char* memory = aligned_alloc(HEAD, (HEAD + bytes + HEAD - 1) / HEAD * HEAD);
    *(size_t*)memory = bytes;
    *address = (uint64_t)(memory + HEAD);
    used += bytes;
    ++live;
    return SUCCESS;
}
int cuMemFree_v2(uint64_t address) {
    char* memory = (char*)address - HEAD;
    used -= *(size_t*)memory;
    --live;
    free(memory);
    return SUCCESS;
}
int cuMemcpyHtoD_v2(uint64_t target, const void* source, size_t bytes) {
    memcpy((void*)target, source, bytes);
    tell('u', target, bytes, 0, 0);
    return SUCCESS;
}
int cuMemcpyDtoH_v2(void* target, uint64_t source, size_t bytes) {
    memcpy(target, (void*)source, bytes);
    return SUCCESS;
}
int cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t bytes, void* stream) {
    memcpy((void*)target, (void*)source, bytes);
    tell('c', target, bytes, 0, 0);
    return SUCCESS;
}
int cuMemsetD8Async(uint64_t target, unsigned char byte, size_t bytes, void* stream) {
    memset((void*)target, byte, bytes);
    return SUCCESS;
}
int cuMemHostRegister_v2(void* memory, size_t bytes, unsigned flags) { return SUCCESS; }
int cuMemHostUnregister(void* memory) { return SUCCESS; }

// A function is its name.
int cuModuleLoadData(void** module, const void* image) { *module = (void*)image; return SUCCESS; }
int cuModuleUnload(void* module) { return SUCCESS; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
    *function = strstr(module, name);
    return* function ? SUCCESS : NOT_FOUND;
}
int cuFuncSetAttribute(void* function, int attribute, int value) { return SUCCESS; }
int cuLaunchKernelEx(const void* configuration, void* function, void** arguments, void** more) {
    if (!strncmp(function, "gauntlet_open", 13)) {
        uint64_t numbers[4];
        for (int index = 0; index < 4; ++index) memcpy(numbers + index, arguments[index], 8);
        tell('o', numbers[0], numbers[1], numbers[2], numbers[3]);
    } else {
        // The hold, and the kernel that evicts the cache.
        tell(((const char*)function)[9], 0, 0, 0, 0);
    }
    return SUCCESS;
}
