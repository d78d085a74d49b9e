// Linear algebra and elementary functions, for what Python decides: see numerics.py.
#include "bindings/arrays.hpp"
#include "support/elementary.hpp"
#include "support/linear_algebra.hpp"

namespace exactrank {

namespace {

using Function = void (*)(const double* x, std::size_t n, double* out);

// out_i = f(x_i), eight at a time.
template <class F>
XR_INLINE void apply(F&& f, const double* x, std::size_t n, double* out) {
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const Doubles y = f(load_eight(x + i));
        std::memcpy(out + i, &y, sizeof y);
    }
    for (; i < n; ++i) out[i] = f(x[i]);
}
XR_CLONES void take_exp(const double* x, std::size_t n, double* out) {
    apply([](auto v) __attribute__((always_inline)) { return portable::exp(v); }, x, n, out);
}
XR_CLONES void take_exp2(const double* x, std::size_t n, double* out) {
    apply([](auto v) __attribute__((always_inline)) { return portable::exp2(v); }, x, n, out);
}
XR_CLONES void take_log(const double* x, std::size_t n, double* out) {
    apply([](auto v) __attribute__((always_inline)) { return portable::log(v); }, x, n, out);
}
XR_CLONES void take_log1p(const double* x, std::size_t n, double* out) {
    apply([](auto v) __attribute__((always_inline)) { return portable::log1p(v); }, x, n, out);
}
XR_CLONES void take_log2(const double* x, std::size_t n, double* out) {
    apply([](auto v) __attribute__((always_inline)) { return portable::log2(v); }, x, n, out);
}
XR_CLONES void take_tanh(const double* x, std::size_t n, double* out) {
    apply([](auto v) __attribute__((always_inline)) { return portable::tanh(v); }, x, n, out);
}
XR_CLONES void take_central_quantile(const double* p, std::size_t n, double* out) {
    apply([](auto v) __attribute__((always_inline)) { return portable::central_quantile(v); }, p, n, out);
}
void take_normal_quantile(const double* p, std::size_t n, double* out) {
    take_central_quantile(p, n, out);
    for (std::size_t i = 0; i < n; ++i)
        if (!(std::abs(p[i] - 0.5) <= portable::central)) out[i] = portable::tail_quantile(p[i]);
}

void bind_function(nb::module_& m, const char* name, Function function) {
    m.def(
        name,
        [function](In<double> x) {
            Out<double> out = empty<double>(x.size());
            nb::gil_scoped_release release;
            function(x.data(), x.size(), out.data());
            return out;
        },
        "x"_a);
}

OutMatrix<double> copied(const InMatrix<double>& x) {
    OutMatrix<double> out = empty<double>(x.shape(0), x.shape(1));
    std::copy_n(x.data(), x.size(), out.data());
    return out;
}

void require_square(const InMatrix<double>& a) { require_length("each row of a square matrix", a.shape(1), a.shape(0)); }

template <class F>
void bind_substitution(nb::module_& m, const char* name, F&& solve) {
    m.def(
        name,
        [solve](InMatrix<double> lower, InMatrix<double> x) {
            require_square(lower);
            require_length("x", x.shape(0), lower.shape(0));
            OutMatrix<double> out = copied(x);
            nb::gil_scoped_release release;
            solve(viewed(lower), viewed(out));
            return out;
        },
        "lower"_a, "x"_a);
}

}  // namespace

void bind_numerics(nb::module_& m) {
    bind_function(m, "exp", take_exp);
    bind_function(m, "exp2", take_exp2);
    bind_function(m, "log", take_log);
    bind_function(m, "log1p", take_log1p);
    bind_function(m, "log2", take_log2);
    bind_function(m, "tanh", take_tanh);
    bind_function(m, "normal_quantile", take_normal_quantile);
    m.def(
        "power",
        [](In<double> base, In<double> exponent) {
            require_length("exponent", exponent.size(), base.size());
            Out<double> out = empty<double>(base.size());
            for (std::size_t i = 0; i < base.size(); ++i) out.data()[i] = portable::pow(base.data()[i], exponent.data()[i]);
            return out;
        },
        "base"_a, "exponent"_a);
    m.def(
        "dot",
        [](In<double> x, In<double> y) {
            require_length("y", y.size(), x.size());
            return dot(x.data(), y.data(), x.size());
        },
        "x"_a, "y"_a);
    m.def(
        "matrix_vector",
        [](InMatrix<double> a, In<double> v) {
            require_length("v", v.size(), a.shape(1));
            Out<double> out = empty<double>(a.shape(0));
            nb::gil_scoped_release release;
            matrix_vector(viewed(a), spanned(v), spanned(out));
            return out;
        },
        "a"_a, "v"_a);
    m.def(
        "product",
        [](InMatrix<double> a, InMatrix<double> b) {
            require_length("b", b.shape(0), a.shape(1));
            OutMatrix<double> out = empty<double>(a.shape(0), b.shape(1));
            nb::gil_scoped_release release;
            product(viewed(a), viewed(b), viewed(out));
            return out;
        },
        "a"_a, "b"_a);
    m.def(
        "gram",
        [](InMatrix<double> x) {
            OutMatrix<double> out = empty<double>(x.shape(1), x.shape(1));
            nb::gil_scoped_release release;
            gram(viewed(x), viewed(out));
            return out;
        },
        "x"_a);
    m.def(
        "cholesky",
        [](InMatrix<double> a) {
            require_square(a);
            OutMatrix<double> out = copied(a);
            nb::gil_scoped_release release;
            cholesky(viewed(out));
            return out;
        },
        "a"_a);
    bind_substitution(m, "solve_lower", solve_lower);
    bind_substitution(m, "solve_upper", solve_upper);
    m.def(
        "eigh",
        [](InMatrix<double> a) {
            require_square(a);
            OutMatrix<double> scratch = copied(a), vectors = empty<double>(a.shape(0), a.shape(1));
            std::vector<double> values;
            {
                nb::gil_scoped_release release;
                values = std::move(Eigen(viewed(scratch), viewed(vectors)).values());
            }
            return nb::make_tuple(array(std::move(values)), vectors);
        },
        "a"_a);
}

}  // namespace exactrank
