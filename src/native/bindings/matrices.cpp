// Matrices of features: what is in their columns, their order, products with vectors, and polynomials of them.
#include "bindings/arrays.hpp"
#include "data/columns.hpp"
#include "data/cubic.hpp"
#include "data/json_matrix.hpp"
#include "data/rounding.hpp"
#include "models/linear.hpp"

namespace exactrank {

namespace {

void require_permutation(const In<std::int64_t>& order, std::size_t rows) {
    require_length("order", order.size(), rows);
    std::vector<bool> met(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        require_below("order", order.data()[i], rows);
        require(!met[order.data()[i]], "order must not name a row twice");
        met[order.data()[i]] = true;
    }
}

}  // namespace

void bind_matrices(nb::module_& m) {
    m.def(
        "summarize_columns",
        [](InMatrix<float> x, int threads) {
            ColumnSummary summary;
            {
                nb::gil_scoped_release release;
                summary = summarize_columns(viewed(x), threads);
            }
            return nb::make_tuple(array(std::move(summary.least)), array(std::move(summary.most)), array(std::move(summary.nans)), summary.first_infinite);
        },
        "x"_a, "threads"_a);
    m.def(
        "lost_by_rounding",
        [](InMatrix<double> x, In<std::int64_t> indptr, bool decimals, int threads) {
            require_starts("indptr", indptr, x.shape(0), false);
            std::vector<std::int64_t> counts;
            {
                nb::gil_scoped_release release;
                counts = lost_by_rounding(viewed(x), spanned(indptr), decimals, threads);
            }
            return array(std::move(counts));
        },
        "x"_a, "indptr"_a, "decimals"_a, "threads"_a);
    m.def(
        "json_matrix",
        [](const nb::bytes& text, std::size_t start) -> nb::object {
            require(start <= text.size(), "start lies beyond the text");
            JsonMatrix found;
            {
                nb::gil_scoped_release release;
                found = read_json_matrix(text.c_str() + start);
            }
            if (found.end == nullptr) return nb::none();
            const std::size_t end = static_cast<std::size_t>(found.end - text.c_str());
            return nb::make_tuple(array(std::move(found.cells)), found.width, end);
        },
        "text"_a, "start"_a);
    m.def(
        "permute_rows",
        [](nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu> x, In<std::int64_t> order) {
            require_permutation(order, x.shape(0));
            nb::gil_scoped_release release;
            permute_rows({{x.data(), x.size()}, x.shape(0), x.shape(1)}, spanned(order));
        },
        "x"_a, "order"_a);
    m.def(
        "transpose",
        [](InMatrix<float> x, nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu> columns, int threads) {
            require_length("columns", columns.shape(0), x.shape(1));
            require_length("each of columns", columns.shape(1), x.shape(0));
            nb::gil_scoped_release release;
            transpose(viewed(x), threads, {columns.data(), columns.size()});
        },
        "x"_a, "columns"_a, "threads"_a);
    m.def(
        "content_order",
        [](InMatrix<float> x, In<std::int32_t> units, std::optional<In<float>> stands, const std::vector<In<double>>& numbers, In<std::int64_t> indptr,
           nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> out, int threads) {
            const std::size_t rows = x.shape(0);
            require_starts("indptr", indptr, rows, false);
            require_length("units", units.size(), x.shape(1));
            require_length("out", out.size(), rows);
            require(x.shape(1) > 0 && !numbers.empty(), "there must be features and numbers");
            if (stands) require_length("stands", stands->size(), x.shape(1));
            Content content{viewed(x), spanned(units), stands ? spanned(*stands) : std::span<const float>(), {}};
            for (const In<double>& each : numbers) {
                require_length("numbers", each.size(), rows);
                content.numbers.push_back(spanned(each));
            }
            nb::gil_scoped_release release;
            content_order(content, spanned(indptr), threads, {out.data(), rows});
        },
        "x"_a, "units"_a, "stands"_a.none(), "numbers"_a, "indptr"_a, "out"_a, "threads"_a);
    m.def(
        "linear_scores",
        [](InMatrix<float> x, In<double> weights, int threads) {
            require_length("weights", weights.size(), x.shape(1));
            Out<double> out = empty<double>(x.shape(0));
            nb::gil_scoped_release release;
            linear_scores(viewed(x), spanned(weights), threads, spanned(out));
            return out;
        },
        "x"_a, "weights"_a, "threads"_a);
    m.def(
        "pulled_back",
        [](InMatrix<float> x, In<double> slope, int threads) {
            require_length("slope", slope.size(), x.shape(0));
            std::vector<double> gradient;
            {
                nb::gil_scoped_release release;
                gradient = pulled_back(viewed(x), spanned(slope), threads);
            }
            return array(std::move(gradient));
        },
        "x"_a, "slope"_a, "threads"_a);
    m.def("cubic_terms", &cubic_terms, "dimension"_a);
    m.def(
        "cubic",
        [](InMatrix<float> points, In<double> coefficients, int threads) {
            require_length("coefficients", coefficients.size(), cubic_terms(points.shape(1)));
            Out<double> out = empty<double>(points.shape(0));
            nb::gil_scoped_release release;
            cubic(viewed(points), spanned(coefficients), threads, spanned(out));
            return out;
        },
        "points"_a, "coefficients"_a, "threads"_a);
}

}  // namespace exactrank
