// A matrix that lies in memory one row after the other.
#pragma once

#include <cstddef>
#include <span>

namespace exactrank {

template <class T>
struct MatrixView {
    std::span<T> cells;
    std::size_t rows, width;

    T* row(std::size_t i) const { return cells.data() + i * width; }
};

}  // namespace exactrank
