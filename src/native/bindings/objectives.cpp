// Objectives in score space, and nets trained on them.
#include "bindings/queries.hpp"
#include "models/descent.hpp"
#include "objectives/diagonal.hpp"
#include "objectives/finite_difference.hpp"
#include "objectives/lambdas.hpp"
#include "objectives/pair_hinge.hpp"
#include "objectives/sampled_lambdas.hpp"

namespace exactrank {

namespace {

Link link_called(const std::string& name) {
    if (name == "logistic") return Link::logistic;
    if (name == "step") return Link::step;
    if (name == "spring") return Link::spring;
    throw std::invalid_argument("unknown link: " + name);
}

// A function of Python, called with the number of a query and its scores: it gives value, slope and curvature.
class Called final : public Objective {
public:
    explicit Called(nb::callable function) : function_(std::move(function)) {}
    void answer(const Scored& scored, Scratch&, const Answer& wanted) const override {
        const nb::gil_scoped_acquire hold;
        Out<double> scores = array(std::vector<double>(scored.score, scored.score + scored.count));
        const auto [value, slope, curvature] = nb::cast<std::tuple<double, In<double>, In<double>>>(function_(scored.query, std::move(scores)));
        const auto n = static_cast<std::size_t>(scored.count);
        require(slope.size() == n && curvature.size() == n, "one slope and one curvature a document are needed");
        if (wanted.value) *wanted.value = value;
        if (wanted.slope) std::copy_n(slope.data(), n, wanted.slope);
        if (wanted.curvature) std::copy_n(curvature.data(), n, wanted.curvature);
    }
    bool is_parallel() const override { return false; }

private:
    nb::callable function_;
};

void bind_kinds(nb::module_& m) {
    nb::class_<Objective>(m, "Objective");
    nb::class_<LambdaRule>(m, "LambdaRule")
        .def(
            "__init__",
            [](LambdaRule* self, const Kernel* kernel, In<double> grades, In<double> tie_key, const std::string& link, double margin, std::int32_t neighbors,
               std::int32_t truncation, double near, bool normalize, GivenPairs preferences) {
                require(neighbors > 0 && truncation > 0, "neighbors and truncation must be above 0");
                const std::span<const double> keys = checked_tie_key(tie_key, grades.size());
                const Domain domain = domain_with(preferences, domain_of(kernel, grades));
                new (self) LambdaRule{kernel, spanned(grades), keys, link_called(link), margin, neighbors, truncation, near, normalize, domain, preferences};
            },
            "kernel"_a.none(), "grades"_a.noconvert(), "tie_key"_a.noconvert(), "link"_a, "margin"_a, "neighbors"_a, "truncation"_a, "near"_a,
            "normalize"_a = false, "preferences"_a = nb::none(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>());
    m.def("lambdas", [](const LambdaRule& rule) { return made<Lambdas>(rule.domain, rule); }, "rule"_a, nb::keep_alive<0, 1>());
    m.def(
        "sampled_lambdas",
        [](const LambdaRule& rule, std::int32_t samples, double noise, std::uint64_t seed, std::uint64_t draw, std::uint64_t first) {
            require(samples > 0, "samples must be above 0");
            return made<SampledLambdas>(rule.domain, rule, Sampling{samples, noise, seed, draw, first});
        },
        "rule"_a, "samples"_a, "noise"_a, "seed"_a, "draw"_a, "first"_a = 0, nb::keep_alive<0, 1>());
    m.def(
        "finite_difference",
        [](const Kernel& kernel, In<double> grades, In<double> tie_key, double step) {
            require(step > 0, "step must be above 0");
            return made<FiniteDifference>(domain_of(&kernel, grades), kernel, spanned(grades), checked_tie_key(tie_key, grades.size()), step);
        },
        "kernel"_a, "grades"_a.noconvert(), "tie_key"_a.noconvert(), "step"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>());
    m.def(
        "pair_hinge",
        [](In<double> grades, In<std::int64_t> indptr, bool squared, double pairs, GivenPairs preferences) {
            const Boundaries queries(indptr, grades.size());
            require_same_queries(preferences, queries);
            require_finite("grades", grades);
            return made<PairHinge>(domain_of(queries), grades.data(), queries.data(), queries.queries(), squared, pairs, preferences);
        },
        "grades"_a, "indptr"_a, "squared"_a, "pairs"_a, "preferences"_a = nb::none());
    m.def(
        "diagonal",
        [](const Objective& objective, double strength) {
            require(strength >= 0 && std::isfinite(strength), "strength must be a number of at least 0");
            return made<Diagonal>(objective.domain, objective, strength);
        },
        "objective"_a, "strength"_a, nb::keep_alive<0, 1>());
    m.def("called", [](nb::callable function) { return made<Called>({}, std::move(function)); }, "function"_a);
}

// Queries that the objective may be asked about.
Queries checked(const Objective& objective, const In<std::int64_t>& indptr, const In<double>& weight, std::size_t documents) {
    const Boundaries queries(indptr, documents);
    require_domain(objective.domain, queries);
    return queries.weighted(weight);
}

nb::tuple objective_answers(const Objective& objective, In<double> scores, In<std::int64_t> indptr, In<double> weight, bool with_slope, bool with_curvature,
                            int threads, bool with_value) {
    const Queries queries = checked(objective, indptr, weight, scores.size());
    auto values = empty<double>(with_value ? queries.count() : 0);
    auto slope = empty<double>(with_slope ? scores.size() : 0), curvature = empty<double>(with_curvature ? scores.size() : 0);
    {
        nb::gil_scoped_release release;
        answers(objective, queries, scores.data(), threads,
                {with_value ? values.data() : nullptr, with_slope ? slope.data() : nullptr, with_curvature ? curvature.data() : nullptr});
    }
    return nb::make_tuple(values, slope, curvature);
}

// A net's task, all that goes into it checked.
struct GivenTask {
    GivenTask(const Net& net, const In<double>& theta, const Objective& objective, const InMatrix<float>& x, const In<std::int64_t>& indptr,
              const In<double>& weight, const In<std::int64_t>& order)
        : task{net, objective, viewed(x), checked(objective, indptr, weight, x.shape(0))} {
        require(x.shape(1) == net.width(), "the net reads another number of features");
        require_length("theta", theta.size(), net.size());
        for (std::size_t i = 0; i < order.size(); ++i) require_below("the order of queries", order(i), weight.size());
    }
    Task task;
};

constexpr std::size_t most_units = std::size_t{1} << 24;

void bind_net(nb::module_& m) {
    nb::class_<Net>(m, "Net")
        .def(
            "__init__",
            [](Net* self, In<double> mean, In<double> scale, std::size_t hidden) {
                require_length("scale", scale.size(), mean.size());
                require(hidden < most_units, "there are too many hidden units");
                new (self) Net{{mean.data(), mean.data() + mean.size()}, {}, hidden};
                for (std::size_t j = 0; j < scale.size(); ++j) self->inverse_scale.push_back(1.0 / scale(j));
            },
            "mean"_a, "scale"_a, "hidden"_a)
        .def_prop_ro("size", &Net::size)
        .def(
            "scores",
            [](const Net& self, In<double> theta, InMatrix<float> x, int threads) {
                require(x.shape(1) == self.width(), "the net reads another number of features");
                require_length("theta", theta.size(), self.size());
                auto score = empty<double>(x.shape(0));
                nb::gil_scoped_release release;
                net_scores(self, spanned(theta), viewed(x), threads, spanned(score), {});
                return score;
            },
            "theta"_a, "x"_a, "threads"_a)
        .def(
            "activations",
            [](const Net& self, In<double> theta, InMatrix<float> x, int threads) {
                require(x.shape(1) == self.width(), "the net reads another number of features");
                require_length("theta", theta.size(), self.size());
                std::vector<double> score(x.shape(0));
                auto active = empty<double>(x.shape(0) * self.hidden);
                nb::gil_scoped_release release;
                net_scores(self, spanned(theta), viewed(x), threads, {score.data(), score.size()}, {active.data(), active.size()});
                return active;
            },
            "theta"_a, "x"_a, "threads"_a)
        .def(
            "slope",
            [](const Net& self, In<double> theta, const Objective& objective, InMatrix<float> x, In<std::int64_t> indptr, In<double> weight,
               In<std::int64_t> chosen, In<std::int64_t> wide, int threads) {
                const GivenTask given(self, theta, objective, x, indptr, weight, chosen);
                require_length("wide", wide.size(), chosen.size());
                Steepness found;
                {
                    nb::gil_scoped_release release;
                    found = steepness(given.task, spanned(theta), {spanned(chosen), spanned(wide)}, threads);
                }
                return nb::make_tuple(found.value, array(std::move(found.slope)));
            },
            "theta"_a, "objective"_a, "x"_a, "indptr"_a, "weight"_a, "chosen"_a, "wide"_a, "threads"_a)
        .def(
            "slopes_by_block",
            [](const Net& self, In<double> theta, const Objective& objective, InMatrix<float> x, In<std::int64_t> indptr, In<double> weight,
               In<std::int64_t> chosen, In<std::int64_t> wide, int threads) {
                const GivenTask given(self, theta, objective, x, indptr, weight, chosen);
                require_length("wide", wide.size(), chosen.size());
                std::vector<Steepness> found;
                {
                    nb::gil_scoped_release release;
                    found = steepness_by_block(given.task, spanned(theta), {spanned(chosen), spanned(wide)}, threads);
                }
                std::vector<double> values, slopes;
                for (const Steepness& block : found) {
                    values.push_back(block.value);
                    slopes.insert(slopes.end(), block.slope.begin(), block.slope.end());
                }
                return nb::make_tuple(array(std::move(values)), array(std::move(slopes)));
            },
            "theta"_a, "objective"_a, "x"_a, "indptr"_a, "weight"_a, "chosen"_a, "wide"_a, "threads"_a)
        .def(
            "slopes_by_query",
            [](const Net& self, In<double> theta, const Objective& objective, InMatrix<float> x, In<std::int64_t> indptr, In<double> weight,
               In<std::int64_t> chosen, int threads) {
                const GivenTask given(self, theta, objective, x, indptr, weight, chosen);
                auto values = empty<double>(chosen.size());
                auto slopes = empty<double>(chosen.size() * self.size());
                {
                    nb::gil_scoped_release release;
                    steepness_by_query(given.task, spanned(theta), spanned(chosen), threads, {values.data(), values.size()}, {slopes.data(), slopes.size()});
                }
                return nb::make_tuple(values, slopes);
            },
            "theta"_a, "objective"_a, "x"_a, "indptr"_a, "weight"_a, "chosen"_a, "threads"_a)
        .def(
            "pass_over",
            [](const Net& self, In<double> theta, const Objective& objective, InMatrix<float> x, In<std::int64_t> indptr, In<double> weight,
               In<std::int64_t> order, double rate, double decay) {
                const GivenTask given(self, theta, objective, x, indptr, weight, order);
                std::vector<double> found;
                {
                    nb::gil_scoped_release release;
                    found = pass_over(given.task, spanned(theta), {spanned(order), rate, decay});
                }
                return array(std::move(found));
            },
            "theta"_a, "objective"_a, "x"_a, "indptr"_a, "weight"_a, "order"_a, "rate"_a, "decay"_a)
        .def(
            "pass_over_pairs",
            [](const Net& self, In<double> theta, const Objective& objective, InMatrix<float> x, In<std::int64_t> indptr, In<double> weight, In<double> grades,
               In<std::int64_t> order, double rate, double decay) {
                const GivenTask given(self, theta, objective, x, indptr, weight, order);
                require_length("grades", grades.size(), x.shape(0));
                std::vector<double> found;
                {
                    nb::gil_scoped_release release;
                    found = pass_over_pairs(given.task, spanned(grades), spanned(theta), {spanned(order), rate, decay});
                }
                return array(std::move(found));
            },
            "theta"_a, "objective"_a, "x"_a, "indptr"_a, "weight"_a, "grades"_a, "order"_a, "rate"_a, "decay"_a);
}

}  // namespace

void bind_objectives(nb::module_& m) {
    bind_kinds(m);
    m.def("answers", &objective_answers, "objective"_a, "scores"_a, "indptr"_a, "weight"_a, "with_slope"_a, "with_curvature"_a, "threads"_a,
          "with_value"_a = true);
    bind_net(m);
}

}  // namespace exactrank
