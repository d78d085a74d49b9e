// Rows to LETOR text. Numbers are the shortest that read back to the same bits; zeros are left out, but for the last
// feature, which tells every reader how many there are.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "support/threads.hpp"

namespace exactrank {

struct LetorTable {
    const float* x;
    const double* offset;  // one per feature, to be added in double; may be null
    const double* y;
    const std::int64_t* query;  // number of each row's query
    std::size_t rows, width;
    const std::vector<std::string>& query_names;
    const char* comments;  // may be null
    const std::int64_t *comment_start, *comment_stop;
};

template <class Number>
void append_number(std::string& text, Number value) {
    char digits[32];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

inline std::string letor_text(const LetorTable& table, int threads) {
    constexpr std::size_t rows_per_block = 1024;
    std::vector<std::string> blocks((table.rows + rows_per_block - 1) / rows_per_block);
    for_each_block(table.rows, rows_per_block, threads, [&](std::size_t first, std::size_t last) {
        std::string& text = blocks[first / rows_per_block];
        for (std::size_t i = first; i < last; ++i) {
            append_number(text, table.y[i]);
            text.append(" qid:").append(table.query_names[table.query[i]]);
            const float* row = table.x + i * table.width;
            for (std::size_t j = 0; j < table.width; ++j) {
                const bool shifted = table.offset && table.offset[j] != 0;
                const double value = shifted ? static_cast<double>(row[j]) + table.offset[j] : 0.0;
                if ((shifted ? value == 0 : row[j] == 0) && j + 1 < table.width) continue;
                text.push_back(' ');
                append_number(text, j + 1);
                text.push_back(':');
                shifted ? append_number(text, value) : append_number(text, row[j] + 0.0f);
            }
            if (table.comments && table.comment_stop[i] > table.comment_start[i])
                text.append(" # ").append(table.comments + table.comment_start[i], table.comment_stop[i] - table.comment_start[i]);
            text.push_back('\n');
        }
    });
    std::string all;
    for (std::string& block : blocks) all += std::exchange(block, {});
    return all;
}

}  // namespace exactrank
