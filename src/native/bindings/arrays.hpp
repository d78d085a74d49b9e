// What the parts of the Python face share: arrays in and out, and checks of those that come in. Kernels trust what they are given, so
// every length, index and boundary that a kernel follows is looked at here first: a wrong call is a ValueError.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/matrix.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace exactrank {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using InMatrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
template <class T>
using OutMatrix = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

template <class T>
Out<T> array(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Out<T>(kept->data(), {kept->size()}, owner);
}

// Room for what a kernel will fill: not zeroed first. The system is asked to give much of it in large pages, as NumPy does: it hands each page
// over when that is first written to, which for small ones takes a tenth of the time of lambdas.
template <class T>
T* room_for(std::size_t size) {
    auto* cells = new T[size];
#ifdef __linux__
    constexpr std::uintptr_t much = std::uintptr_t{1} << 22, page = 4096;
    const auto begin = (reinterpret_cast<std::uintptr_t>(cells) + page - 1) / page * page, end = reinterpret_cast<std::uintptr_t>(cells + size);
    if (size * sizeof(T) >= much) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
    return cells;
}

// An array that the kernel will fill.
template <class T>
Out<T> empty(std::size_t size) {
    auto* cells = room_for<T>(size);
    const nb::capsule owner(cells, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return Out<T>(cells, {size}, owner);
}

// The same with rows and columns.
template <class T>
OutMatrix<T> empty(std::size_t rows, std::size_t columns) {
    if (columns > 0 && rows > std::numeric_limits<std::size_t>::max() / sizeof(T) / columns) throw std::bad_alloc();
    auto* cells = room_for<T>(rows * columns);
    const nb::capsule owner(cells, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return {cells, {rows, columns}, owner};
}

inline void require(bool holds, const std::string& what) {
    if (!holds) throw std::invalid_argument(what);
}

inline void require_length(const char* name, std::size_t length, std::size_t expected) {
    if (length != expected)
        throw std::invalid_argument(std::string(name) + " has a length of " + std::to_string(length) + "; expected " + std::to_string(expected));
}

inline void require_below(const char* name, std::int64_t index, std::size_t count) {
    if (index < 0 || static_cast<std::size_t>(index) >= count)
        throw std::invalid_argument(std::string(name) + " holds " + std::to_string(index) + "; expected whole numbers from 0 and below " +
                                    std::to_string(count));
}

// Each of `items` things belongs to one of the parts between neighbors of `starts`; a part without any is wrong, unless it `may_be_empty`.
inline void require_starts(const char* name, const In<std::int64_t>& starts, std::size_t items, bool may_be_empty) {
    const std::size_t parts = starts.size() - 1;
    require(starts.size() >= 1 && starts(0) == 0, std::string(name) + " must begin with 0");
    for (std::size_t p = 0; p < parts; ++p)
        if (starts(p + 1) < starts(p) || (starts(p + 1) == starts(p) && !may_be_empty))
            throw std::invalid_argument(std::string(name) + " must rise, and goes from " + std::to_string(starts(p)) + " to " + std::to_string(starts(p + 1)));
    if (starts(parts) != static_cast<std::int64_t>(items))
        throw std::invalid_argument(std::string(name) + " must end at " + std::to_string(items) + ", and ends at " + std::to_string(starts(parts)));
}

template <class T>
void require_finite(const char* name, const In<T>& values) {
    bool finite = true;
    for (std::size_t i = 0; i < values.size(); ++i) finite &= values.data()[i] - values.data()[i] == 0;
    require(finite, std::string(name) + " must hold finite numbers");
}

template <class T>
std::span<const T> spanned(const In<T>& values) {
    return {values.data(), values.size()};
}
template <class T>
MatrixView<const T> viewed(const InMatrix<T>& values) {
    return {{values.data(), values.size()}, values.shape(0), values.shape(1)};
}
template <class T>
MatrixView<T> viewed(OutMatrix<T>& values) {
    return {{values.data(), values.size()}, values.shape(0), values.shape(1)};
}
template <class T>
std::span<T> spanned(Out<T>& values) {
    return {values.data(), values.size()};
}

template <class T>
std::vector<T> copied(const In<T>& values) {
    return {values.data(), values.data() + values.size()};
}

// Objectives and nets: bindings_objectives.cpp.
void bind_objectives(nb::module_& m);
// Listwise and smooth losses: bindings_listwise.cpp.
void bind_listwise(nb::module_& m);
// Structured losses: bindings_separation.cpp.
void bind_separation(nb::module_& m);
// Measures of many linear models at once: bindings_values.cpp.
void bind_values(nb::module_& m);
void bind_unjudged(nb::module_& m);
// Rays and line searches: bindings_lines.cpp.
void bind_lines(nb::module_& m);
// Step functions: bindings_steps.cpp.
void bind_steps(nb::module_& m);
// What is known along a line: bindings_outlines.cpp.
void bind_outlines(nb::module_& m);
// Sums of maxima of planes: bindings_planes.cpp.
void bind_planes(nb::module_& m);
// Steps of single features: bindings_boosting.cpp.
void bind_boosting(nb::module_& m);
// Regression trees: bindings_trees.cpp.
void bind_trees(nb::module_& m);
// Growing regression trees: bindings_forest.cpp.
void bind_forest(nb::module_& m);
// LETOR text: bindings_letor.cpp.
void bind_letor(nb::module_& m);
// Matrices of features: bindings_matrices.cpp.
void bind_matrices(nb::module_& m);
// Thresholds of what is kept: bindings_cutoffs.cpp.
void bind_cutoffs(nb::module_& m);
// Linear algebra and elementary functions: bindings_numerics.cpp.
void bind_numerics(nb::module_& m);

}  // namespace exactrank
