// What the parts of the Python face share: arrays in and out.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

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
Out<T> array(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Out<T>(kept->data(), {kept->size()}, owner);
}

// An array that the kernel will fill: not zeroed first.
template <class T>
Out<T> empty(std::size_t size) {
    auto* cells = new T[size];
    const nb::capsule owner(cells, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return Out<T>(cells, {size}, owner);
}

inline void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

// Objectives and nets: bindings_objectives.cpp.
void bind_objectives(nb::module_& m);
// Listwise and smooth losses: bindings_listwise.cpp.
void bind_listwise(nb::module_& m);
// Structured losses: bindings_separation.cpp.
void bind_separation(nb::module_& m);
// Measures of many linear models at once: bindings_values.cpp.
void bind_values(nb::module_& m);
// Rays and line searches: bindings_lines.cpp.
void bind_lines(nb::module_& m);
// Sums of maxima of planes: bindings_planes.cpp.
void bind_planes(nb::module_& m);
// Steps of single features: bindings_boosting.cpp.
void bind_boosting(nb::module_& m);
// Regression trees: bindings_trees.cpp.
void bind_trees(nb::module_& m);

}  // namespace exactrank
