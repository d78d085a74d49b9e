// An upper bound of sum_r u_r d_r over all scores in a simplex, whose corners are given (see fuse/certificate.py).
//
// A document stands above another everywhere if it does so at every corner; its best rank follows. Those as useful as each
// level take, in order of best rank, the earliest ranks that no two share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "support/dispatch.hpp"
#include "support/threads.hpp"

namespace exactrank {

struct Corners {
    std::span<const double> score;  // corners x documents
    std::size_t corners;
    std::span<const std::int64_t> indptr;
    std::span<const double> useful;    // one per document
    std::span<const double> discount;  // falling, and nothing beyond its end
};

// How many of n documents have a larger score than document i at every corner.
static XR_CLONES std::int64_t certainly_above(const double* score, std::size_t corners, std::size_t stride, std::int64_t n, std::int64_t i,
                                              std::uint8_t* above) {
    std::fill(above, above + n, std::uint8_t{1});
    for (std::size_t c = 0; c < corners; ++c) {
        const double* s = score + c * stride;
        const double own = s[i];
        for (std::int64_t j = 0; j < n; ++j) above[j] &= static_cast<std::uint8_t>(s[j] > own);
    }
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < n; ++j) count += above[j];
    return count;
}

inline void optimistic(const Corners& data, int threads, std::span<double> bound) {
    struct Wanted {
        std::int64_t above;
        double useful;
    };
    struct Room {
        std::vector<Wanted> wanted;
        std::vector<double> levels;
        std::vector<std::uint8_t> above;
    };
    const auto ranks = static_cast<std::int64_t>(data.discount.size());
    for_each_query<Room>(data.indptr, threads, [&](Room& room, std::size_t q) {
        const std::int64_t begin = data.indptr[q], n = data.indptr[q + 1] - begin;
        room.wanted.clear();
        room.levels.clear();
        room.above.resize(n);
        Breath breath;
        for (std::int64_t i = 0; i < n; ++i) {
            const double useful = data.useful[begin + i];
            if (!(useful > 0)) continue;
            breath.after(data.corners * static_cast<std::size_t>(n));
            room.wanted.push_back({certainly_above(data.score.data() + begin, data.corners, data.useful.size(), n, i, room.above.data()), useful});
            room.levels.push_back(useful);
        }
        std::sort(room.wanted.begin(), room.wanted.end(), [](const Wanted& a, const Wanted& b) { return a.above < b.above; });
        std::sort(room.levels.begin(), room.levels.end());
        room.levels.erase(std::unique(room.levels.begin(), room.levels.end()), room.levels.end());
        double total = 0, below = 0;
        for (const double level : room.levels) {
            double sum = 0;
            std::int64_t rank = -1;
            for (const Wanted& each : room.wanted) {
                if (each.useful < level) continue;
                rank = std::max(each.above, rank + 1);
                if (rank < ranks) sum += data.discount[rank];
            }
            total += (level - below) * sum;
            below = level;
        }
        bound[q] = total;
    });
}

}  // namespace exactrank
