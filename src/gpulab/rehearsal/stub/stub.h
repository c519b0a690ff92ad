/* A stand-in for the CUDA runtime on a machine without a GPU: device memory is host memory, no kernel runs.
 *
 * The library is loaded with global symbols before torch, so that its functions win over libcudart's. It needs no
 * header of CUDA's or torch's; numbers below are those of CUDA's public interface. Functions that are not here fall
 * through to the real libcudart, which reports that there is no driver.
 */
#ifndef GPULAB_REHEARSAL_STUB_H
#define GPULAB_REHEARSAL_STUB_H

#include <stddef.h>
#include <stdint.h>

typedef int status;
enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INITIALIZATION_ERROR = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    NO_KERNEL_IMAGE = 209,
    ASSERT = 710,
    NOT_SUPPORTED = 801,
};

/* Remember an error for cudaGetLastError, and hand it on. */
status fail(status code);

/* Refuse something by name: NOT_SUPPORTED, whose text then is this one. `what` must be a literal. */
status refuse(const char *what);

/* SUCCESS, or why this process may not use the device: it was forked off a process that had already used it
 * (INITIALIZATION_ERROR), the device is hidden (NO_DEVICE), or a kernel's assertion failed earlier (ASSERT). */
status device_ready(void);

#define REQUIRE_DEVICE()                 \
    do {                                 \
        status code_ = device_ready();   \
        if (code_) return fail(code_);   \
    } while (0)

int runtime_version(void);
int device_is_visible(void);
void context_state(int *active);

/* device memory */
size_t memory_capacity(void);

/* Copies to the host that are still "in flight" arrive now. */
void deliver_copies(void);

#endif
