/* A device with memory of its own that runs the operations of kernel.h. Its back end is a shared object that is loaded
 * when a device is asked for, so that one build of the library runs with and without it. */
#ifndef FATHOM_KERNEL_DEVICE_H
#define FATHOM_KERNEL_DEVICE_H

#include "base/arena.h"
#include "kernel/kernel.h"

/* Both sides of the shared object agree on everything in kernel.h and here. */
#define DEVICE_ABI 1
#define DEVICE_ENTRY "fathom_cuda_open"

/* One device, one queue of work. It belongs to one thread at a time, which calls begin first. */
struct device {
    const struct kernels *kernels;
    char name[128];                                                        /* "NVIDIA H200"            */
    size_t memory_bytes;                                                   /* that it has              */
    void (*close)(struct device *d);                                       /* NULL is fine             */
    enum fathom_status (*begin)(struct device *d, struct fathom_err *err); /* the calling thread uses it from here on */

    /* Device memory, 256-byte aligned; what names it in messages. */
    enum fathom_status (*alloc)(struct device *d, size_t bytes, const char *what, void **out, struct fathom_err *err);
    void (*release)(struct device *d, void *memory);
    enum fathom_status (*clear)(struct device *d, void *memory, size_t bytes, struct fathom_err *err);

    /* Copies bytes of this process to the device, after everything before it; src may change when it returns. */
    enum fathom_status (*put)(struct device *d, void *dst, const void *src, size_t bytes, struct fathom_err *err);

    /* Memory of this process that the device reaches quickly; NULL: none. */
    void *(*host_alloc)(struct device *d, size_t bytes);
    void (*host_release)(struct device *d, void *memory);

    /* The device's scratch: grows on demand up to limit_bytes, as a region of an arena. One a device. */
    enum fathom_status (*arena)(struct device *d, struct arena *out, size_t limit_bytes, struct fathom_err *err);
};

struct device_options {
    int index;  /* which of several                                                              */
    bool exact; /* sums in the order of kernel.h, so that a result is the processor's, bit for bit */
};

/* What the shared object exports as DEVICE_ENTRY; abi is DEVICE_ABI of the caller. */
typedef enum fathom_status device_open_fn(int abi, const struct device_options *options, struct device **out,
                                          struct fathom_err *err);

/* The device that `spec` names: NULL or "cpu": *out is NULL, that is this process's processors; "cuda" or "cuda:N"; "auto":
 * a GPU when there is one, else *out is NULL and *why, of 256 bytes, says why in one line. Fails with FATHOM_EINVAL for
 * another name, FATHOM_EUNSUPPORTED when there is no such device, no driver, or no back end beside the library. */
enum fathom_status device_open(const char *spec, bool exact, struct device **out, char why[256],
                               struct fathom_err *err);

#endif
