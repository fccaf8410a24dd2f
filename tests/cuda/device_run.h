/* For tests on a GPU: a run on the device beside one on the processor. Tests skip (77) where there is no GPU. */
#ifndef TESTS_CUDA_DEVICE_RUN_H
#define TESTS_CUDA_DEVICE_RUN_H

#include <math.h>
#include <stdio.h>

#include "kernel/device.h"
#include "kernels/kernel_run.h"

struct device_run {
    struct run run;
    struct arena arena;
    const char *name;
};

/* What a device's result is held against: the processor's bits, or its values within a tolerance. */
enum device_mode { DEVICE_F32, DEVICE_BF16_EXACT, DEVICE_BF16, N_DEVICE_MODES };
static const char *const device_mode_names[] = {"f32", "bf16, exact", "bf16"};

static inline enum fathom_dtype mode_act(enum device_mode mode)
{
    return mode == DEVICE_F32 ? FATHOM_F32 : FATHOM_BF16;
}

/* False, with the reason on stdout, when there is no GPU. */
static inline bool device_run_init(struct device_run *r, enum device_mode mode)
{
    char why[256];
    struct fathom_err err = {0};
    struct device *device;
    memset(r, 0, sizeof *r);
    if (device_open("cuda", mode != DEVICE_BF16, &device, why, &err) || device->begin(device, &err) ||
        device->arena(device, &r->arena, (size_t)8 << 30, &err)) {
        printf("no GPU: %s\n", err.message);
        return false;
    }
    r->name = device_mode_names[mode];
    r->run = (struct run){.kernels = device->kernels,
                          .arena = &r->arena,
                          .act = mode_act(mode),
                          .dtype = mode == DEVICE_F32 ? DTYPE_F32 : DTYPE_BF16,
                          .device = device};
    return true;
}

static inline void device_run_close(struct device_run *r)
{
    r->run.device->close(r->run.device);
    arena_release(&r->arena);
}

static inline void device_ok(const struct device_run *r, const char *what)
{
    if (!run_ok(&r->run))
        fail_msg("%s, %s: %s", what, r->name, r->run.err.message);
}

/* A host matrix on the device, its rows `gap` elements apart. */
static inline struct tensor to_device(struct device_run *r, const struct tensor *host, size_t gap)
{
    size_t rows = host->shape[0], cols = host->shape[1];
    struct tensor wide = run_alloc(&r->run, rows, cols + gap), t = tensor_cols(&wide, 0, cols);
    float *packed = calloc(rows * (cols + gap) + 1, sizeof *packed);
    assert_non_null(packed);
    for (size_t i = 0; i < rows; i++)
        memcpy(packed + i * (cols + gap), tensor_row(host, i), cols * sizeof(float));
    upload(&r->run, &wide, packed);
    free(packed);
    device_ok(r, "upload");
    return t;
}

/* A weight's bytes on the device, rows as on the host. */
static inline struct tensor weight_to_device(struct device_run *r, const struct tensor *host)
{
    struct tensor t = *host;
    size_t rows = t.n_dims == 1 ? 1 : t.shape[0], stride = t.n_dims == 1 ? t.shape[0] : t.stride[0];
    size_t n = dtype_bytes(t.dtype, (rows - 1) * stride + tensor_elements(host) / rows);
    struct fathom_err err = {0};
    t.data = run_scratch(&r->run, n, 1);
    if (t.data && r->run.device->put(r->run.device, t.data, host->data, n, &err))
        fail_msg("%s", err.message);
    device_ok(r, "weights");
    return t;
}

static inline struct tensor poisoned(struct device_run *r, size_t rows, size_t cols, size_t gap, bool f32)
{
    struct tensor wide = f32 ? run_alloc_f32(&r->run, rows, cols + gap) : run_alloc(&r->run, rows, cols + gap);
    struct fathom_err err = {0};
    size_t n = dtype_bytes(wide.dtype, rows * (cols + gap));
    unsigned char *ones = malloc(n + 1); /* NaN in both types */
    assert_non_null(ones);
    memset(ones, 0xff, n);
    if (wide.data && r->run.device->put(r->run.device, wide.data, ones, n, &err))
        fail_msg("%s", err.message);
    free(ones);
    device_ok(r, "poison");
    return tensor_cols(&wide, 0, cols);
}

/* Floats compared as the mode has it; prints what differs. */
static inline void check_values(const struct device_run *r, const char *what, const float *got, const float *want,
                                size_t n, double tolerance)
{
    double difference = 0, norm = 0;
    size_t n_differ = 0, first = 0;
    for (size_t i = 0; i < n; i++) {
        if (f32_bits(got[i]) != f32_bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) && n_differ++ == 0)
            first = i;
        difference += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        norm += (double)want[i] * want[i];
    }
    double distance = sqrt(difference / (norm > 0 ? norm : 1));
    if (tolerance == 0 ? n_differ > 0 : !(distance <= tolerance))
        fail_msg("%s, %s: %zu of %zu values differ, relative distance %.3e; at %zu %.9g, expected %.9g", what, r->name,
                 n_differ, n, distance, first, (double)got[first], (double)want[first]);
}

static inline void check_device(struct device_run *r, const char *what, const struct tensor *got,
                                const struct tensor *want, double tolerance)
{
    size_t rows = want->shape[0], cols = want->shape[1];
    float *a = calloc(rows * cols + 1, sizeof *a), *b = calloc(rows * cols + 1, sizeof *b);
    assert_non_null(a);
    assert_non_null(b);
    download(&r->run, a, got);
    device_ok(r, what);
    for (size_t i = 0; i < rows; i++)
        memcpy(b + i * cols, tensor_row(want, i), cols * sizeof *b);
    check_values(r, what, a, b, rows * cols, tolerance);
    free(a);
    free(b);
}

#endif
