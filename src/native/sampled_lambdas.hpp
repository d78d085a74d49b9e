// Forces between the documents of rankings drawn at random (Gulin, Kuralenok & Pavlov 2011): the mean over `samples` of
//
//   |weight| link(s_better - s_worse),    pairs and weights by the order of s + noise * e                                  (1)
//
// with e standard logistic. The draws are a function of the seed, the draw, the query, the sample and the document alone (SplitMix64:
// Steele, Lea & Flood 2014), so that they are the same on any number of threads.
#pragma once

#include "lambdas.hpp"

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
        rule_.normalised(size, n, wanted);
    }

private:
    // Adds the mean over the samples to `wanted`, to `cost` and to `size`; false where the documents of one have no ranks.
    bool add_samples(const Scored& scored, const Ranked& query, Scratch& scratch, const Answer& wanted, double& cost, double& size) const {
        const std::int32_t n = scored.count;
        const std::unique_ptr<Swaps> swaps = rule_.swaps();
        swaps->start(query, scratch);
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
    LambdaRule rule_;
    Sampling sampling_;
};

}  // namespace exactrank
