#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <utility>
#include <vector>

#include "kernel/cuda/wgmma.cuh"

dim3 threadIdx, blockIdx, blockDim, gridDim;

/* ---- fibers ------------------------------------------------------------------------------------------------------ */

namespace
{

constexpr size_t STACK_BYTES = 128 << 10, SHARED_BYTES = 256 << 10;

enum state { READY, IN_WARP, IN_BLOCK, DONE };

struct copy_async {
    uint32_t to;
    const void *from;
    bool valid;
};

/* Where a fiber goes on: its registers lie on its stack (switch_to). */
struct fiber {
    void *sp;
    unsigned char *stack;
    enum state state;
    unsigned char bytes[2][64]; /* given to the warp's exchanges */
    unsigned n_given; /* so far; the last two are kept, since slower lanes may still read the one before */
    std::vector<std::vector<copy_async>> groups;
    std::vector<copy_async> open;
};

std::vector<fiber> fibers;
void *scheduler_sp;
int current, n_threads;
const std::function<void()> *body;
alignas(1024) unsigned char shared_memory[SHARED_BYTES];
const void *exchanged[64][32];

[[noreturn]] void stop(const char *why)
{
    fprintf(stderr, "emulator: block %u %u, thread %d of %d: %s\n", blockIdx.x, blockIdx.y, current, n_threads, why);
    abort();
}

/* Saves the callee's registers on this stack, goes on on the other. System V x86-64. */
extern "C" void emulator_switch(void **from, void *to);
asm(".text\n.globl emulator_switch\n.hidden emulator_switch\nemulator_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");

void yield(enum state state)
{
    fiber &f = fibers[(size_t)current];
    f.state = state;
    emulator_switch(&f.sp, scheduler_sp);
}

void start()
{
    (*body)();
    yield(DONE);
    stop("a thread that had ended went on");
}

/* All live threads [first, end) wait: they go on. */
bool release(int first, int end, enum state state)
{
    int live = 0;
    for (int i = first; i < end; i++)
        if (fibers[(size_t)i].state != DONE) {
            live++;
            if (fibers[(size_t)i].state != state)
                return false;
        }
    for (int i = first; i < end; i++)
        if (fibers[(size_t)i].state == state)
            fibers[(size_t)i].state = READY;
    return live > 0;
}

void prepare(fiber &f)
{
    if (!f.stack) {
        f.stack = (unsigned char *)mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (f.stack == MAP_FAILED)
            stop("no memory for a thread");
    }
    void **top = (void **)(f.stack + STACK_BYTES - 64);
    *--top = nullptr; /* start never returns; keeps the stack aligned */
    *--top = (void *)start;
    for (int i = 0; i < 6; i++)
        *--top = nullptr;
    f.sp = top;
    f.state = READY;
    f.n_given = 0;
    f.groups.clear();
    f.open.clear();
}

void run_block()
{
    for (int i = 0; i < n_threads; i++)
        prepare(fibers[(size_t)i]);
    for (;;) {
        bool ran = false, live = false;
        /* The last warp first: what relies on the usual order shows. */
        for (int warp = (n_threads - 1) / 32; warp >= 0; warp--) {
            const int first = warp * 32, end = first + 32 < n_threads ? first + 32 : n_threads;
            do {
                for (int i = first; i < end; i++)
                    if (fibers[(size_t)i].state == READY) {
                        ran = true;
                        current = i;
                        threadIdx = dim3((unsigned)i);
                        emulator_switch(&scheduler_sp, fibers[(size_t)i].sp);
                    }
            } while (release(first, end, IN_WARP));
        }
        for (int i = 0; i < n_threads; i++)
            live |= fibers[(size_t)i].state != DONE;
        if (!live)
            return;
        if (!release(0, n_threads, IN_BLOCK) && !ran)
            stop("threads wait for others that do not come");
    }
}

} // namespace

void emulator_launch(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &kernel)
{
    gridDim = grid;
    blockDim = block;
    n_threads = (int)block.x;
    body = &kernel;
    if (block.x == 0 || block.x > 1024 || block.y != 1 || block.z != 1 || shared_bytes > SHARED_BYTES || grid.x == 0 ||
        grid.y == 0 || grid.y > 65535 || grid.z != 1)
        stop("a launch that no device takes");
    if (fibers.size() < block.x)
        fibers.resize(block.x);
    for (unsigned y = 0; y < grid.y; y++)
        for (unsigned x = 0; x < grid.x; x++) {
            blockIdx = dim3(x, y);
            memset(shared_memory, 0xff, shared_bytes); /* NaN: what was not written shows */
            run_block();
        }
}

void __syncthreads(void) { yield(IN_BLOCK); }
void __syncwarp(void) { yield(IN_WARP); }
unsigned char *emulator_shared(void) { return shared_memory; }

const void *const *emulator_exchange(const void *mine, size_t size)
{
    fiber &f = fibers[(size_t)current];
    const int warp = current / 32;
    if (size > sizeof f.bytes[0])
        stop("too much for an exchange");
    const unsigned n = ++f.n_given;
    memcpy(f.bytes[n % 2], mine, size);
    yield(IN_WARP);
    for (int i = 0; i < 32; i++) {
        const int other = warp * 32 + i;
        const bool gave = other < n_threads && fibers[(size_t)other].n_given >= n;
        exchanged[warp][i] = gave ? fibers[(size_t)other].bytes[n % 2] : nullptr;
    }
    return exchanged[warp];
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

void copy16_async(uint32_t shared, const void *global, bool valid)
{
    if (shared % 16 || (valid && (uintptr_t)global % 16) || shared + 16 > SHARED_BYTES)
        stop("a copy that is not aligned");
    fibers[(size_t)current].open.push_back({shared, global, valid});
}

void copy_async_commit(void)
{
    fiber &f = fibers[(size_t)current];
    f.groups.push_back(std::move(f.open));
    f.open.clear();
}

void emulator_copy_wait(int n_groups)
{
    fiber &f = fibers[(size_t)current];
    while ((int)f.groups.size() > n_groups) {
        for (const copy_async &c : f.groups.front())
            if (c.valid)
                memcpy(shared_memory + c.to, c.from, 16);
            else
                memset(shared_memory + c.to, 0, 16);
        f.groups.erase(f.groups.begin());
    }
}

static void load_matrices(uint32_t (&r)[4], uint32_t shared, bool transposed)
{
    if (shared % 16 || shared + 16 > SHARED_BYTES)
        stop("a matrix row that is not aligned");
    const void *const *all = emulator_exchange(&shared, sizeof shared);
    const int lane = emulator_own_lane(), g = lane / 4, t = lane % 4;
    for (int m = 0; m < 4; m++) {
        uint16_t pair[2];
        for (int e = 0; e < 2; e++) {
            const int row = transposed ? 2 * t + e : g, col = transposed ? g : 2 * t + e;
            uint32_t address;
            memcpy(&address, all[m * 8 + row], sizeof address);
            memcpy(&pair[e], shared_memory + address + col * 2, 2);
        }
        memcpy(&r[m], pair, 4);
    }
}
void load_matrix4(uint32_t (&r)[4], uint32_t shared) { load_matrices(r, shared, false); }
void load_matrix4_transposed(uint32_t (&r)[4], uint32_t shared) { load_matrices(r, shared, true); }

void emulator_mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, float (*widen)(uint16_t))
{
    const uint32_t mine[6] = {a[0], a[1], a[2], a[3], b0, b1};
    const void *const *all = emulator_exchange(mine, sizeof mine);
    const int lane = emulator_own_lane(), g = lane / 4, t = lane % 4;
    for (int h = 0; h < 2; h++)
        for (int e = 0; e < 2; e++) {
            const int col = 2 * t + e;
            float sum = 0;
            for (int k = 0; k < 16; k++) {
                uint16_t x[12], y[12];
                memcpy(x, all[g * 4 + k % 8 / 2], sizeof x);
                memcpy(y, all[col * 4 + k % 8 / 2], sizeof y);
                sum += widen(x[(h + k / 8 * 2) * 2 + k % 2]) * widen(y[(4 + k / 8) * 2 + k % 2]);
            }
            c[h * 2 + e] += sum;
        }
}

/* ---- Hopper ------------------------------------------------------------------------------------------------------ */

namespace
{

/* What the 64 bits of a barrier in shared memory hold. */
struct barrier_bits {
    uint16_t expected, pending : 15, phase : 1;
    int32_t bytes;
};
static_assert(sizeof(barrier_bits) == 8);

/* Waits for others; everybody waiting for ever is noticed. */
template <typename F> void wait_until(F done)
{
    for (long i = 0; !done(); i++) {
        if (i > 5000000)
            stop("a barrier is waited for in vain");
        yield(READY);
    }
}

barrier_bits &bits_of(uint64_t *barrier) { return *(barrier_bits *)(void *)barrier; }

void complete(barrier_bits &b)
{
    if (b.pending == 0 && b.bytes == 0) {
        b.phase ^= 1;
        b.pending = b.expected & 0x7fff;
    }
}

struct named_barrier {
    int n, generation;
} named[16];

uint32_t swizzled(uint32_t address) { return address ^ (address >> 7 & 7) << 4; }

float element(uint32_t address, float (*widen)(uint16_t))
{
    uint16_t h;
    if (address + 2 > SHARED_BYTES)
        stop("a tile outside of shared memory");
    memcpy(&h, shared_memory + swizzled(address), 2);
    return widen(h);
}

} // namespace

void barrier_init(uint64_t *barrier, int n_arrivals)
{
    bits_of(barrier) = barrier_bits{(uint16_t)n_arrivals, (uint16_t)(n_arrivals & 0x7fff), 0, 0};
}
void barrier_arrive(uint64_t *barrier)
{
    barrier_bits &b = bits_of(barrier);
    if (b.pending == 0)
        stop("more arrivals than a barrier expects");
    b.pending = (b.pending - 1) & 0x7fff;
    complete(b);
}
void barrier_arrive_expect(uint64_t *barrier, uint32_t bytes)
{
    bits_of(barrier).bytes += (int32_t)bytes;
    barrier_arrive(barrier);
}
void barrier_wait(uint64_t *barrier, uint32_t parity)
{
    wait_until([&] { return bits_of(barrier).phase != parity; });
}
void named_barrier_arrive(int id, int n_threads)
{
    if (++named[id].n == n_threads) {
        named[id].n = 0;
        named[id].generation++;
    }
}
void named_barrier_sync(int id, int n_threads)
{
    const int generation = named[id].generation;
    named_barrier_arrive(id, n_threads);
    wait_until([&] { return named[id].generation != generation; });
}

/* Rows of 128 bytes, one after the other over all outer dimensions, swizzled by their address. */
void emulator_copy_box(uint32_t shared, const void *map, const int *at, int n_dims, uint64_t *barrier)
{
    const CUtensorMap &m = *(const CUtensorMap *)map;
    size_t n_rows = 1;
    if (m.n_dims != n_dims || shared % 1024 || m.box[0] != 64)
        stop("a box that the map does not fit");
    for (int d = 1; d < n_dims; d++)
        n_rows *= m.box[d];
    for (size_t row = 0; row < n_rows; row++) {
        const unsigned char *from = m.data;
        bool inside = true;
        size_t rest = row;
        for (int d = 1; d < n_dims; d++) {
            const long i = at[d] + (long)(rest % m.box[d]);
            rest /= m.box[d];
            inside &= i >= 0 && i < (long)m.extent[d];
            from += i * (long)m.stride[d];
        }
        for (size_t x = 0; x < 64; x++) {
            const long i = at[0] + (long)x;
            const uint32_t to = swizzled(shared + (uint32_t)(row * 128 + x * 2));
            if (to + 2 > SHARED_BYTES)
                stop("a box outside of shared memory");
            if (inside && i >= 0 && i < (long)m.extent[0])
                memcpy(shared_memory + to, from + 2 * i, 2);
            else
                memset(shared_memory + to, 0, 2);
        }
    }
    barrier_bits &b = bits_of(barrier);
    b.bytes -= (int32_t)(n_rows * 128);
    complete(b);
}

void emulator_wgmma(float *d, int n, const uint32_t *a, uint64_t a_tile, uint64_t b, int b_rows, int add,
                    float (*widen)(uint16_t))
{
    const int lane = emulator_own_lane(), g = lane / 4, t = lane % 4, warp = current / 32 % 4;
    const uint32_t b_at = (uint32_t)(b & 0x3fff) << 4, a_at = (uint32_t)(a_tile & 0x3fff) << 4;
    float rows[2][16];
    if (a) {
        const void *const *all = emulator_exchange(a, 16);
        for (int h = 0; h < 2; h++)
            for (int k = 0; k < 16; k++) {
                uint16_t x[8];
                memcpy(x, all[g * 4 + k % 8 / 2], sizeof x);
                rows[h][k] = widen(x[(h + k / 8 * 2) * 2 + k % 2]);
            }
    } else {
        for (int h = 0; h < 2; h++)
            for (int k = 0; k < 16; k++)
                rows[h][k] = element(a_at + (uint32_t)((warp * 16 + h * 8 + g) * 128 + k * 2), widen);
    }
    for (int j = 0; j < n / 8; j++)
        for (int e = 0; e < 2; e++) {
            const int col = j * 8 + 2 * t + e;
            float sums[2] = {0, 0};
            for (int k = 0; k < 16; k++) {
                const float y = element(b_at + (uint32_t)(b_rows ? k * 128 + col * 2 : col * 128 + k * 2), widen);
                sums[0] += rows[0][k] * y;
                sums[1] += rows[1][k] * y;
            }
            for (int h = 0; h < 2; h++) {
                float &to = d[j * 4 + h * 2 + e];
                to = add ? to + sums[h] : sums[h];
            }
        }
    __syncwarp();
}

uint16_t emulator_f16(float x) { return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT); }

/* ---- the runtime ------------------------------------------------------------------------------------------------- */

cudaError_t cudaGetDevice(int *id)
{
    *id = 0;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int id) { return id == 0 ? cudaSuccess : cudaErrorInvalidValue; }
cudaError_t cudaGetDeviceCount(int *n)
{
    *n = 1;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
    const int values[] = {getenv("EMULATED_HOPPER") ? 9 : 8, 0, 4, getenv("EMULATED_HOPPER") ? 232448 : 166912};
    *value = values[attribute];
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
    snprintf(p->name, sizeof p->name, "emulator");
    p->totalGlobalMem = (size_t)64 << 30;
    return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *at, const void *)
{
    *at = {cudaMemoryTypeDevice, 0};
    return cudaSuccess;
}
cudaError_t emulator_malloc(void **p, size_t bytes)
{
    *p = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*p)
        return cudaErrorMemoryAllocation;
    memset(*p, 0xff, bytes);
    return cudaSuccess;
}
cudaError_t cudaFree(void *p)
{
    free(p);
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void *p) { return cudaFree(p); }
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int, cudaStream_t)
{
    memcpy(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                              int, cudaStream_t)
{
    for (size_t i = 0; i < height; i++)
        memcpy((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t)
{
    memset(p, value, bytes);
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, int)
{
    *stream = nullptr;
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGetLastError(void) { return cudaSuccess; }
const char *cudaGetErrorName(cudaError_t) { return "cudaError"; }
const char *cudaGetErrorString(cudaError_t) { return "an error"; }

CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t, CUdeviceptr, unsigned long long)
{
    void *p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *at = (CUdeviceptr)p;
    return p == MAP_FAILED;
}
CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes) { return munmap((void *)at, bytes) != 0; }
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *, unsigned long long)
{
    *handle = bytes;
    return 0;
}
CUresult cuMemMap(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) { return 0; }
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes) { return mprotect((void *)at, bytes, PROT_NONE) != 0; }
CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *, size_t)
{
    return mprotect((void *)at, bytes, PROT_READ | PROT_WRITE) != 0;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle) { return 0; }
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int, cuuint32_t n_dims, void *data, const cuuint64_t *extent,
                                const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *, int, int, int, int)
{
    *map = CUtensorMap{};
    map->data = (const unsigned char *)data;
    map->n_dims = (int)n_dims;
    for (cuuint32_t d = 0; d < n_dims; d++) {
        map->extent[d] = extent[d];
        map->box[d] = box[d];
        map->stride[d] = d ? stride[d - 1] : 2;
        if (box[d] == 0 || box[d] > 256 || (d && stride[d - 1] % 16) || (uintptr_t)data % 16)
            return 1;
    }
    return 0;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned, int,
                                             cudaDriverEntryPointQueryResult *found)
{
    static const struct {
        const char *name;
        void *function;
    } all[] = {{"cuMemAddressReserve", (void *)cuMemAddressReserve}, {"cuMemAddressFree", (void *)cuMemAddressFree},
               {"cuMemCreate", (void *)cuMemCreate},                 {"cuMemMap", (void *)cuMemMap},
               {"cuMemUnmap", (void *)cuMemUnmap},                   {"cuMemSetAccess", (void *)cuMemSetAccess},
               {"cuMemRelease", (void *)cuMemRelease},
               {"cuTensorMapEncodeTiled", (void *)cuTensorMapEncodeTiled}};
    *found = cudaDriverEntryPointSymbolNotFound;
    for (const auto &entry : all)
        if (!strcmp(entry.name, name)) {
            *function = entry.function;
            *found = cudaDriverEntryPointSuccess;
        }
    return cudaSuccess;
}
