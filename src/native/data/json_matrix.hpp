// A matrix as JSON writes it, [[1, 2.5, null], ...], straight into doubles: rows of one length, at least one row and one column.
#pragma once

#include <cstring>
#include <limits>
#include <vector>

#include "data/number.hpp"

namespace exactrank {

struct JsonMatrix {
    std::vector<double> cells;  // null is NaN
    std::size_t rows = 0, width = 0;
    const char* end = nullptr;  // of the matrix in the text; null where there is none, or one that is not as it must be
};

XR_INLINE const char* skip_blanks(const char* p) {
    while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r') ++p;
    return p;
}

// Reads "[1, null]" at p and returns its end, or null.
inline const char* read_json_row(const char* p, std::vector<double>& cells) {
    if (*p != '[') return nullptr;
    do {
        p = skip_blanks(p + 1);
        double value = std::numeric_limits<double>::quiet_NaN();
        p = *p == 'n' && std::strncmp(p, "null", 4) == 0 ? p + 4 : read_number<true>(p, value);
        if (p == nullptr) return nullptr;
        cells.push_back(value);
        p = skip_blanks(p);
    } while (*p == ',');
    return *p == ']' ? p + 1 : nullptr;
}

// Reads the matrix at p, in a text that ends with a zero.
inline JsonMatrix read_json_matrix(const char* p) {
    JsonMatrix found;
    if (*p != '[') return found;
    do {
        const std::size_t before = found.cells.size();
        p = read_json_row(skip_blanks(p + 1), found.cells);
        if (p == nullptr || (found.rows > 0 && found.cells.size() - before != found.width)) return found;
        found.width = found.cells.size() - before;
        if (found.rows++ == 0) found.cells.reserve(found.width * 128);
        p = skip_blanks(p);
    } while (*p == ',');
    if (*p == ']') found.end = p + 1;
    return found;
}

}  // namespace exactrank
