/* Device memory: one range of addresses, reserved at once and backed page by page as it is allocated.
 *
 * One range lets the bridge see every device tensor through a single host tensor. It is far larger than the capacity,
 * so that a request within the capacity never fails for want of a gap, as on a GPU with its own page tables.
 */
#define _GNU_SOURCE
#include "stub.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ADDRESSES_PER_BYTE 64
#define MOST_ADDRESSES ((size_t)1 << 42)
#define GRANULE ((size_t)1 << 21) /* addresses come in steps of 2 MiB, as a driver's do */

struct block {
    char *start;
    size_t size;
    struct block *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *arena;
static size_t arena_size, capacity, used;
static struct block *device_blocks; /* sorted by address */
static struct block *host_blocks;   /* pinned; registered ones have size but are not ours to free */

size_t memory_capacity(void) { return capacity; }

/* Reserve the addresses. Returns 0, or -1 when the system has no such range. */
int rehearsal_reserve(size_t bytes)
{
    capacity = bytes;
    arena_size = bytes > MOST_ADDRESSES / ADDRESSES_PER_BYTE ? MOST_ADDRESSES : bytes * ADDRESSES_PER_BYTE;
    while (arena_size >= 2 * capacity) {
        char *range = mmap(NULL, arena_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range != MAP_FAILED) {
            /* whole granules only; the few addresses before the first one stay unused */
            arena = (char *)(((uintptr_t)range + GRANULE - 1) & ~(GRANULE - 1));
            arena_size -= (size_t)(arena - range);
            return 0;
        }
        arena_size /= 2;
    }
    return -1;
}

void *rehearsal_arena(size_t *size)
{
    *size = arena_size;
    return arena;
}

static size_t whole_granules(size_t size) { return (size + GRANULE - 1) & ~(GRANULE - 1); }

/* First gap that is large enough. The lock is held. */
static struct block *take_addresses(size_t size)
{
    char *start = arena;
    struct block **link = &device_blocks;
    for (; *link; link = &(*link)->next) {
        if ((size_t)((*link)->start - start) >= whole_granules(size))
            break;
        start = (*link)->start + whole_granules((*link)->size);
    }
    if (!*link && (size_t)(arena + arena_size - start) < whole_granules(size))
        return NULL;
    struct block *taken = malloc(sizeof *taken);
    if (!taken)
        return NULL;
    taken->start = start;
    taken->size = size;
    taken->next = *link;
    *link = taken;
    return taken;
}

static struct block *unlink_block(struct block **list, const void *start)
{
    for (struct block **link = list; *link; link = &(*link)->next) {
        if ((*link)->start != start)
            continue;
        struct block *found = *link;
        *link = found->next;
        return found;
    }
    return NULL;
}

static int back_with_memory(void *start, size_t size) { return mprotect(start, size, PROT_READ | PROT_WRITE); }

/* The pages go back to the system; the addresses stay reserved. */
static void give_memory_back(void *start, size_t size)
{
    mmap(start, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

status cudaMalloc(void **pointer, size_t size)
{
    REQUIRE_DEVICE();
    *pointer = NULL;
    status code = SUCCESS;
    pthread_mutex_lock(&lock);
    struct block *taken = size > capacity - used ? NULL : take_addresses(size);
    if (!taken) {
        code = OUT_OF_MEMORY;
    } else if (size && back_with_memory(taken->start, size)) {
        free(unlink_block(&device_blocks, taken->start));
        code = OUT_OF_MEMORY;
    } else {
        used += size;
        *pointer = taken->start;
    }
    pthread_mutex_unlock(&lock);
    return code ? fail(code) : SUCCESS;
}

status cudaFree(void *pointer)
{
    if (!pointer)
        return device_ready();
    REQUIRE_DEVICE();
    pthread_mutex_lock(&lock);
    struct block *found = unlink_block(&device_blocks, pointer);
    if (found) {
        if (found->size)
            give_memory_back(found->start, found->size);
        used -= found->size;
    }
    pthread_mutex_unlock(&lock);
    free(found);
    return found ? SUCCESS : fail(INVALID_VALUE);
}

status cudaMemGetInfo(size_t *available, size_t *total)
{
    REQUIRE_DEVICE();
    *available = capacity - used;
    *total = capacity;
    return SUCCESS;
}

/* ---- pinned host memory */

static status remember_host_block(void *start, size_t size)
{
    struct block *block = malloc(sizeof *block);
    if (!block)
        return fail(OUT_OF_MEMORY);
    block->start = start;
    block->size = size;
    pthread_mutex_lock(&lock);
    block->next = host_blocks;
    host_blocks = block;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

static struct block *forget_host_block(void *start)
{
    pthread_mutex_lock(&lock);
    struct block *block = unlink_block(&host_blocks, start);
    pthread_mutex_unlock(&lock);
    return block;
}

status cudaHostAlloc(void **pointer, size_t size, unsigned flags)
{
    (void)flags;
    REQUIRE_DEVICE();
    *pointer = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*pointer == MAP_FAILED)
        return fail(OUT_OF_MEMORY);
    return remember_host_block(*pointer, size);
}

status cudaMallocHost(void **pointer, size_t size) { return cudaHostAlloc(pointer, size, 0); }

status cudaFreeHost(void *pointer)
{
    deliver_copies(); /* one of them may be on its way here */
    struct block *block = forget_host_block(pointer);
    if (!block)
        return pointer ? fail(INVALID_VALUE) : SUCCESS;
    munmap(block->start, block->size ? block->size : 1);
    free(block);
    return SUCCESS;
}

status cudaHostRegister(void *pointer, size_t size, unsigned flags)
{
    (void)flags;
    REQUIRE_DEVICE();
    return remember_host_block(pointer, size);
}

status cudaHostUnregister(void *pointer)
{
    struct block *block = forget_host_block(pointer);
    free(block);
    return block ? SUCCESS : fail(INVALID_VALUE);
}

/* ---- whose address is it? */

struct pointer_attributes {
    int type, device; /* 0 unregistered, 1 host, 2 device */
    void *device_pointer, *host_pointer;
};

static int in_host_block(const char *address)
{
    int found = 0;
    pthread_mutex_lock(&lock);
    for (struct block *block = host_blocks; block && !found; block = block->next)
        found = address >= block->start && address < block->start + block->size;
    pthread_mutex_unlock(&lock);
    return found;
}

status cudaPointerGetAttributes(struct pointer_attributes *attributes, const void *pointer)
{
    REQUIRE_DEVICE();
    const char *address = pointer;
    memset(attributes, 0, sizeof *attributes);
    attributes->device = -2;
    if (address >= arena && address < arena + arena_size) {
        attributes->type = 2;
    } else if (in_host_block(address)) {
        attributes->type = 1;
        attributes->host_pointer = (void *)pointer;
    } else {
        return SUCCESS;
    }
    attributes->device = 0;
    attributes->device_pointer = (void *)pointer;
    return SUCCESS;
}
