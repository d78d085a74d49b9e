// Sweeps of thresholds.
#include "bindings/queries.hpp"
#include "cutoffs/threshold_sweep.hpp"

namespace exactrank {

namespace {

void make_sweep(ThresholdSweep* self, In<double> scores, In<std::uint8_t> useful, In<std::int64_t> indptr) {
    require_finite("scores", scores);
    require(scores.size() <= std::numeric_limits<std::uint32_t>::max(), "there are more documents than fit");
    require_length("useful", useful.size(), scores.size());
    const Boundaries queries(indptr, scores.size(), true);
    nb::gil_scoped_release release;
    new (self) ThresholdSweep(spanned(scores), spanned(useful), queries.all());
}

// By the name of the goal: F with beta^2 = a, the utility of a gain a and a cost b, recall, or whether `total` useful documents are kept.
Out<double> sums(const ThresholdSweep& self, const std::string& goal, double a, double b, In<double> total, In<double> weight) {
    require_length("total", total.size(), self.queries());
    require_length("weight", weight.size(), self.queries());
    std::vector<double> found;
    const auto sweep = [&](auto value) { found = self.sums(value, spanned(total), spanned(weight)); };
    {
        nb::gil_scoped_release release;
        if (goal == "F")
            sweep([a](const KeptCounts& c, double useful) {
                if (useful == 0) return c.kept == 0 ? 1.0 : 0.0;
                return (1 + a) * static_cast<double>(c.useful) / (static_cast<double>(c.kept) + a * useful);
            });
        else if (goal == "utility")
            sweep([a, b](const KeptCounts& c, double) { return a * static_cast<double>(c.useful) - b * static_cast<double>(c.kept - c.useful); });
        else if (goal == "recall")
            sweep([](const KeptCounts& c, double useful) { return useful == 0 ? 1.0 : static_cast<double>(c.useful) / useful; });
        else if (goal == "reached")
            sweep([](const KeptCounts& c, double needed) { return static_cast<double>(c.useful) >= needed ? 1.0 : 0.0; });
        else
            throw std::invalid_argument("unknown goal: " + goal);
    }
    return array(std::move(found));
}

}  // namespace

void bind_cutoffs(nb::module_& m) {
    nb::class_<ThresholdSweep>(m, "ThresholdSweep")
        .def("__init__", &make_sweep, "scores"_a, "useful"_a, "indptr"_a)
        .def("thresholds", [](const ThresholdSweep& self) { return array(std::vector<double>(self.thresholds())); })
        .def("sums", &sums, "goal"_a, "a"_a, "b"_a, "total"_a, "weight"_a);
}

}  // namespace exactrank
