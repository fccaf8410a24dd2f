#include "engine/context.h"
#include "kernel/peak.h"

enum fathom_status fathom_measure_machine(struct fathom_context *ctx, struct fathom_machine *out,
                                          struct fathom_err *err)
{
    const size_t bytes = (size_t)1 << 30;
    enum fathom_status status;

    *out = (struct fathom_machine){.isa = ctx->kernels->name, .n_threads = pool_threads(ctx->pool)};
    if ((status = peak_fma(ctx->pool, out->isa, 0.25, &out->fma_flop_s, err)))
        return status;
    return peak_read(ctx->pool, out->isa, 0.5, bytes, &out->read_bytes_s, err);
}
