/* The operations that bring data into a run's memory, out of it and from place to place: checked here for all back ends. */
#include "kernel/admit.h"

void upload(struct run *run, struct tensor *y, const float *x)
{
    if (!ADMIT(run, "upload", y->dtype == run->dtype && tensor_is_packed(y), {"y", y}))
        return;
    run->kernels->upload(run, y, x);
    trace(run, "upload", y);
}

void upload_ids(struct run *run, int32_t *y, const int32_t *x, size_t n)
{
    if (run_ok(run))
        run->kernels->upload_ids(run, y, x, n);
}

void download(struct run *run, float *y, const struct tensor *x)
{
    if (ADMIT(run, "download", is_act(run, x) || is_matrix(x), {"x", x}))
        run->kernels->download(run, y, x);
}

void copy(struct run *run, struct tensor *y, const struct tensor *x)
{
    bool fits = is_act(run, y) && x->n_dims == 2 && same_shape(y, x) && is_weight(x, x->shape[0], x->shape[1]);
    if (!ADMIT(run, "copy", fits, {"y", y}, {"x", x}))
        return;
    run->kernels->copy(run, y, x);
    trace(run, "copy", y);
}

void positions(struct run *run, int32_t *pos, size_t first, size_t n)
{
    if (!run_ok(run))
        return;
    if (n > INT32_MAX || first > INT32_MAX - n)
        run_fail(run, FATHOM_ELIMIT, "positions: %zu after %zu are too many", n, first);
    else
        run->kernels->positions(run, pos, (int32_t)first, n);
}

static bool is_table(const struct tensor *t)
{
    return (t->dtype == DTYPE_F32 || t->dtype == DTYPE_BF16) && tensor_is_packed(t);
}

void resize_1d(struct run *run, struct tensor *y, const struct tensor *x)
{
    bool fits = is_act(run, y) && tensor_is_packed(y) && x->n_dims == 2 && is_table(x) && x->shape[0] > 0 &&
                x->shape[1] == y->shape[1];
    if (!ADMIT(run, "resize_1d", fits, {"y", y}, {"x", x}))
        return;
    run->kernels->resize_1d(run, y, x);
    trace(run, "resize_1d", y);
}

void resize_2d(struct run *run, struct tensor *y, const struct tensor *x, size_t side, size_t g)
{
    bool fits = is_act(run, y) && tensor_is_packed(y) && is_table(x) && side > 0 && side <= UINT16_MAX && g > 0 &&
                g <= UINT16_MAX && y->shape[0] == g * g && tensor_elements(x) == side * side * y->shape[1] &&
                x->shape[x->n_dims - 1] == y->shape[1];
    if (!ADMIT(run, "resize_2d", fits, {"y", y}, {"x", x}))
        return;
    run->kernels->resize_2d(run, y, x, side, g);
    trace(run, "resize_2d", y);
}
