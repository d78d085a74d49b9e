// Blocks of queries by which sums of floating-point numbers are taken, as in exactrank/data/blocks.py: each ends with the query that
// brings it to 4,096 documents. Partitions begin where blocks do, so that their sums are those of the whole.
#pragma once

#include <cstddef>
#include <vector>

namespace exactrank {

// Where blocks begin, and the number of queries; documents(i) is the size of the i-th.
template <class Documents>
std::vector<std::size_t> sum_blocks(std::size_t queries, Documents&& documents) {
    constexpr std::size_t documents_per_block = 4096;
    std::vector<std::size_t> starts{0};
    for (std::size_t i = 0, held = 0; i < queries; ++i) {
        held += documents(i);
        if (held >= documents_per_block || i + 1 == queries) starts.push_back(i + 1), held = 0;
    }
    return starts;
}

}  // namespace exactrank
