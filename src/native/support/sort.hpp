// Sorting 32-bit keys that all differ, largest first, by a bitonic network (Batcher 1968) on vectors of eight.
//
// A network makes the same comparisons whatever the data, so there is nothing to mispredict.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>

#include "support/dispatch.hpp"

namespace exactrank::network {

// Eight lanes: the widest that compilers handle well on every instruction set.
constexpr std::size_t lanes = 8;
using Keys = std::int32_t __attribute__((vector_size(4 * lanes), may_alias));

// One of them as it lies in memory; a type that templates may name.
struct Vector {
    Keys keys;
};

XR_INLINE void exchange(Keys& upper, Keys& lower) {
    const Keys larger = upper > lower ? upper : lower;
    lower = upper > lower ? lower : upper;
    upper = larger;
}

// What the lanes become: each macro lists, for lane 0 to 7, the lane (or, from 8 on, the lane of a second vector).
#define XR_LANES(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
// Compare-exchange inside a vector between lanes that `partner` pairs; the lower-numbered lane keeps the larger key.
template <int apart>
XR_INLINE void within(Keys& v) {
    Keys larger = v, smaller;
    if constexpr (apart == 1) smaller = XR_LANES(v, v, 1, 0, 3, 2, 5, 4, 7, 6);
    if constexpr (apart == 2) smaller = XR_LANES(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
    if constexpr (apart == 4) smaller = XR_LANES(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    // Mirrored pairs, named by minus the size of the group they span.
    if constexpr (apart == -4) smaller = XR_LANES(v, v, 3, 2, 1, 0, 7, 6, 5, 4);
    if constexpr (apart == -8) smaller = XR_LANES(v, v, 7, 6, 5, 4, 3, 2, 1, 0);
    exchange(larger, smaller);
    constexpr int half = apart > 0 ? apart : -apart / 2;
    if constexpr (half == 1) v = XR_LANES(larger, smaller, 0, 9, 2, 11, 4, 13, 6, 15);
    if constexpr (half == 2) v = XR_LANES(larger, smaller, 0, 1, 10, 11, 4, 5, 14, 15);
    if constexpr (half == 4) v = XR_LANES(larger, smaller, 0, 1, 2, 3, 12, 13, 14, 15);
}
XR_INLINE Keys reversed(const Keys& v) { return XR_LANES(v, v, 7, 6, 5, 4, 3, 2, 1, 0); }
#undef XR_LANES

// Sorts `blocks` (a power of two) vectors as one descending list.
XR_INLINE void sort_descending(Vector* v, std::size_t blocks) {
    for (std::size_t i = 0; i < blocks; ++i) {
        Keys x = v[i].keys;
        within<1>(x);
        within<-4>(x), within<1>(x);
        within<-8>(x), within<2>(x), within<1>(x);
        v[i].keys = x;
    }
    for (std::size_t size = 2; size <= blocks; size *= 2) {
        for (std::size_t base = 0; base < blocks; base += size) {
            for (std::size_t i = base, j = base + size - 1; i < j; ++i, --j) {
                Keys flipped = reversed(v[j].keys);
                exchange(v[i].keys, flipped);
                v[j].keys = reversed(flipped);
            }
            for (std::size_t apart = size / 4; apart > 0; apart /= 2)
                for (std::size_t group = base; group < base + size; group += 2 * apart)
                    for (std::size_t i = group; i < group + apart; ++i) exchange(v[i].keys, v[i + apart].keys);
            for (std::size_t i = base; i < base + size; ++i) {
                Keys x = v[i].keys;
                within<4>(x), within<2>(x), within<1>(x);
                v[i].keys = x;
            }
        }
    }
}

// The same for a few keys that all differ: each goes to the place of as many keys as are larger, which waits for no other comparison.
template <std::size_t blocks>
XR_INLINE void place_descending(Vector* v, std::size_t n) {
    std::int32_t sorted[blocks * lanes + 1], places[blocks * lanes];
    const auto* keys = reinterpret_cast<const std::int32_t*>(v);
    Keys larger[blocks] = {};
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t b = 0; b < blocks; ++b) larger[b] -= Keys{} + keys[i] > v[b].keys;
    std::memcpy(places, larger, sizeof places);
    for (std::size_t i = 0; i < n; ++i) sorted[places[i]] = keys[i];
    std::memcpy(v, sorted, n * sizeof *sorted);
}

// Room for n keys, filled up with the lowest key to a power of two of vectors.
class Buffer {
public:
    bool distinct_scores = false;  // of the query that was ranked last, as far as its keys show

    std::int32_t* keys(std::size_t n) {
        blocks_ = std::bit_ceil(std::max<std::size_t>(1, (n + lanes - 1) / lanes));
        if (blocks_ > room_) {
            vectors_ = std::make_unique<Vector[]>(blocks_);
            room_ = blocks_;
        }
        filled_ = n;
        auto* keys = reinterpret_cast<std::int32_t*>(vectors_.get());
        std::fill(keys + n, keys + lanes * blocks_, std::numeric_limits<std::int32_t>::min());
        return keys;
    }
    XR_INLINE void sort_descending() {
        if (wide_vectors()) {
            Vector* const v = vectors_.get();
            switch (blocks_) {
                case 1: return place_descending<1>(v, filled_);
                case 2: return place_descending<2>(v, filled_);
                case 4: return filled_ <= 3 * lanes ? place_descending<3>(v, filled_) : place_descending<4>(v, filled_);
                default: return network::sort_descending(v, blocks_);
            }
        }
        auto* keys = reinterpret_cast<std::int32_t*>(vectors_.get());
        std::sort(keys, keys + filled_, std::greater<>());
    }

private:
    // Without 256-bit integer vectors the shuffles of a network cost more than its comparisons save.
    static bool wide_vectors() {
#if defined(__x86_64__)
        static const bool found = __builtin_cpu_supports("avx2");
        return found;
#else
        return false;
#endif
    }
    std::unique_ptr<Vector[]> vectors_;
    std::size_t room_ = 0, blocks_ = 0, filled_ = 0;
};

}  // namespace exactrank::network
