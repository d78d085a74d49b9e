// Step functions of measures of any kind along rays of scores.
#include "bindings/queries.hpp"
#include "line_search/profile.hpp"

namespace exactrank {

namespace {

std::span<const double> checked_slopes(const StepSearch& self, const In<double>& slopes) {
    require_length("slopes", slopes.size(), self.documents());
    require_finite("slopes", slopes);
    return spanned(slopes);
}

std::int64_t ranked(StepSearch& self, In<double> scores, int threads) {
    require_length("scores", scores.size(), self.documents());
    nb::gil_scoped_release release;
    return self.rank(spanned(scores), threads);
}

std::unique_ptr<Outline> outline(StepSearch& self, In<double> slopes, double low, double high, int threads) {
    const auto along = checked_slopes(self, slopes);
    nb::gil_scoped_release release;
    return std::make_unique<StepOutline>(self, along, low, high, threads);
}

nb::tuple jumps(const StepSearch& self, In<double> slopes, double low, double high, int threads) {
    const auto along = checked_slopes(self, slopes);
    std::vector<double> at;
    std::vector<std::int64_t> to, from;
    std::int64_t here = 0;
    {
        nb::gil_scoped_release release;
        const auto found = self.jumps(along, low, high, threads);
        here = found.second;
        for (const FixedJump& jump : found.first) at.push_back(jump.at), to.push_back(jump.to), from.push_back(jump.from);
    }
    return nb::make_tuple(array(std::move(at)), array(std::move(to)), array(std::move(from)), here);
}

}  // namespace

void bind_steps(nb::module_& m) {
    nb::class_<StepSearch>(m, "StepSearch")
        .def(nb::init<const BoundMeasure&, std::optional<double>, std::optional<double>>(), "measure"_a, "total"_a = nb::none(), "peak"_a = nb::none(),
             nb::keep_alive<1, 2>())
        .def("rank_part", &ranked, "scores"_a, "threads"_a)
        .def("counted", [](const StepSearch& self) { return array(std::vector<std::uint8_t>(self.counted())); })
        .def("peak", &StepSearch::peak)
        .def("outline", &outline, "slopes"_a, "low"_a, "high"_a, "threads"_a)
        .def("jumps", &jumps, "slopes"_a, "low"_a, "high"_a, "threads"_a);
}

}  // namespace exactrank
