/* The device itself: is there one, may this process use it, what does it say of itself. */
#define _GNU_SOURCE
#include "stub.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICE_NAME "Rehearsal device (no GPU)"
#define DEVICE_UUID "GPU-72656865-6172-7361-6c20-646576696365" /* "rehearsal device" */

static int version = 13000;
static int visible = -1;   /* not known before the first use, as with a real driver */
static pid_t first_user;   /* a fork of it has no context */
static status broken;      /* what a failed assertion leaves behind */
static __thread status last_error;
static __thread const char *refused;

void rehearsal_set_version(int cuda_version) { version = cuda_version; }
void rehearsal_break(status code) { broken = code; }
int rehearsal_ready(void) { return device_ready(); }

int runtime_version(void) { return version; }

status fail(status code)
{
    if (code)
        last_error = code;
    return code;
}

status refuse(const char *what)
{
    refused = what;
    return fail(NOT_SUPPORTED);
}

/* Only the first entry counts: entries after an invalid one are ignored, and there is one device. */
static int named_in(const char *devices)
{
    size_t length = strcspn(devices, ",");
    if (length >= 5 && strncmp(devices, DEVICE_UUID, length) == 0)
        return 1;
    char *end;
    long ordinal = strtol(devices, &end, 10);
    return end != devices && ordinal == 0;
}

int device_is_visible(void)
{
    if (visible < 0) {
        const char *devices = getenv("CUDA_VISIBLE_DEVICES");
        visible = !devices || named_in(devices);
    }
    return visible;
}

status device_ready(void)
{
    if (!device_is_visible())
        return NO_DEVICE;
    if (!first_user)
        first_user = getpid();
    if (first_user != getpid())
        return INITIALIZATION_ERROR;
    return broken;
}

void context_state(int *active) { *active = first_user == getpid(); }

status cudaGetLastError(void)
{
    status code = last_error;
    last_error = SUCCESS;
    return code ? code : broken;
}

status cudaPeekAtLastError(void) { return last_error ? last_error : broken; }

const char *rehearsal_last_kernel(void);

static void *real_function(const char *name)
{
    char library[32];
    snprintf(library, sizeof library, "libcudart.so.%d", version / 1000);
    void *runtime = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    return runtime ? dlsym(runtime, name) : NULL;
}

/* A launch that escaped the bridge says whose it is; all else is worded by the real runtime. */
const char *cudaGetErrorString(status code)
{
    static __thread char text[768];
    static const char *(*real)(status);
    if (code == NO_KERNEL_IMAGE) {
        snprintf(text, sizeof text, "rehearsal device: kernel %s needs a GPU", rehearsal_last_kernel());
        return text;
    }
    if (code == NOT_SUPPORTED && refused) {
        snprintf(text, sizeof text, "rehearsal device: %s needs a GPU", refused);
        return text;
    }
    if (!real)
        *(void **)&real = real_function("cudaGetErrorString");
    return real ? real(code) : "rehearsal device: unnamed error";
}

status cudaGetDeviceCount(int *count)
{
    *count = 0;
    REQUIRE_DEVICE();
    *count = 1;
    return SUCCESS;
}

status cudaGetDevice(int *device)
{
    REQUIRE_DEVICE();
    *device = 0;
    return SUCCESS;
}

status cudaSetDevice(int device)
{
    REQUIRE_DEVICE();
    return device ? fail(INVALID_DEVICE) : SUCCESS;
}

status cudaDeviceSynchronize(void)
{
    REQUIRE_DEVICE();
    deliver_copies();
    return SUCCESS;
}

status cudaDriverGetVersion(int *number)
{
    *number = version;
    return SUCCESS;
}

status cudaRuntimeGetVersion(int *number) { return cudaDriverGetVersion(number); }

status cudaDeviceCanAccessPeer(int *possible, int device, int peer)
{
    (void)device, (void)peer;
    *possible = 0;
    return SUCCESS;
}

status cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return SUCCESS;
}

status cudaDeviceGetPCIBusId(char *text, int length, int device)
{
    if (device)
        return fail(INVALID_DEVICE);
    snprintf(text, (size_t)length, "0000:00:00.0");
    return SUCCESS;
}

status cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    enum { MOST_THREADS = 1, WARP = 10, PROCESSORS = 16, MOST_RESIDENT_THREADS = 39, MAJOR = 75 };
    if (device)
        return fail(INVALID_DEVICE);
    switch (attribute) {
    case MOST_THREADS:
    case MOST_RESIDENT_THREADS: *value = 1024; break;
    case WARP: *value = 32; break;
    case PROCESSORS: *value = 1; break;
    case MAJOR: *value = 8; break;
    default: *value = 0;
    }
    return SUCCESS;
}

/* The leading fields of cudaDeviceProp, which CUDA 12 and 13 share but for the place of multiProcessorCount. */
struct properties {
    char name[256], uuid[16], luid[8];
    unsigned luid_mask;
    size_t memory, shared_per_block;
    int registers_per_block, warp;
    size_t pitch;
    int threads_per_block, block_size[3], grid_size[3], clock_or_reserved;
    size_t constant_memory;
    int major, minor;
    size_t texture_alignment, texture_pitch;
    int processors[2];
};
enum { PROPERTIES_SIZE_12 = 1032, PROPERTIES_SIZE_13 = 1008 };

status cudaGetDeviceProperties(struct properties *properties, int device)
{
    if (device)
        return fail(INVALID_DEVICE);
    REQUIRE_DEVICE();
    memset(properties, 0, version >= 13000 ? PROPERTIES_SIZE_13 : PROPERTIES_SIZE_12);
    strcpy(properties->name, DEVICE_NAME);
    memcpy(properties->uuid, "rehearsal device", 16);
    properties->memory = memory_capacity();
    properties->shared_per_block = 48 << 10;
    properties->registers_per_block = 64 << 10;
    properties->warp = 32;
    properties->threads_per_block = properties->block_size[0] = properties->block_size[1] = 1024;
    properties->block_size[2] = 64;
    properties->grid_size[0] = 0x7fffffff;
    properties->grid_size[1] = properties->grid_size[2] = 65535;
    properties->constant_memory = 64 << 10;
    properties->major = 8;
    properties->processors[version >= 13000 ? 0 : 1] = 1;
    return SUCCESS;
}

status cudaGetDeviceProperties_v2(struct properties *properties, int device)
{
    return cudaGetDeviceProperties(properties, device);
}
