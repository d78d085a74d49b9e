// Forces between the documents of rankings drawn at random (Gulin, Kuralenok & Pavlov 2011): the mean over `samples` of
//
//   |weight| link(s_better - s_worse),    pairs and weights by the order of s + noise * e                                  (1)
//
// with e standard logistic. The draws are a function of the seed, the draw, the query, the sample and the document alone (SplitMix64:
// Steele, Lea & Flood 2014), so that they are the same on any number of threads.
#pragma once

#include <numeric>

#include "objectives/lambdas.hpp"

namespace exactrank {

struct Sampling {
    std::int32_t samples;
    double noise;
    std::uint64_t seed, draw, first;  // `first`: the number of the first query in the whole, where this is a part of it
};

namespace splitmix {

constexpr std::uint64_t step = 0x9e3779b97f4a7c15;

template <class Words>
XR_INLINE Words mixed(Words z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

// The start of a stream of its own for every key.
XR_INLINE std::uint64_t start(std::initializer_list<std::uint64_t> key) {
    std::uint64_t state = 0;
    for (const std::uint64_t word : key) state = mixed(state + step + word);
    return state;
}

}  // namespace splitmix

// out_i = s_i + noise * e_i
static XR_CLONES void add_noise(const double* s, std::int32_t n, double noise, std::uint64_t start, double* out) {
    using Words = std::uint64_t __attribute__((vector_size(64)));
    Words counter = Words{1, 2, 3, 4, 5, 6, 7, 8} * splitmix::step + start;
    for (std::int32_t i = 0; i < n; i += 8, counter += 8 * splitmix::step) {
        const Words bits = (splitmix::mixed(counter) >> 12) | 0x3ff0000000000000;  // a number from 1 to 2
        Doubles u, v{};
        std::memcpy(&u, &bits, sizeof u);
        u -= 1 - 0x1p-53;  // strictly between 0 and 1
        const std::size_t room = std::min(8, n - i) * sizeof(double);
        std::memcpy(&v, s + i, room);
        v += noise * portable::normal_log(u / (1.0 - u));
        std::memcpy(out + i, &v, room);
    }
}

// Documents by falling worth, of a measure whose change is (difference of worth) * (difference of discount), and their discounts in some
// samples: row after row of `room` discounts. Arrays have room for eight more.
struct SampledLineup {
    std::int32_t n, samples;
    std::size_t room;
    const double *scores, *powers, *worth, *discounts;
    double margin;
    QuietBreath* breath;
};

// The sum over the samples of |d_i - d_j| for eight documents j.
XR_INLINE Doubles discount_gaps(const SampledLineup& lineup, std::int32_t i, std::int32_t j) {
    Doubles sum{};
    for (std::int32_t sample = 0; sample < lineup.samples; ++sample) {
        const double* discount = lineup.discounts + sample * lineup.room;
        sum += sizes(discount[i] - load_eight(discount + j));
    }
    return sum;
}

// Adds the forces of all pairs with a difference of worth. The link of a pair is the same in all samples, so it is taken once.
template <auto link, bool with_curvature, bool with_size>
XR_INLINE void add_pairs(const SampledLineup& lineup, const Forces& to) {
    for (std::int32_t i = 0, below = 0; i < lineup.n; ++i) {
        while (below < lineup.n && !(lineup.worth[below] < lineup.worth[i])) ++below;
        if (lineup.breath->ends_after(static_cast<std::size_t>(lineup.n - below) * lineup.samples)) return;
        Doubles force{}, bend{}, size{};
        const Doubles score = Doubles{} + lineup.scores[i], power = Doubles{} + lineup.powers[i];
        for (std::int32_t j = below; j < lineup.n; j += 8) {
            const Doubles delta = first_lanes((load_eight(lineup.worth + j) - lineup.worth[i]) * discount_gaps(lineup, i, j), lineup.n - j);
            const Pull pull = link({score, power, load_eight(lineup.scores + j), load_eight(lineup.powers + j), delta}, lineup.margin);
            force += pull.force;
            store_eight(to.slope + j, load_eight(to.slope + j) - pull.force);
            if constexpr (with_curvature) {
                bend += pull.curvature;
                store_eight(to.curvature + j, load_eight(to.curvature + j) + pull.curvature);
            }
            if constexpr (with_size) size += sizes(pull.force);
        }
        to.slope[i] += sum_of_eight(force);
        if constexpr (with_curvature) to.curvature[i] += sum_of_eight(bend);
        if constexpr (with_size) *to.size += sum_of_eight(size);
    }
}
static XR_CLONES void add_sampled_forces(Link link, const SampledLineup& lineup, const Forces& to) { add_by_link(link, lineup, to); }

// The value is that of the measure at the scores without noise, or, for unit weights, the negated mean of the links' costs.
class SampledLambdas final : public Objective {
public:
    SampledLambdas(const LambdaRule& rule, const Sampling& sampling) : rule_(rule), sampling_(sampling) {}

    void answer(const Scored& scored, Scratch& scratch, const Answer& wanted) const override {
        const std::int32_t n = scored.count;
        if (!rule_.rank(scored, scored.score, scratch)) return answer_nan(n, wanted);
        const Ranked query = rule_.ranked(scored, scratch);
        double cost = 0, size = 0;
        if (!rule_.is_settled(query, scratch, wanted) && !add_samples(scored, query, scratch, wanted, cost, size)) return answer_nan(n, wanted);
        cost += rule_.add_given(scored, wanted, size);
        if (wanted.value && !rule_.kernel) *wanted.value = -cost;
        rule_.normalized(size, n, wanted);
    }

private:
    // Adds the mean over the samples to `wanted`, to `cost` and to `size`; false where the documents of one have no ranks.
    bool add_samples(const Scored& scored, const Ranked& query, Scratch& scratch, const Answer& wanted, double& cost, double& size) const {
        const std::int32_t n = scored.count;
        const std::unique_ptr<Swaps> swaps = rule_.swaps();
        swaps->start(query, scratch);
        if (wanted.slope && sums_by_worth(*swaps, scored)) return add_by_worth(*swaps, scored, scratch, wanted, size);
        Lineup lineup(rule_, scored.score, n, wanted);
        std::vector<double> noisy(n);
        Breath breath;
        for (std::int32_t sample = 0; sample < sampling_.samples; ++sample) {
            breath.after(64 * static_cast<std::size_t>(n));
            const std::uint64_t start = splitmix::start({sampling_.seed, sampling_.draw, sampling_.first + scored.query, static_cast<std::uint64_t>(sample)});
            add_noise(scored.score, n, sampling_.noise, start, noisy.data());
            if (!rule_.rank(scored, noisy.data(), scratch)) return false;
            swaps->arrange(rule_.ranked(scored, scratch), scratch.order.data(), scratch);
            cost += lineup.add(scratch.order.data(), *swaps);
        }
        cost /= sampling_.samples, size = lineup.size / sampling_.samples;
        for (std::int32_t i = 0; wanted.slope && i < n; ++i) wanted.slope[i] /= sampling_.samples;
        for (std::int32_t i = 0; wanted.curvature && i < n; ++i) wanted.curvature[i] /= sampling_.samples;
        return true;
    }
    // True if the change by each pair is a difference of worth times one of discount, and no pair is left out.
    bool sums_by_worth(const Swaps& swaps, const Scored& scored) const {
        const std::int32_t n = scored.count;
        const Separable* separable = rule_.kernel ? swaps.separable() : nullptr;
        const Range range = range_of(scored.score, static_cast<std::size_t>(n));
        return separable && separable->a == separable->b && rule_.near == 0 && rule_.neighbors >= n - 1 && rule_.truncation >= n - 1 &&
               range.most - range.least < 1400;
    }
    // Adds the mean force over the samples, some of which are drawn at a time; false where the documents of one have no ranks.
    bool add_by_worth(Swaps& swaps, const Scored& scored, Scratch& scratch, const Answer& wanted, double& size) const {
        const std::int32_t n = scored.count, most_at_once = std::min(sampling_.samples, 16), discounted = std::min(n, rule_.kernel->cutoff());
        const std::size_t room = n + 8;
        std::vector<double> cells((7 + most_at_once) * room), noisy(n);
        double* next = cells.data();
        auto taken = [&] { return std::exchange(next, next + room); };
        double *scores = taken(), *powers = taken(), *power = taken(), *worth = taken(), *worth_of = taken(), *slope = taken(), *curvature = taken();
        double* discounts = next;
        const double* discount_of_rank = nullptr;
        const Range range = range_of(scored.score, static_cast<std::size_t>(n));
        exponentials(scored.score, n, range.least + (range.most - range.least) / 2, power);
        std::vector<std::int32_t> place(n), by_worth(n);
        QuietBreath breath;
        for (std::int32_t sample = 0; sample < sampling_.samples;) {
            std::int32_t held = 0;
            for (; held < most_at_once && sample < sampling_.samples; ++held, ++sample) {
                breath.after(64 * static_cast<std::size_t>(n));
                const std::uint64_t start =
                    splitmix::start({sampling_.seed, sampling_.draw, sampling_.first + scored.query, static_cast<std::uint64_t>(sample)});
                add_noise(scored.score, n, sampling_.noise, start, noisy.data());
                if (!rule_.rank(scored, noisy.data(), scratch)) return false;
                const std::int32_t* order = scratch.order.data();
                if (sample == 0) {  // worth does not depend on the ranking
                    swaps.arrange(rule_.ranked(scored, scratch), order, scratch);
                    const Separable& separable = *swaps.separable();
                    discount_of_rank = separable.a;
                    for (std::int32_t r = 0; r < n; ++r) worth_of[order[r]] = separable.u[r];
                    if (rank_query(scratch.keys, {worth_of, nullptr, n}, by_worth.data(), nullptr) != n) return false;
                    for (std::int32_t i = 0; i < n; ++i) place[by_worth[i]] = i;
                    for (std::int32_t i = 0; i < n; ++i)
                        scores[i] = scored.score[by_worth[i]], powers[i] = power[by_worth[i]], worth[i] = worth_of[by_worth[i]];
                    std::fill_n(powers + n, 8, 1.0);  // a share of nothing would be no number
                }
                double* discount = discounts + held * room;
                std::fill_n(discount, n, 0.0);
                for (std::int32_t r = 0; r < discounted; ++r) discount[place[order[r]]] = discount_of_rank[r];
            }
            const Forces forces{slope, wanted.curvature ? curvature : nullptr, rule_.normalize ? &size : nullptr};
            add_sampled_forces(rule_.link, {n, held, room, scores, powers, worth, discounts, rule_.margin, &breath}, forces);
            breath.settle();
        }
        size /= sampling_.samples;
        for (std::int32_t i = 0; i < n; ++i) wanted.slope[by_worth[i]] += slope[i] / sampling_.samples;
        for (std::int32_t i = 0; wanted.curvature && i < n; ++i) wanted.curvature[by_worth[i]] += curvature[i] / sampling_.samples;
        return true;
    }
    LambdaRule rule_;
    Sampling sampling_;
};

}  // namespace exactrank
