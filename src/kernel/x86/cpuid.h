/* What this processor and the system's saving of its registers allow. */
#ifndef FATHOM_KERNEL_X86_CPUID_H
#define FATHOM_KERNEL_X86_CPUID_H

enum x86_level {
    X86_BASE,
    X86_AVX2,   /* AVX2, FMA, F16C                              */
    X86_AVX512, /* and AVX-512 F, BW, VL, DQ                    */
};

enum x86_level x86_level(void);

#endif
