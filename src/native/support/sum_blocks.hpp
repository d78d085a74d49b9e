// Blocks of queries by which sums of floating-point numbers are taken, as in exactrank/data/blocks.py: each ends with the query that
// brings it to 4,096 documents, or with the last query of a wide block, where partitions begin and end. So the sums of partitions are those
// of the whole, also of a batch of queries, which are given by wide block.
#pragma once

#include <cstddef>
#include <vector>

namespace exactrank {

constexpr std::size_t documents_per_block = 4096;

// Where blocks begin, and the number of queries; documents(i) is the size of the i-th, and wide(i) its wide block.
template <class Documents, class Wide>
std::vector<std::size_t> sum_blocks(std::size_t queries, Documents&& documents, Wide&& wide) {
    std::vector<std::size_t> starts{0};
    for (std::size_t i = 0, held = 0; i < queries; ++i) {
        held += documents(i);
        if (held >= documents_per_block || i + 1 == queries || wide(i + 1) != wide(i)) starts.push_back(i + 1), held = 0;
    }
    return starts;
}

// The same of queries that are all there are, whose wide blocks end where blocks do.
template <class Documents>
std::vector<std::size_t> sum_blocks(std::size_t queries, Documents&& documents) {
    return sum_blocks(queries, documents, [](std::size_t) { return 0; });
}

}  // namespace exactrank
