/* The driver's functions that torch's libcaffe2_nvrtc.so must find before it can be loaded, under the driver's own
 * library name. Those that would compile or launch something are refused. */
#define _GNU_SOURCE
#include "stub.h"
#include <dlfcn.h>

static status refused(void) { return NOT_SUPPORTED; }

static status entry_point(const char *name, void **function, int *found)
{
    *function = dlsym(RTLD_DEFAULT, name);
    if (!*function)
        *function = (void *)refused;
    if (found)
        *found = 0;
    return SUCCESS;
}

status cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags, int *found)
{
    (void)flags;
    return entry_point(name, function, found);
}

status cudaGetDriverEntryPointByVersion(
    const char *name, void **function, unsigned version, unsigned long long flags, int *found)
{
    (void)version, (void)flags;
    return entry_point(name, function, found);
}

status cuInit(unsigned flags)
{
    (void)flags;
    return device_is_visible() ? SUCCESS : NO_DEVICE;
}

status cuDriverGetVersion(int *number)
{
    *number = runtime_version();
    return SUCCESS;
}

status cuDeviceGetCount(int *count)
{
    *count = device_is_visible();
    return SUCCESS;
}

status cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    (void)device;
    *flags = 0;
    context_state(active);
    return SUCCESS;
}

status cuGetErrorString(status code, const char **text)
{
    (void)code;
    *text = "rehearsal device: this driver call needs a GPU";
    return SUCCESS;
}

#define REFUSE(name) \
    status name(void) { return NOT_SUPPORTED; }
REFUSE(cuCtxGetCurrent)
REFUSE(cuCtxSetCurrent)
REFUSE(cuDeviceGet)
REFUSE(cuDeviceGetAttribute)
REFUSE(cuDevicePrimaryCtxRetain)
REFUSE(cuFuncGetAttribute)
REFUSE(cuFuncSetAttribute)
REFUSE(cuFuncSetCacheConfig)
REFUSE(cuLaunchCooperativeKernel)
REFUSE(cuLaunchKernel)
REFUSE(cuLinkAddData_v2)
REFUSE(cuLinkComplete)
REFUSE(cuLinkCreate_v2)
REFUSE(cuModuleGetFunction)
REFUSE(cuModuleLoad)
REFUSE(cuModuleLoadData)
REFUSE(cuModuleLoadDataEx)
REFUSE(cuModuleUnload)
REFUSE(cuOccupancyMaxActiveBlocksPerMultiprocessor)
REFUSE(cuPointerGetAttribute)
REFUSE(cuTensorMapEncodeTiled)
