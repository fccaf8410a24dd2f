#include "kernel/cuda/attention_check.h"

enum fathom_status cuda_status(cudaError_t error, const char *what, struct fathom_err *err)
{
    if (error == cudaSuccess)
        return FATHOM_OK;
    return fail(err, FATHOM_EIO, "%s failed: %s (%s)", what, cudaGetErrorName(error), cudaGetErrorString(error));
}

enum fathom_status current_device(struct cuda_device *out, struct fathom_err *err)
{
    enum fathom_status status = cuda_status(cudaGetDevice(&out->id), "finding the CUDA device", err);
    if (status)
        return status;
    int shared_bytes = 0;
    cudaError_t error = cudaDeviceGetAttribute(&out->major, cudaDevAttrComputeCapabilityMajor, out->id);
    if (!error)
        error = cudaDeviceGetAttribute(&out->minor, cudaDevAttrComputeCapabilityMinor, out->id);
    if (!error)
        error = cudaDeviceGetAttribute(&out->n_mp, cudaDevAttrMultiProcessorCount, out->id);
    if (!error)
        error = cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, out->id);
    if (error)
        return cuda_status(error, "reading the CUDA device's properties", err);
    out->block_shared_bytes = (size_t)shared_bytes;
    if (out->major < 8)
        return fail(err, FATHOM_EUNSUPPORTED, "CUDA device %d has compute capability %d.%d, the kernels need 8.0",
                    out->id, out->major, out->minor);
    return FATHOM_OK;
}

enum fathom_status check_matrix(const char *name, const struct tensor *t, enum dtype dtype, size_t rows, size_t cols,
                                bool packed, const struct cuda_device *device, struct fathom_err *err)
{
    if (t->dtype != dtype)
        return fail(err, FATHOM_EINVAL, "%s has dtype %d, expected %d", name, (int)t->dtype, (int)dtype);
    bool vector = t->n_dims == 1;
    size_t t_rows = vector ? 1 : t->shape[0], t_cols = vector ? t->shape[0] : t->shape[1];
    if (t->n_dims < 1 || t->n_dims > 2 || t_rows != rows || t_cols != cols)
        return fail(err, FATHOM_EINVAL, "%s has shape [%zu, %zu], expected [%zu, %zu]", name, t_rows, t_cols, rows,
                    cols);
    size_t row_stride = vector ? cols : t->stride[0];
    if (t->stride[t->n_dims - 1] != 1 || row_stride < cols || (packed && row_stride != cols))
        return fail(err, FATHOM_EINVAL, "%s has strides [%zu, %zu], expected %s[%zu, 1]", name, row_stride,
                    t->stride[t->n_dims - 1], packed ? "" : "at least ", cols);
    if ((uintptr_t)t->data % 16 || (rows > 1 && row_stride % 8))
        return fail(err, FATHOM_EINVAL, "%s is not 16-byte aligned", name);
    if (row_stride > ((size_t)1 << 37) / rows)
        return fail(err, FATHOM_ELIMIT, "%s is larger than 2^37 elements", name);
    struct cudaPointerAttributes at;
    cudaError_t error = cudaPointerGetAttributes(&at, t->data);
    if (error)
        return cuda_status(error, "looking up a device pointer", err);
    if (at.type != cudaMemoryTypeDevice && at.type != cudaMemoryTypeManaged)
        return fail(err, FATHOM_EINVAL, "%s is not in device memory", name);
    if (at.device != device->id)
        return fail(err, FATHOM_EINVAL, "%s is on CUDA device %d, the current one is %d", name, at.device, device->id);
    return FATHOM_OK;
}

enum fathom_status tensor_map(CUtensorMap *out, const void *data, int n_dims, const size_t *extent,
                              const size_t *stride, const int *box, struct fathom_err *err)
{
    void *function = NULL;
    cudaDriverEntryPointQueryResult found;
    cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (error || found != cudaDriverEntryPointSuccess)
        return fail(err, FATHOM_EIO, "the CUDA driver has no cuTensorMapEncodeTiled");
    cuuint64_t extents[4], strides[3];
    cuuint32_t boxes[4], steps[4] = {1, 1, 1, 1};
    for (int i = 0; i < n_dims; i++) {
        extents[i] = extent[i];
        boxes[i] = (cuuint32_t)box[i];
    }
    for (int i = 0; i + 1 < n_dims; i++)
        strides[i] = stride[i] * 2;
    CUresult result = ((decltype(&cuTensorMapEncodeTiled))function)(
        out, CU_TENSOR_MAP_DATA_TYPE_UINT16, (cuuint32_t)n_dims, (void *)data, extents, strides, boxes, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result)
        return fail(err, FATHOM_EIO, "cuTensorMapEncodeTiled failed: CUDA error %d", (int)result);
    return FATHOM_OK;
}
