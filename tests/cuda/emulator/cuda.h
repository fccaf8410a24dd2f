/* The driver's types and functions that the GPU back end names (see emulator.h). */
#ifndef EMULATOR_CUDA_H
#define EMULATOR_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef uintptr_t CUdeviceptr;
typedef size_t CUmemGenericAllocationHandle;
typedef uint64_t cuuint64_t;
typedef uint32_t cuuint32_t;

struct CUtensorMap {
    const unsigned char *data;
    int n_dims;
    size_t extent[4], stride[4], box[4]; /* stride in bytes */
};
enum { CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
enum {
    CU_TENSOR_MAP_DATA_TYPE_UINT16,
    CU_TENSOR_MAP_INTERLEAVE_NONE,
    CU_TENSOR_MAP_SWIZZLE_128B,
    CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
};
struct CUmemLocation {
    int type, id;
};
struct CUmemAllocationProp {
    int type;
    CUmemLocation location;
};
struct CUmemAccessDesc {
    CUmemLocation location;
    int flags;
};

CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wanted, unsigned long long);
CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes);
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *,
                     unsigned long long);
CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle, unsigned long long);
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *, size_t n);
CUresult cuMemRelease(CUmemGenericAllocationHandle);
CUresult cuTensorMapEncodeTiled(CUtensorMap *, int, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                                const cuuint32_t *, const cuuint32_t *, int, int, int, int);

#endif
