// One binary for every x86-64: XR_CLONES compiles a function for AVX-512, AVX2 and SSE4.2 as well as the base
// instruction set, and the loader picks one. Elsewhere there is one version, and with EXACTRANK_NO_CLONES, as under sanitizers
// (whose runtime is not yet up when the loader asks).
//
// Nothing may be thrown out of such a function: GCC takes for granted that one with several versions throws nothing, so the program would
// end. What needs memory is done before; what may last asks a QuietBreath (interrupt.hpp).
#pragma once

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && !defined(EXACTRANK_NO_CLONES)
#define XR_CLONES __attribute__((unused, target_clones("arch=x86-64-v4", "arch=x86-64-v3", "arch=x86-64-v2", "default")))
#define XR_VERSIONS  // a function may be defined several times, for several instruction sets
#else
#define XR_CLONES __attribute__((unused))
#endif
#define XR_INLINE inline __attribute__((always_inline))
