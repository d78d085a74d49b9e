// The 64-bit hash XXH3 (Collet 2019) of at least nine bytes, without a seed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace exactrank::xxh3 {

using Word = std::uint64_t;

// The published secret, as words of eight bytes, the lowest first.
inline constexpr Word secret[24] = {
    0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072, 0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82,
    0x8e2443f7744608b8, 0x4c263a81e69035e0, 0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938,
    0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8, 0xc3ebd33483acc5ea, 0xeb6313faffa081c5,
    0x49daf0b751dd0d17, 0x9e68d429265516d3, 0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af,
};
inline constexpr Word prime32[3] = {0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D};
inline constexpr Word prime64[5] = {0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5};

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");
inline Word word(const unsigned char* at) {
    Word found;
    std::memcpy(&found, at, 8);
    return found;
}
inline Word key(std::size_t at) { return word(reinterpret_cast<const unsigned char*>(secret) + at); }

inline Word folded(Word a, Word b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<Word>(product) ^ static_cast<Word>(product >> 64);
}
inline Word avalanche(Word h) {
    h = (h ^ h >> 37) * 0x165667919E3779F9;
    return h ^ h >> 32;
}
inline Word mixed(const unsigned char* at, std::size_t k) { return folded(word(at) ^ key(k), word(at + 8) ^ key(k + 8)); }

// 9 to 240 bytes.
inline Word short_hash(const unsigned char* in, std::size_t n) {
    if (n <= 16) {
        const Word low = word(in) ^ (key(24) ^ key(32)), high = word(in + n - 8) ^ (key(40) ^ key(48));
        return avalanche(n + __builtin_bswap64(low) + high + folded(low, high));
    }
    Word sum = n * prime64[0];
    if (n <= 128) {
        for (std::size_t i = (n - 1) / 32 + 1; i-- > 0;) sum += mixed(in + 16 * i, 32 * i) + mixed(in + n - 16 * (i + 1), 32 * i + 16);
        return avalanche(sum);
    }
    for (std::size_t i = 0; i < 8; ++i) sum += mixed(in + 16 * i, 16 * i);
    sum = avalanche(sum);
    for (std::size_t i = 8; i < n / 16; ++i) sum += mixed(in + 16 * i, 16 * (i - 8) + 3);
    return avalanche(sum + mixed(in + n - 16, 136 - 17));
}

inline void add_stripe(Word (&sums)[8], const unsigned char* in, std::size_t k) {
    for (std::size_t lane = 0; lane < 8; ++lane) {
        const Word value = word(in + 8 * lane), keyed = value ^ key(k + 8 * lane);
        sums[lane ^ 1] += value;
        sums[lane] += (keyed & 0xffffffff) * (keyed >> 32);
    }
}

// More than 240 bytes, in stripes of 64.
inline Word long_hash(const unsigned char* in, std::size_t n) {
    constexpr std::size_t stripe = 64, per_block = (sizeof secret - stripe) / 8;
    Word sums[8] = {prime32[2], prime64[0], prime64[1], prime64[2], prime64[3], prime32[1], prime64[4], prime32[0]};
    for (std::size_t s = 0; s < (n - 1) / stripe; ++s) {
        add_stripe(sums, in + stripe * s, 8 * (s % per_block));
        if (s % per_block != per_block - 1) continue;
        for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] = (sums[lane] ^ sums[lane] >> 47 ^ key(sizeof secret - stripe + 8 * lane)) * prime32[0];
    }
    add_stripe(sums, in + n - stripe, sizeof secret - stripe - 7);
    Word found = n * prime64[0];
    for (std::size_t i = 0; i < 4; ++i) found += folded(sums[2 * i] ^ key(11 + 16 * i), sums[2 * i + 1] ^ key(11 + 16 * i + 8));
    return avalanche(found);
}

inline Word hash(const unsigned char* in, std::size_t n) { return n <= 240 ? short_hash(in, n) : long_hash(in, n); }

}  // namespace exactrank::xxh3
