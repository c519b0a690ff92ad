/* Copies, streams and events. All work is done by the time that its call returns, except copies to pinned host
 * memory that did not ask to wait: those arrive at the next synchronisation, the latest moment that CUDA allows. */
#include "stub.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct copy {
    char *target;
    size_t size;
    struct copy *next;
    char bytes[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct copy *first_copy, **next_copy = &first_copy;

void deliver_copies(void)
{
    pthread_mutex_lock(&lock);
    while (first_copy) {
        struct copy *copy = first_copy;
        first_copy = copy->next;
        memcpy(copy->target, copy->bytes, copy->size);
        free(copy);
    }
    next_copy = &first_copy;
    pthread_mutex_unlock(&lock);
}

/* Take the bytes now, deliver them at the next synchronisation. Until then the target reads as zeros. */
int rehearsal_copy_later(char *target, const char *source, size_t size)
{
    struct copy *copy = malloc(sizeof *copy + size);
    if (!copy)
        return -1;
    copy->target = target;
    copy->size = size;
    copy->next = NULL;
    memcpy(copy->bytes, source, size);
    memset(target, 0, size);
    pthread_mutex_lock(&lock);
    *next_copy = copy;
    next_copy = &copy->next;
    pthread_mutex_unlock(&lock);
    return 0;
}

int rehearsal_copies_pending(void) { return first_copy != NULL; }

status cudaMemcpyAsync(void *target, const void *source, size_t size, int kind, void *stream)
{
    (void)kind, (void)stream;
    REQUIRE_DEVICE();
    memmove(target, source, size);
    return SUCCESS;
}

status cudaMemcpy(void *target, const void *source, size_t size, int kind)
{
    REQUIRE_DEVICE();
    deliver_copies();
    return cudaMemcpyAsync(target, source, size, kind, NULL);
}

status cudaMemcpyPeerAsync(void *target, int to, const void *source, int from, size_t size, void *stream)
{
    (void)to, (void)from;
    return cudaMemcpyAsync(target, source, size, 0, stream);
}

status cudaMemsetAsync(void *target, int value, size_t size, void *stream)
{
    (void)stream;
    REQUIRE_DEVICE();
    memset(target, value, size);
    return SUCCESS;
}

status cudaMemset(void *target, int value, size_t size) { return cudaMemsetAsync(target, value, size, NULL); }

/* ---- streams: an identity and a priority */

struct stream {
    int priority;
};

status cudaStreamCreateWithPriority(struct stream **stream, unsigned flags, int priority)
{
    (void)flags;
    REQUIRE_DEVICE();
    *stream = malloc(sizeof **stream);
    if (!*stream)
        return fail(OUT_OF_MEMORY);
    (*stream)->priority = priority;
    return SUCCESS;
}

status cudaStreamCreateWithFlags(struct stream **stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

status cudaStreamCreate(struct stream **stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }

status cudaStreamDestroy(struct stream *stream)
{
    free(stream);
    return SUCCESS;
}

status cudaStreamGetPriority(struct stream *stream, int *priority)
{
    *priority = (uintptr_t)stream > 2 ? stream->priority : 0; /* 0, 1 and 2 name default streams */
    return SUCCESS;
}

status cudaStreamQuery(void *stream)
{
    (void)stream;
    REQUIRE_DEVICE();
    return SUCCESS;
}

status cudaStreamSynchronize(void *stream)
{
    (void)stream;
    REQUIRE_DEVICE();
    deliver_copies();
    return SUCCESS;
}

status cudaStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    (void)stream, (void)event, (void)flags;
    REQUIRE_DEVICE();
    return SUCCESS;
}

status cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data)
{
    (void)stream;
    function(data);
    return SUCCESS;
}

/* ---- graph capture: never active, never possible */

status cudaStreamIsCapturing(void *stream, int *capturing)
{
    (void)stream;
    REQUIRE_DEVICE();
    *capturing = 0;
    return SUCCESS;
}

status cudaStreamGetCaptureInfo(void *stream, int *capturing)
{
    (void)stream;
    *capturing = 0; /* all versions of this function begin with these two arguments */
    return SUCCESS;
}

status cudaStreamGetCaptureInfo_v2(void *stream, int *capturing) { return cudaStreamGetCaptureInfo(stream, capturing); }

status cudaThreadExchangeStreamCaptureMode(int *mode)
{
    (void)mode;
    return SUCCESS;
}

status cudaStreamBeginCapture(void *stream, int mode)
{
    (void)stream, (void)mode;
    return refuse("capturing a CUDA graph");
}

/* ---- events: an identity; whatever was recorded has already happened, and when is nobody's business */

status cudaEventCreateWithFlags(void **event, unsigned flags)
{
    (void)flags;
    REQUIRE_DEVICE();
    *event = malloc(1);
    return *event ? SUCCESS : fail(OUT_OF_MEMORY);
}

status cudaEventCreate(void **event) { return cudaEventCreateWithFlags(event, 0); }

status cudaEventDestroy(void *event)
{
    free(event);
    return SUCCESS;
}

status cudaEventRecordWithFlags(void *event, void *stream, unsigned flags)
{
    (void)event, (void)stream, (void)flags;
    REQUIRE_DEVICE();
    return SUCCESS;
}

status cudaEventRecord(void *event, void *stream) { return cudaEventRecordWithFlags(event, stream, 0); }

status cudaEventQuery(void *event)
{
    (void)event;
    REQUIRE_DEVICE();
    return SUCCESS;
}

status cudaEventSynchronize(void *event)
{
    (void)event;
    REQUIRE_DEVICE();
    deliver_copies();
    return SUCCESS;
}

status cudaEventElapsedTime(float *milliseconds, void *start, void *end)
{
    (void)milliseconds, (void)start, (void)end;
    return refuse("timing with events");
}
