/* Kernels: none runs. Their names are kept, so that a launch which escapes the bridge can be refused by name. */
#include "stub.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    unsigned x, y, z;
} dim3;

struct kernel {
    const void *function;
    const char *name;
    struct kernel *next;
};

enum { BUCKETS = 1 << 14 };
static struct kernel *buckets[BUCKETS];
static __thread const char *last_kernel = "(none)";

static struct kernel **bucket_of(const void *function) { return &buckets[((uintptr_t)function >> 4) % BUCKETS]; }

const char *rehearsal_last_kernel(void) { return last_kernel; }

void __cudaRegisterFunction(void **binary, const char *function, char *device_function, const char *name)
{
    (void)binary, (void)device_function; /* the arguments after these tell nothing here */
    struct kernel *kernel = malloc(sizeof *kernel);
    if (!kernel)
        return;
    struct kernel **bucket = bucket_of(function);
    kernel->function = function;
    kernel->name = name;
    kernel->next = *bucket;
    *bucket = kernel;
}

void **__cudaRegisterFatBinary(void *binary)
{
    (void)binary;
    static void *handle;
    return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
void __cudaUnregisterFatBinary(void **handle) { (void)handle; }
void __cudaRegisterVar(void **handle) { (void)handle; }

char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
    (void)grid, (void)block, (void)shared, (void)stream;
    return 0;
}

status __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void **stream)
{
    *grid = *block = (dim3){1, 1, 1};
    *shared = 0;
    *stream = NULL;
    return SUCCESS;
}

status __cudaGetKernel(const void **kernel, const void *function)
{
    *kernel = function;
    return SUCCESS;
}

status cudaLaunchKernel(const void *function)
{
    last_kernel = "(unknown)";
    for (struct kernel *kernel = *bucket_of(function); kernel; kernel = kernel->next)
        if (kernel->function == function)
            last_kernel = kernel->name;
    return fail(NO_KERNEL_IMAGE);
}

status __cudaLaunchKernel(const void *function) { return cudaLaunchKernel(function); }

status cudaLaunchKernelExC(const void *configuration, const void *function)
{
    (void)configuration;
    return cudaLaunchKernel(function);
}

status cudaFuncGetAttributes(char *attributes, const void *function)
{
    enum { SIZE = 56, MAX_THREADS_PER_BLOCK = 24 };
    (void)function;
    memset(attributes, 0, SIZE);
    *(int *)(attributes + MAX_THREADS_PER_BLOCK) = 1024;
    return SUCCESS;
}

status cudaFuncSetAttribute(const void *function, int attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return SUCCESS;
}

status cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks)
{
    *blocks = 1;
    return SUCCESS;
}
