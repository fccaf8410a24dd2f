/* Intel SDM vol. 1 §13.3, 14.3, 15.2: a feature may be used when CPUID names it and XCR0 says that the system saves its
 * registers. AMX would follow here: tile state is XCR0 bits 17 and 18, and Linux wants it asked for
 * (ARCH_REQ_XCOMP_PERM). */
#include "kernel/x86/cpuid.h"

#include <cpuid.h>
#include <stdbool.h>

#define LEAF1_ECX_FMA (1u << 12)
#define LEAF1_ECX_OSXSAVE (1u << 27)
#define LEAF1_ECX_AVX (1u << 28)
#define LEAF1_ECX_F16C (1u << 29)
#define LEAF7_EBX_AVX2 (1u << 5)
#define LEAF7_EBX_AVX512F (1u << 16)
#define LEAF7_EBX_AVX512DQ (1u << 17)
#define LEAF7_EBX_AVX512BW (1u << 30)
#define LEAF7_EBX_AVX512VL (1u << 31)
#define XCR0_YMM 0x06u /* xmm and ymm                             */
#define XCR0_ZMM 0xe6u /* and mask registers and both parts of zmm */

static bool has(unsigned word, unsigned bits) { return (word & bits) == bits; }

static unsigned xcr0(void)
{
    unsigned eax, edx;
    __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
    return eax;
}

enum x86_level x86_level(void)
{
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) ||
        !has(ecx, LEAF1_ECX_FMA | LEAF1_ECX_OSXSAVE | LEAF1_ECX_AVX | LEAF1_ECX_F16C))
        return X86_BASE;
    unsigned saved = xcr0();
    if (!has(saved, XCR0_YMM) || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !has(ebx, LEAF7_EBX_AVX2))
        return X86_BASE;
    if (!has(saved, XCR0_ZMM) ||
        !has(ebx, LEAF7_EBX_AVX512F | LEAF7_EBX_AVX512DQ | LEAF7_EBX_AVX512BW | LEAF7_EBX_AVX512VL))
        return X86_AVX2;
    return X86_AVX512;
}
